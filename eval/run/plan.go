package run

import (
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/simulate"
)

// Cost is what one provider's cells will do, over all replicates. Native calls are counted as one for each write and
// each retrieval, where the provider has a backend: a backend may need more.
type Cost struct {
	Label string `json:"label"`
	// Events are writes, Retrievals reads; TestSessions each have two inventories, a readiness wait and a canary.
	Events       int `json:"events"`
	Retrievals   int `json:"retrievals"`
	TestSessions int `json:"test_sessions"`
	// Conversations are those of a simulated user with the subject.
	Conversations int `json:"conversations,omitempty"`
	// NativeCalls is at least how often a backend is called; 0 for a provider without one.
	NativeCalls int `json:"native_calls"`
	// ModelCalls are the agent's, the subject's, the simulator's and the judge's. A conversation counts once.
	ModelCalls int `json:"model_calls"`
	// BackendModelCalls describes the model calls that the backend makes itself, as the manifest declares them, a line for
	// each kind: "record_event, language: 178 at least: Graphiti asks 2 for each event".
	BackendModelCalls []string `json:"backend_model_calls,omitempty"`
}

// Plan counts what a lab will do with a pack. remote reports whether a provider has a backend.
//
// Errors: those of reading the pack.
func Plan(l *lab.Lab, p *pack.Pack, remote func(*lab.Provider) bool) ([]Cost, error) {
	sessions, talks := 0, 0
	for _, persona := range p.Manifest.Personas {
		last := 0
		preferences, err := p.Preferences(persona.PersonaID)
		if err != nil {
			return nil, err
		}
		for probe, err := range p.Probes(persona.PersonaID) {
			if err != nil {
				return nil, err
			}
			if probe.AfterSession != last {
				sessions++
				last = probe.AfterSession
			}
			if l.Subject != nil && hasConversation(probe, simulate.NewSetting(probe, preferences)) {
				talks++
			}
		}
	}
	var list []Cost
	for i := range l.Providers {
		entry, n := &l.Providers[i], l.Replicates
		probes := p.Manifest.Counts.Probes * len(l.BudgetsOf(entry))
		c := Cost{Label: entry.Label, Events: n * p.Manifest.Counts.Events, TestSessions: n * sessions}
		fresh := n * FreshnessOf(l, entry, !remote(entry))
		c.Events += fresh
		c.Retrievals = fresh + n*(probes+int(2*l.Stability*float64(probes))+sessions)
		if l.Subject != nil {
			c.Conversations = n * talks * len(l.SubjectBudgets(l.BudgetsOf(entry)))
			c.Retrievals += c.Conversations // the search for its nonces; what a subject retrieves is not known
			if l.Subject.Seat == lab.SeatBuiltin {
				c.ModelCalls += c.Conversations // one at least
			}
			if l.Simulator != nil {
				c.ModelCalls += 2 * c.Conversations // an opening and a reaction at least
			}
		}
		if remote(entry) {
			c.NativeCalls = c.Events + c.Retrievals + 2*c.TestSessions
		}
		if l.Agent != nil {
			c.ModelCalls += n * probes
		}
		if l.Judge != nil {
			c.ModelCalls += n * probes
		}
		list = append(list, c)
	}
	return list, nil
}

// Lint refuses a pack with faults that would make the comparison wrong, and counts them.
//
// Errors: invalid_argument that names the first of them; those of reading, with a count of 0.
func Lint(p *pack.Pack) (int, error) {
	findings, err := pack.Lint(p)
	if err != nil {
		return 0, err
	}
	var fatal []pack.Finding
	for _, f := range findings {
		if f.Fatal {
			fatal = append(fatal, f)
		}
	}
	if len(fatal) == 0 {
		return 0, nil
	}
	f := fatal[0]
	return len(fatal), abi.NewError(abi.CodeInvalidArgument,
		fmt.Sprintf("the pack %s has %d faults that would make the comparison wrong, the first is %s (%s): %s",
			p.Manifest.Name, len(fatal), f.Rule, f.Where, f.What)).
		WithHint("`memhost eval pack lint` lists them; --allow-faults runs it all the same, and the report says so")
}
