package host

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/testguest"
	"github.com/stretchr/testify/require"
)

func TestTheManifestListsTheScopesOfWhatServes(t *testing.T) {
	ctx := context.Background()
	told2 := 0
	h := open(t, Options{Run: RunLabels{Seed: "7", Replicate: "2", Labels: map[string]string{"arm": "a"}},
		OnManifest: func() { told2++ }})
	s := openSlot(t, h, probeConfig(`{}`))
	m := ok[*report.RunManifest](t)(s.Manifest(ctx))
	require.Empty(t, m.Scopes)
	require.Equal(t, []any{"7", "2", map[string]string{"arm": "a"}, "real", false},
		[]any{m.Seed, m.Replicate, m.Labels, m.Clock, m.FeedbackEnabled})
	told(t, s, "e1", "echo x")
	_, err := s.SetupScope(ctx, abi.MemoryScope{RunID: "other", PersonaID: "p"})
	require.NoError(t, err)
	m = ok[*report.RunManifest](t)(s.Manifest(ctx))
	require.Len(t, m.Scopes, 2)
	require.Equal(t, testScope, m.Scopes[1].Scope)
	require.Equal(t, map[string]string{"scope": "run-persona"}, m.Scopes[1].NativeScope)
	require.EqualValues(t, 1, m.Scopes[1].Generation)
	require.Equal(t, 3, told2, "a load and two scopes")

	ok[*abi.ResetReceipt](t)(s.ResetScope(ctx, testScope))
	m = ok[*report.RunManifest](t)(s.Manifest(ctx))
	require.EqualValues(t, 2, m.Scopes[1].Generation)
	require.Empty(t, m.Scopes[1].NativeScope, "the new generation has not been set up")
	_, err = s.Swap(ctx, ProviderConfig{Name: "probe_backend", Module: probeModule})
	require.NoError(t, err)
	require.Empty(t, ok[*report.RunManifest](t)(s.Manifest(ctx)).Scopes, "another provider's scopes are not this one's")
}

func TestTheManifestCountsWhatItDoesNotList(t *testing.T) {
	s := probeSlot(t, `{}`)
	const people = manifestScopes + 50
	_, err := s.RecordEvents(t.Context(), mixedBatch(people, 1, func(int, int) string { return "echo x" }))
	require.NoError(t, err)
	m := ok[*report.RunManifest](t)(s.Manifest(t.Context()))
	require.Len(t, m.Scopes, manifestScopes)
	require.EqualValues(t, people-manifestScopes, m.ScopesLeftOut)
	page, err := s.ListScopes(t.Context(), report.ScopeQuery{Limit: report.MaxPage})
	require.NoError(t, err)
	require.Len(t, page.Scopes, people)
	for _, l := range page.Scopes {
		require.Contains(t, l.NativeScope["scope"], "run-person")
	}
}

// A manifest of an earlier release lists up to 10,000 scopes.
func TestAManifestThatListsEveryScopeIsRead(t *testing.T) {
	m := ok[*report.RunManifest](t)(probeSlot(t, `{}`).Manifest(t.Context()))
	for i := range 10_000 {
		m.Scopes = append(m.Scopes, report.ScopeMapping{Scope: abi.MemoryScope{RunID: "run", PersonaID: fmt.Sprint(i)},
			Generation: 1, NativeScope: map[string]string{"scope": fmt.Sprint("run-", i)}})
	}
	m.ScopesLeftOut = 7
	read, err := report.ParseRunManifest(abi.Marshal(m))
	require.NoError(t, err)
	require.Equal(t, string(abi.Marshal(m)), string(abi.Marshal(read)))
}

func TestTheProfileIsInManifestAndConfigHash(t *testing.T) {
	ctx := context.Background()
	hashes := map[abi.Profile]string{}
	for _, profile := range []abi.Profile{"", abi.ProfileBest, abi.ProfileSourceDesign} {
		c := probeConfig(`{}`)
		c.Profile = profile
		m := ok[*report.RunManifest](t)(openSlot(t, open(t, Options{}), c).Manifest(ctx))
		require.Equal(t, cmp.Or(profile, abi.ProfileBest), m.Profile)
		hashes[profile] = m.ConfigHash
		read, err := report.ParseRunManifest(abi.Marshal(m))
		require.NoError(t, err)
		require.Equal(t, m.Profile, read.Profile)
	}
	require.Equal(t, hashes[""], hashes[abi.ProfileBest])
	require.NotEqual(t, hashes[""], hashes[abi.ProfileSourceDesign])

	c := probeConfig(`{}`)
	c.Profile = "worst"
	_, err := open(t, Options{}).Open(ctx, c)
	require.ErrorContains(t, err, `memory.profile: found "worst", want source-design or best`)
}

