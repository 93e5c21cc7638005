package main

import (
	"encoding/base32"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/graphiti"
	"github.com/memhost/memhost/sdk/sdktest"
)

func TestGroupIDs(t *testing.T) {
	for _, c := range []struct {
		name       string
		namespace  string
		scope      abi.MemoryScope
		generation int64
		want       string
	}{
		{"run and persona", "", scope, 1, pageGroup},
		{"the second generation", "", scope, 2, pageGroup + "_g2"},
		{"an agent and a namespace", "lab", abi.MemoryScope{RunID: "r", PersonaID: "p", AgentID: "a"}, 1,
			"mh1_dhgm4_e8_e0_c4"},
		{"hostile ids", "", abi.MemoryScope{RunID: "*", PersonaID: ":"}, 1, "mh1_z_58_78_z"},
	} {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, groupID(c.namespace, c.scope, c.generation)) })
	}
	long := groupID("", abi.MemoryScope{RunID: strings.Repeat("r", 300), PersonaID: "p"}, 1)
	assert.Regexp(t, `^mh1h_[0-9a-f]{64}$`, long)
	assert.NotEqual(t, long, groupID("", abi.MemoryScope{RunID: strings.Repeat("r", 300), PersonaID: "p"}, 2))
	assert.False(t, isGroup("mh1_a\n"), "Graphiti's own check lets a line end pass")
	assert.False(t, isGroup(""), "an empty group is shared by everybody")
}

// TestDifferentScopesHaveDifferentGroups: and every group is a single token of the alphabet that both Graphiti and
// Lucene leave alone.
func TestDifferentScopesHaveDifferentGroups(t *testing.T) {
	whole := regexp.MustCompile(`\A[a-z0-9_]{5,200}\z`)
	id := rapid.OneOf(rapid.StringN(1, 80, 300), rapid.SampledFrom([]string{"a", "a_", "_a", "z", "a-2", "a:b", "g2",
		"*", "null", "main", "A"}))
	type idParts struct {
		namespace  string
		scope      abi.MemoryScope
		generation int64
	}
	draw := func(t *rapid.T, name string) idParts {
		return idParts{rapid.OneOf(rapid.Just(""), id).Draw(t, name+" namespace"),
			abi.MemoryScope{RunID: id.Draw(t, name+" run"), PersonaID: id.Draw(t, name+" persona"),
				AgentID: rapid.OneOf(rapid.Just(""), id).Draw(t, name+" agent")},
			rapid.Int64Range(1, 12).Draw(t, name+" generation")}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "a"), draw(t, "b")
		ga, gb := groupID(a.namespace, a.scope, a.generation), groupID(b.namespace, b.scope, b.generation)
		require.Regexp(t, whole, ga)
		require.True(t, isGroup(ga))
		require.Equal(t, a == b, ga == gb, "%s %s", ga, gb)
	})
}

// TestATemplateNamesTheGroup on every surface, in a form that Graphiti and Lucene treat as one word.
func TestATemplateNamesTheGroup(t *testing.T) {
	for _, surface := range []string{surfaceREST, surfaceMCP, surfaceCore} {
		r := plugTo(t, providerSetup{surface, false}, graphiti.Options{},
			`,"driver":"neo4j","search_mode":"hybrid","group_id_template":"{run_id}:{persona_id}"`)
		setup, err := sdktest.Do(r.Host, abi.OpSetupScope, scope, setupScope, &abi.Empty{})
		require.NoError(t, err)
		assert.Equal(t, "userz5faz5fc1_userz5fa", setup.NativeScope["group_id"])
	}
	_, err := parseSettings(&abi.GuestConfig{Config: abi.Raw(`{"url":"u","surface":"core","group_id_template":"{run_id}"}`)})
	assert.ErrorContains(t, err, "group_id_template: leaves out {persona_id}")
}

func FuzzBase32Hex(f *testing.F) {
	f.Add("user_a")
	f.Add("\x00\xff")
	reference := base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := base32hex(s), reference.EncodeToString([]byte(s)); got != want {
			t.Fatalf("%q: %s, want %s", s, got, want)
		}
	})
}

func TestMarkersComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := marker{seq: rapid.Int64Range(1, 1<<40).Draw(t, "seq"), sentMS: rapid.Int64().Draw(t, "sent"),
			eventMS: rapid.Int64().Draw(t, "event"),
			name:    rapid.StringN(1, 50, 512).Draw(t, "name")}
		got, ok := parseMarker(m.String())
		require.True(t, ok)
		require.Equal(t, m, got)
	})
}

func FuzzMarkers(f *testing.F) {
	f.Add("1 2 3 4 e-1")
	f.Add("1  3 4 ")
	f.Fuzz(func(t *testing.T, s string) {
		if m, ok := parseMarker(s); ok && (m.seq < 1 || m.name == "") {
			t.Fatalf("%q was taken for %+v", s, m)
		}
	})
}

func TestIDsAreQuoted(t *testing.T) {
	assert.True(t, isUUID("8be2a280-3094-46f1-a28d-9c51894304cb"))
	for _, s := range []string{"", "*", "8BE2A280-3094-46f1-a28d-9c51894304cb", "8be2a280-3094-46f1-a28d-9c51894304c/",
		"../../clear"} {
		assert.False(t, isUUID(s), s)
	}
}

// FuzzScopes records and retrieves in a scope of any ids: no request may name another group.
func FuzzScopes(f *testing.F) {
	f.Add("r", "p")
	f.Add("*", "..")
	f.Add("\"", "\\\n")
	f.Fuzz(func(t *testing.T, run, persona string) {
		s := abi.MemoryScope{RunID: run, PersonaID: persona}
		if s.Validate() != nil {
			return
		}
		r := plug(t, providerSetup{surfaceREST, false}, "")
		e := turnOn(1, "e", "My cat is called Zorvex.")
		e.RunID, e.UserID = run, persona
		_, err := sdktest.Do(r.Host, abi.OpRecordEvent, s, recordEvent, e)
		require.NoError(t, err)
		require.Contains(t, r.Sent[0].Body, `"`+groupID("", s, 1)+`"`)
		for group := range r.fake.Groups() {
			require.Equal(t, groupID("", s, 1), group)
		}
	})
}
