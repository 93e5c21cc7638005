package conformance

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/state"
)

// Target is a provider with everything that it needs to work.
type Target struct {
	// Provider chooses and configures it: name, module, block, secrets. Required. TestSessions are the kit's own.
	Provider host.ProviderConfig
	// Probe is how facts are worded, and how they are asked for. Zero: first-person facts about a cat.
	Probe Probe
	// ReadyWithin is how long a scope may take until what was recorded can be retrieved; default 30 s. After that the
	// verdict is pending.
	ReadyWithin time.Duration
	// Known is where the provider answers something although nothing was recorded, such as the persona of a configured
	// profile. A provider that retains nothing needs it for the clauses about answers.
	Known *Known
	// ErrorBodies are the backend's own way to put an error inside a 200, by route; that of the empty route is for all
	// others. Default: {"error": ...}.
	ErrorBodies map[string]string
	// LLMCalls returns how many calls the backend's language models have had so far. Nil: unknown, unless traces say it
	// (details.llm_calls).
	LLMCalls func(context.Context) (int64, error)
}

// Known is a question that has an answer from the beginning.
type Known struct {
	Scope abi.MemoryScope
	Query string
}

// Probe tells a fact and asks for it.
type Probe struct {
	// Wordings give the user's words for a made-up proper name, the plainest first. A fact that is not found is recorded
	// again in the next wording.
	Wordings []func(name string) string
	// Question asks for the name.
	Question string
}

// Options say how the kit works.
type Options struct {
	// Clauses are the numbers of those to check; empty means all.
	Clauses []int
	// RunID begins the run_id of every scope that is used. Default: random, so that two runs at one backend never meet.
	RunID string
	// CacheDir keeps compiled modules between runs. Default: one for this run.
	CacheDir string
	// OpenStore is host.Options.OpenStore: another store than a file in the folder that it is given.
	OpenStore func(ctx context.Context, dir string) (state.Store, error)
	// CopyStore copies what OpenStore keeps for one folder to another folder, at the moment of a host's death. Required
	// with OpenStore. Default: copy the folder.
	CopyStore func(from, to string) error
	// Logger receives the log of the hosts. Default: none.
	Logger hclog.Logger
	// Limits are the hosts' limits; Pool is the kit's own.
	Limits host.Limits
	// Now and Pause are the hosts' clock (host.Options), for a backend that lives by the same one. Default: real time.
	Now   func() time.Time
	Pause func(ctx context.Context, d time.Duration)
	// Progress is called with every clause as it ends.
	Progress func(ClauseReport)
	// Again makes Test check a clause that is not green once more, and the second verdict counts. It is for real servers,
	// whose own passing faults are not the plugin's. The test's log has both runs.
	Again bool

	// guest makes mistakes in the name of the provider, for tests of the kit.
	guest host.GuestInterceptor
}

func (t Target) withDefaults() Target {
	if t.ReadyWithin == 0 {
		t.ReadyWithin = 30 * time.Second
	}
	if len(t.Probe.Wordings) == 0 {
		t.Probe = Probe{Question: "What is my cat called?", Wordings: []func(string) string{
			func(name string) string { return "My cat is called " + name + "." },
			func(name string) string {
				return "I have a cat. The name of my cat is " + name + ", please remember that."
			},
			// With the question's own words, for a backend that leaves out what is not like the question.
			func(name string) string { return "What is my cat called? My cat is called " + name + "." },
		}}
	}
	return t
}
