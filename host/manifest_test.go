package host_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/testguest"
	"github.com/stretchr/testify/require"
)

func TestTheManifestListsTheScopesOfWhatServes(t *testing.T) {
	ctx := context.Background()
	told2 := 0
	h := host.Open(t, host.Options{Run: host.RunLabels{Seed: "7", Replicate: "2", Labels: map[string]string{"arm": "a"}},
		OnManifest: func() { told2++ }})
	s := host.OpenSlot(t, h, host.ProbeConfig(`{}`))
	m := ok[*report.RunManifest](t)(s.Manifest(ctx))
	require.Empty(t, m.Scopes)
	require.Equal(t, []any{"7", "2", map[string]string{"arm": "a"}, "real", false},
		[]any{m.Seed, m.Replicate, m.Labels, m.Clock, m.FeedbackEnabled})
	host.RunCommands(t, s, "e1", "echo x")
	_, err := s.SetupScope(ctx, abi.MemoryScope{RunID: "other", PersonaID: "p"})
	require.NoError(t, err)
	m = ok[*report.RunManifest](t)(s.Manifest(ctx))
	require.Len(t, m.Scopes, 2)
	require.Equal(t, host.TestScope, m.Scopes[1].Scope)
	require.Equal(t, map[string]string{"scope": "run-persona"}, m.Scopes[1].NativeScope)
	require.EqualValues(t, 1, m.Scopes[1].Generation)
	require.Equal(t, 3, told2, "a load and two scopes")

	ok[*abi.ResetReceipt](t)(s.ResetScope(ctx, host.TestScope))
	m = ok[*report.RunManifest](t)(s.Manifest(ctx))
	require.EqualValues(t, 2, m.Scopes[1].Generation)
	require.Empty(t, m.Scopes[1].NativeScope, "the new generation has not been set up")
	_, err = s.Swap(ctx, host.ProviderConfig{Name: "probe_backend", Module: host.ProbeModule})
	require.NoError(t, err)
	require.Empty(t, ok[*report.RunManifest](t)(s.Manifest(ctx)).Scopes, "another provider's scopes are not this one's")
}

func TestTheManifestCountsWhatItDoesNotList(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	const most = 100
	const people = most + 50
	_, err := s.RecordEvents(t.Context(), mixedBatch(people, 1, func(int, int) string { return "echo x" }))
	require.NoError(t, err)
	m := ok[*report.RunManifest](t)(s.Manifest(t.Context()))
	require.Len(t, m.Scopes, most)
	require.EqualValues(t, people-most, m.ScopesLeftOut)
	page, err := s.ListScopes(t.Context(), report.ScopeQuery{Limit: report.MaxPage})
	require.NoError(t, err)
	require.Len(t, page.Scopes, people)
	for _, l := range page.Scopes {
		require.Contains(t, l.NativeScope["scope"], "run-person")
	}
}

// A manifest of an earlier release lists up to 10,000 scopes.
func TestAManifestThatListsEveryScopeIsRead(t *testing.T) {
	m := ok[*report.RunManifest](t)(host.ProbeSlot(t, `{}`).Manifest(t.Context()))
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
		c := host.ProbeConfig(`{}`)
		c.Profile = profile
		m := ok[*report.RunManifest](t)(host.OpenSlot(t, host.Open(t, host.Options{}), c).Manifest(ctx))
		require.Equal(t, cmp.Or(profile, abi.ProfileBest), m.Profile)
		hashes[profile] = m.ConfigHash
		read, err := report.ParseRunManifest(abi.Marshal(m))
		require.NoError(t, err)
		require.Equal(t, m.Profile, read.Profile)
	}
	require.Equal(t, hashes[""], hashes[abi.ProfileBest])
	require.NotEqual(t, hashes[""], hashes[abi.ProfileSourceDesign])

	c := host.ProbeConfig(`{}`)
	c.Profile = "worst"
	_, err := host.Open(t, host.Options{}).Open(ctx, c)
	require.ErrorContains(t, err, `memory.profile: found "worst", want source-design or best`)
}

func TestVerifyManifest(t *testing.T) {
	ctx := context.Background()
	module, err := host.Inspect(host.ProbeModule, host.Limits{})
	require.NoError(t, err)
	config := host.ProbeConfig(`{"note": "n"}`)
	m := ok[*report.RunManifest](t)(host.OpenSlot(t, host.Open(t, host.Options{}), config).Manifest(ctx))
	m, err = report.ParseRunManifest(abi.Marshal(m))
	require.NoError(t, err)
	verify := func(m *report.RunManifest, module *host.Module, c host.ProviderConfig) map[string]report.ManifestDifference {
		list, err := host.VerifyManifest(m, module, &c)
		require.NoError(t, err)
		fields := map[string]report.ManifestDifference{}
		for _, d := range list {
			fields[d.Against+" "+d.Field] = d
		}
		return fields
	}
	require.Empty(t, verify(m, module, config), "a manifest agrees with what it was made of")

	t.Run("another module", func(t *testing.T) {
		echo, err := host.Inspect(testguest.Echo(), host.Limits{})
		require.NoError(t, err)
		list, err := host.VerifyManifest(m, echo, nil)
		require.NoError(t, err)
		var fields []string
		for _, d := range list {
			fields = append(fields, d.Field)
		}
		require.Subset(t, fields, []string{"module.sha256", "module.bytes", "module.name", "provider"})
	})
	t.Run("another configuration", func(t *testing.T) {
		c := host.ProbeConfig(`{"note": "other"}`)
		c.Namespace, c.AgentScoped, c.Tokenizer = "lab", true, "o200k_base"
		d := verify(m, module, c)
		require.Len(t, d, 5)
		require.Equal(t, report.ManifestDifference{Against: "config", Field: "config.note", Manifest: `"n"`,
			Found: `"other"`}, d["config config.note"])
		for _, field := range []string{"config_hash", "namespace", "agent_scoped", "tokenizer"} {
			require.Contains(t, d, "config "+field)
		}
		c = host.ProbeConfig(`{}`)
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
		c := host.ProbeConfig(`{"nonsense": 1}`)
		_, err := host.VerifyManifest(m, module, &c)
		host.RequireCode(t, err, abi.CodeInvalidArgument, "nonsense")
		_, err = host.VerifyManifest(m, nil, &c)
		host.RequireCode(t, err, abi.CodeInvalidArgument, "module")
	})
	t.Run("a manifest of another version, and what is none", func(t *testing.T) {
		text := string(abi.Marshal(m))
		_, err := report.ParseRunManifest([]byte(strings.Replace(text, `"manifest":1`, `"manifest":2`, 1)))
		require.Equal(t, "manifest_version", host.RequireCode(t, err, abi.CodeInvalidArgument, "version 2",
			"version 1").Reason)
		for _, none := range []string{"", "{", "[]", "{}", `{"manifest": 1, "name": "a module's"}`,
			strings.Replace(text, `"steps":[`, `"steps":["`, 1), text[:len(text)/2]} {
			_, err := report.ParseRunManifest([]byte(none))
			require.Equal(t, "manifest_form", host.RequireCode(t, err, abi.CodeInvalidArgument).Reason, none)
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
		_, err = host.VerifyManifest(m, nil, nil)
		require.NoError(t, err)
	})
}