func TestFeedbackIsOffUnlessConfigured(t *testing.T) {
	s := probeSlot(t, `{}`)
	m := s.current.Load().provider.module
	m.Exports = append(m.Exports, abi.OpApplyFeedback) // like a module that has it
	_, err := s.ApplyFeedback(context.Background(),
		&abi.MemoryFeedback{FeedbackID: "f", Scope: testScope, SessionID: "s", Timestamp: "2026-01-01T00:00:00Z",
			Text: "t"})
	require.Equal(t, "feedback_off", requireCode(t, err, abi.CodeUnsupported, "memory.feedback").Reason)
}

func TestVerifyManifest(t *testing.T) {
	ctx := context.Background()
	module, err := Inspect(probeModule, Limits{})
	require.NoError(t, err)
	config := probeConfig(`{"note": "n"}`)
	m := ok[*report.RunManifest](t)(openSlot(t, open(t, Options{}), config).Manifest(ctx))
	m, err = report.ParseRunManifest(abi.Marshal(m))
	require.NoError(t, err)
	verify := func(m *report.RunManifest, module *Module, c ProviderConfig) map[string]report.ManifestDifference {
		list, err := VerifyManifest(m, module, &c)
		require.NoError(t, err)
		fields := map[string]report.ManifestDifference{}
		for _, d := range list {
			fields[d.Against+" "+d.Field] = d
		}
		return fields
	}
	require.Empty(t, verify(m, module, config), "a manifest agrees with what it was made of")

	t.Run("another module", func(t *testing.T) {
		echo, err := Inspect(testguest.Echo(), Limits{})
		require.NoError(t, err)
		list, err := VerifyManifest(m, echo, nil)
		require.NoError(t, err)
		var fields []string
		for _, d := range list {
			fields = append(fields, d.Field)
		}
		require.Subset(t, fields, []string{"module.sha256", "module.bytes", "module.name", "provider"})
	})
	t.Run("another configuration", func(t *testing.T) {
		c := probeConfig(`{"note": "other"}`)
		c.Namespace, c.AgentScoped, c.Tokenizer = "lab", true, "o200k_base"
		d := verify(m, module, c)
		require.Len(t, d, 5)
		require.Equal(t, report.ManifestDifference{Against: "config", Field: "config.note", Manifest: `"n"`,
			Found: `"other"`}, d["config config.note"])
		for _, field := range []string{"config_hash", "namespace", "agent_scoped", "tokenizer"} {
			require.Contains(t, d, "config "+field)
		}
		c = probeConfig(`{}`)
		c.Name = "probe_backend"
		require.Contains(t, verify(m, module, c), "config provider")
	})
	t.Run("an edited manifest contradicts itself", func(t *testing.T) {
		edited := *m
		edited.Config = abi.Raw(`{"note":"prettier"}`)
		edited.Backend = "probe"
		d := verify(&edited, module, config)
		require.Contains(t, d, "manifest config_hash")
		require.Contains(t, d, "manifest backend, condition")
		require.Contains(t, d, "config config.note")
	})
	t.Run("a configuration that the module does not take", func(t *testing.T) {
		c := probeConfig(`{"nonsense": 1}`)
		_, err := VerifyManifest(m, module, &c)
		requireCode(t, err, abi.CodeInvalidArgument, "nonsense")
		_, err = VerifyManifest(m, nil, &c)
		requireCode(t, err, abi.CodeInvalidArgument, "module")
	})
	t.Run("a manifest of another version, and what is none", func(t *testing.T) {
		text := string(abi.Marshal(m))
		_, err := report.ParseRunManifest([]byte(strings.Replace(text, `"manifest":1`, `"manifest":2`, 1)))
		require.Equal(t, "manifest_version", requireCode(t, err, abi.CodeInvalidArgument, "version 2",
			"version 1").Reason)
		for _, none := range []string{"", "{", "[]", "{}", `{"manifest": 1, "name": "a module's"}`,
			strings.Replace(text, `"steps":[`, `"steps":["`, 1), text[:len(text)/2]} {
			_, err := report.ParseRunManifest([]byte(none))
			require.Equal(t, "manifest_form", requireCode(t, err, abi.CodeInvalidArgument).Reason, none)
		}
	})
}

func FuzzParseRunManifest(f *testing.F) {
	f.Add([]byte(`{"manifest":1,"provider":"p","load_generation":1,"config":{}}`))
	f.Add([]byte(`{"manifest":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := report.ParseRunManifest(text)
		if err != nil {
			require.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
			return
		}
		_, err = VerifyManifest(m, nil, nil)
		require.NoError(t, err)
	})
}
