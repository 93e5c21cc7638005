package run

import (
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/simulate"
)

// Cost is what one provider's cells will do, over all replicates. If the provider has a backend, native calls are
// counted as one per write and retrieval; a backend may need more.
type Cost struct {
	Label string `json:"label"`
	// Events is the number of writes, Retrievals of reads. Each of the TestSessions has two inventories, a readiness
	// wait and a canary.
	Events       int `json:"events"`
	Retrievals   int `json:"retrievals"`
	TestSessions int `json:"test_sessions"`
	// Conversations is the number of conversations between a simulated user and the subject.
	Conversations int `json:"conversations,omitempty"`
	// NativeCalls is the minimum number of calls of a backend; 0 for a provider without one.
	NativeCalls int `json:"native_calls"`
	// ModelCalls counts calls of the agent, the subject, the simulator and the judge. A conversation counts once.
	ModelCalls int `json:"model_calls"`
	// BackendModelCalls describes the model calls that the backend itself makes, as declared in the manifest, one line
	// per kind: "record_event, language: 178 at least: Graphiti asks 2 for each event".
	BackendModelCalls []string `json:"backend_model_calls,omitempty"`
}

// Plan computes what a lab will do with a pack. remote reports whether a provider has a backend.
//
// Errors: those of reading the pack.
func Plan(l *lab.Lab, p *pack.Pack, remote func(*lab.Provider) bool) ([]Cost, error) {
	sessions, conversations := 0, 0
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
				conversations++
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
			c.Conversations = n * conversations * len(l.SubjectBudgets(l.BudgetsOf(entry)))
			c.Retrievals += c.Conversations // the search for its nonces; the subject's own retrievals are unknown
			if l.Subject.Seat == lab.SeatBuiltin {
				c.ModelCalls += c.Conversations // at least one
			}
			if l.Simulator != nil {
				c.ModelCalls += 2 * c.Conversations // at least an opening and a reaction
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

// Lint rejects a pack with problems that would make the comparison wrong, and counts them.
//
// Errors: invalid_argument that names the first problem; those of reading, with a count of 0.
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
