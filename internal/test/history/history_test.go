package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at makes operations one after another, each a second long, of scope "a" unless they say otherwise.
func at(ops ...Op) []Op {
	for i := range ops {
		o := &ops[i]
		if o.Call == 0 {
			o.Call, o.Return = int64(10*i)*1e9+1, int64(10*i+1)*1e9
		}
		if o.Generation == 0 {
			o.Generation = 1
		}
		if o.Kind != SetMode && o.Kind != Swap {
			o.Scope = "a"
		}
	}
	return ops
}

func post(event string, part int) Op { return Op{Kind: Post, Event: event, Part: part} }
func record(event string, o Outcome) Op {
	return Op{Kind: Record, Event: event, Outcome: o, Open: o == Unknown}
}
func retrieve(events ...string) Op { return Op{Kind: Retrieve, Events: events} }
func mode(ro bool) Op              { return Op{Kind: SetMode, ReadOnly: ro} }

// spans sets the time of an operation, in s.
func spans(o Op, from, to int64) Op {
	o.Call, o.Return = from*1e9+1, to*1e9
	return o
}

func TestWhatCanHaveHappenedFits(t *testing.T) {
	for name, ops := range map[string][]Op{
		"an event is sent and recorded": at(post("e", 0), post("e", 1), record("e", Fresh), retrieve("e"), retrieve("e")),
		"what was in doubt was recorded": at(record("e", Unknown), post("e", 0), post("e", 1), record("e", Repeated),
			retrieve("e")),
		"what was in doubt was found at the backend, so that the log lacks it": at(record("e", Unknown), post("e", 0),
			post("e", 1), record("e", Repeated), retrieve(), retrieve()),
		"what was in doubt is read before another event": at(record("e", Unknown), post("e", 0), post("e", 1),
			post("f", 0), post("f", 1), record("f", Fresh), retrieve("e", "f")),
		"the wall comes before or after what runs beside it": at(spans(mode(true), 1, 9), spans(post("e", 0), 2, 3),
			spans(post("e", 1), 3, 4), spans(record("e", Fresh), 1, 5), spans(record("f", Skipped), 1, 8)),
		"writes that were admitted end before the wall's answer": at(spans(mode(true), 1, 9), spans(record("f", Skipped), 2, 3),
			spans(post("e", 0), 4, 5), spans(post("e", 1), 5, 6), spans(record("e", Fresh), 1, 7)),
		"a wall in doubt": at(Op{Kind: SetMode, ReadOnly: true, Open: true}, post("e", 0), record("f", Skipped),
			post("e", 1), record("e", Fresh)),
		"a scope is said not to be ready": at(record("e", Unknown),
			Op{Kind: SetMode, ReadOnly: true, NotReady: []string{"a"}}, post("e", 0)),
		"a late write was named": at(mode(true), Op{Kind: Post, Event: "e", Late: true}),
		"a swap":                 at(retrieve(), Op{Kind: Swap, Provider: 1}, Op{Kind: Retrieve, Provider: 1}),
		"a swap in doubt may happen later": at(Op{Kind: Swap, Provider: 1, Open: true, Call: 1, Return: 1e12}, retrieve(),
			Op{Kind: Retrieve, Provider: 1}),
		"a reset": at(post("e", 0), post("e", 1), record("e", Fresh), Op{Kind: Reset, Generation: 2},
			Op{Kind: Retrieve, Generation: 2}, Op{Kind: Record, Event: "f", Local: true, Outcome: Fresh, Generation: 2}),
		"a reset in doubt": at(Op{Kind: Reset, Open: true}, retrieve(), Op{Kind: Reset, Generation: 3},
			Op{Kind: Retrieve, Generation: 3}),
	} {
		report, err := Check(ops, time.Minute)
		require.NoError(t, err, name)
		require.Equal(t, report.Scopes, report.Linearizable, name)
	}
}

func TestWhatCannotHaveHappenedIsFound(t *testing.T) {
	for name, ops := range map[string][]Op{
		"lost":                               at(post("e", 0), record("e", Fresh)),
		"doubled":                            at(post("e", 0), post("e", 0)),
		"sent again after it was recorded":   at(post("e", 0), post("e", 1), record("e", Fresh), post("e", 1)),
		"recorded twice":                     at(post("e", 0), post("e", 1), record("e", Fresh), record("e", Fresh)),
		"a duplicate of nothing":             at(post("e", 0), post("e", 1), record("e", Repeated)),
		"behind the wall":                    at(post("e", 0), mode(true), post("e", 1)),
		"recorded behind the wall":           at(post("e", 0), post("e", 1), mode(true), record("e", Fresh)),
		"skipped without a wall":             at(mode(true), mode(false), record("e", Skipped)),
		"another scope is not ready":         at(Op{Kind: SetMode, ReadOnly: true, NotReady: []string{"b"}}, post("e", 0)),
		"a stale read":                       at(post("e", 0), post("e", 1), record("e", Fresh), retrieve()),
		"a read goes back":                   at(record("e", Unknown), retrieve("e"), retrieve()),
		"read, absent before when recorded":  at(record("e", Unknown), post("e", 0), post("e", 1), record("e", Repeated), retrieve(), retrieve("e")),
		"an event is read twice":             at(record("e", Unknown), retrieve("e", "e")),
		"an event is read that nobody wrote": at(record("f", Unknown), retrieve("e")),
		"another order": at(Op{Kind: Record, Event: "e", Local: true, Outcome: Fresh},
			Op{Kind: Record, Event: "f", Local: true, Outcome: Fresh}, retrieve("f", "e")),
		"an old provider":          at(Op{Kind: Swap, Provider: 1}, retrieve()),
		"an old generation":        at(Op{Kind: Reset, Generation: 2}, retrieve()),
		"a generation is left out": at(Op{Kind: Reset, Generation: 3}),
		"a swap whose time is over": at(Op{Kind: Swap, Provider: 1, Open: true, Call: 1, Return: 2},
			Op{Kind: Swap, Provider: 2}, Op{Kind: Retrieve, Provider: 1}),
	} {
		report, err := Check(ops, time.Minute)
		require.ErrorContains(t, err, "scope a: no order of its operations fits", name)
		require.Equal(t, 1, report.Illegal, name)
	}
}
