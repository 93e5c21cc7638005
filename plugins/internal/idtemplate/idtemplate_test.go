package idtemplate_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/idtemplate"
)

func TestIDsOfTheDesign(t *testing.T) {
	designed, err := idtemplate.Parse("{run_id}:{persona_id}", idtemplate.Run, idtemplate.Persona)
	require.NoError(t, err)
	scope := abi.MemoryScope{RunID: "user_a_c1", PersonaID: "user_a"}
	assert.Equal(t, "userz5faz5fc1_userz5fa", designed.ID("", scope, 1, 100))
	assert.Equal(t, "userz5faz5fc1_userz5fa_g2", designed.ID("", scope, 2, 100))
	scope.AgentID = "Bot"
	assert.Equal(t, "userz5faz5fc1_userz5fa_nlab_az42ot", designed.ID("lab", scope, 1, 100))
	assert.Regexp(t, `^zh[0-9a-f]{64}$`, designed.ID("lab", scope, 1, 30))
	run, err := idtemplate.Parse("{run_id}")
	require.NoError(t, err)
	assert.Equal(t, "userz5faz5fc1", run.Name("lab", scope, 100), "what scopes share has nothing added")
}

func TestTemplatesThatLeaveOutAPartAreRefused(t *testing.T) {
	for template, why := range map[string]string{
		"{run_id}":              "leaves out {persona_id}",
		"{persona_id}":          "leaves out {run_id}",
		"{run_id}{persona_id}":  "needs a character such as :",
		"{run_id}x{persona_id}": "needs a character such as :",
		"{run_id}:{session_id}": "not {session_id}",
		"{run_id}:{persona_id":  "not {persona_id}",
	} {
		_, err := idtemplate.Parse(template, idtemplate.Run, idtemplate.Persona)
		assert.ErrorContains(t, err, why, template)
	}
}

// TestDifferentScopesHaveDifferentIDs under one template, whatever it is; and every id is one word of the alphabet that
// all backends take.
func TestDifferentScopesHaveDifferentIDs(t *testing.T) {
	word := regexp.MustCompile(`\A[a-z0-9_]{1,100}\z`)
	id := rapid.OneOf(rapid.StringN(1, 40, 200), rapid.SampledFrom([]string{"a", "a_", "_a", "z", "zh", "a:b", "g2", "ab",
		"b", "nlab", "A", "*"}))
	literal := rapid.SampledFrom([]string{":", "-", "_x", "x/", "z_", "__", " of "})
	type idParts struct {
		namespace  string
		scope      abi.MemoryScope
		generation int64
	}
	draw := func(t *rapid.T) idParts {
		maybe := rapid.OneOf(rapid.Just(""), id)
		return idParts{maybe.Draw(t, "namespace"), abi.MemoryScope{RunID: id.Draw(t, "run"), PersonaID: id.Draw(t, "persona"),
			AgentID: maybe.Draw(t, "agent")}, rapid.Int64Range(1, 12).Draw(t, "generation")}
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.Permutation([]string{"{run_id}", "{persona_id}", "{agent_id}", "{namespace}"}).Draw(t, "parts")
		for _, left := range []string{"{agent_id}", "{namespace}"} {
			if rapid.Bool().Draw(t, "without "+left) {
				parts = without(parts, left)
			}
		}
		text := rapid.SampledFrom([]string{"", "x", "zh", "mh-"}).Draw(t, "begin")
		for i, part := range parts {
			if i > 0 {
				text += literal.Draw(t, "between")
			}
			text += part
		}
		text += rapid.SampledFrom([]string{"", "x", "_g2", "-z"}).Draw(t, "end")
		template, err := idtemplate.Parse(text, idtemplate.Run, idtemplate.Persona)
		require.NoError(t, err)
		a, b := draw(t), draw(t)
		if rapid.Bool().Draw(t, "alike") { // differs in at most one part
			b = a
			*rapid.SampledFrom([]*string{&b.namespace, &b.scope.RunID, &b.scope.PersonaID, &b.scope.AgentID}).Draw(t,
				"part") = id.Draw(t, "other")
		}
		ida, idb := template.ID(a.namespace, a.scope, a.generation, 100), template.ID(b.namespace, b.scope, b.generation, 100)
		require.Regexp(t, word, ida)
		require.Equal(t, a == b, ida == idb, "%s: %s %s", text, ida, idb)
	})
}

func without(list []string, item string) (rest []string) {
	for _, s := range list {
		if !strings.EqualFold(s, item) {
			rest = append(rest, s)
		}
	}
	return rest
}
