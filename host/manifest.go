package host

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
)

// describeRun adds to a manifest what depends on the run and not on the provider.
func (h *Host) describeRun(m *report.RunManifest, p *Provider) {
	m.Clock = "real"
	if h.recorded {
		m.Clock = "virtual"
	}
	m.FeedbackEnabled = p.config.Feedback && p.has(abi.OpApplyFeedback)
	m.Smoke, m.Smokes = cmp.Or(p.config.Smoke, SmokeNever), []report.SmokeVerdict{}
	for _, step := range m.Steps {
		if slices.Contains(smokeSteps, step.Name) {
			m.Smokes = append(m.Smokes, report.SmokeVerdict{Name: step.Name, Verdict: step.Verdict, Detail: step.Detail,
				MS: step.MS})
		}
	}
	if h.archive.On {
		m.Archive = &report.RunArchive{RetentionMS: h.archive.Retention.Milliseconds()}
	}
	m.Warnings = p.config.Warnings()
	m.Warnings = append(m.Warnings, h.storeWarnings...)
	m.Seed, m.Replicate, m.Labels = h.options.Run.Seed, h.options.Run.Replicate, h.options.Run.Labels
}

// manifestScopes is the most scopes that a manifest lists. ListScopes lists all.
const manifestScopes = 100

// manifestOf is the manifest of the serving provider, with the scopes that it has now.
func (s *Slot) manifestOf(ctx context.Context, v *servingProvider) (*report.RunManifest, error) {
	m := v.manifest
	m.Scopes = []report.ScopeMapping{}
	for _, f := range s.followers.list() {
		if one, ok := f.runFollower(); ok {
			m.Followers = append(m.Followers, one)
		}
	}
	err := s.host.eachScope(ctx, v.provider, func(r *scopeRecord) {
		if len(m.Scopes) == manifestScopes {
			m.ScopesLeftOut++
			return
		}
		m.Scopes = append(m.Scopes, r.mapping())
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(m.Scopes, func(a, b report.ScopeMapping) int {
		return slices.Compare([]string{a.Scope.RunID, a.Scope.PersonaID, a.Scope.AgentID},
			[]string{b.Scope.RunID, b.Scope.PersonaID, b.Scope.AgentID})
	})
	return &m, nil
}

func (r *scopeRecord) mapping() report.ScopeMapping {
	m := report.ScopeMapping{Scope: abi.MemoryScope{RunID: r.RunID, PersonaID: r.PersonaID, BackendNamespace: r.Namespace,
		AgentID: r.AgentID},
		Generation: r.Generation, NativeScope: map[string]string{}, Since: r.Since}
	var native map[string]string
	if json.Unmarshal(r.NativeScope, &native) == nil && native != nil {
		m.NativeScope = native
	}
	return m
}
