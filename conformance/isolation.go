package conformance

import (
	"fmt"
	"strings"

	"github.com/memhost/memhost/abi"
)

// hostile are ids that look alike, collide under naive templates, or mean something to a backend. Every two of a group
// must stay apart; so must all others.
func (b *bench) hostile() []struct {
	name   string
	scopes []abi.MemoryScope
} {
	group := func(ids ...[2]string) []abi.MemoryScope {
		var list []abi.MemoryScope
		for _, id := range ids {
			list = append(list, b.scope(id[0], id[1]))
		}
		return list
	}
	long := strings.Repeat("x", 490)
	return []struct {
		name   string
		scopes []abi.MemoryScope
	}{
		{"plain", group([2]string{"a", "anna"}, [2]string{"a", "berta"}, [2]string{"b", "anna"})},
		{"separators", group([2]string{"a_b", "c"}, [2]string{"a", "b_c"}, [2]string{"a-b", "c"}, [2]string{"a", "b-c"},
			[2]string{"a/b", "c"}, [2]string{"a", "b/c"}, [2]string{"a:b", "c"}, [2]string{"a", "b:c"})},
		{"wildcards", group([2]string{"w", "*"}, [2]string{"w", "%"}, [2]string{"w", ".."},
			[2]string{"w", `" OR 1=1 --`}, [2]string{"w", `{"$ne":null}`})},
		{"escapes", group([2]string{"e", "a b"}, [2]string{"e", "a%20b"}, [2]string{"e", "a+b"}, [2]string{"e", "a b "},
			[2]string{"e", "a_20b"})},
		{"look-alikes", group([2]string{"l", "Paul"}, [2]string{"l", "paul"}, [2]string{"l", "pаul"},
			[2]string{"l", "caf\u00e9"}, [2]string{"l", "cafe\u0301"}, [2]string{"l", "\U0001f642"},
			[2]string{"l", "\U0001f643"})},
		{"long", group([2]string{"x", long + "1"}, [2]string{"x", long + "2"}, [2]string{long[:480] + "1", "x"},
			[2]string{long[:480] + "2", "x"})},
		{"joined", group(joined()...)},
	}
}

// checkIsolation is clause 3.
func checkIsolation(b *bench) {
	groups := b.hostile()
	var scopes []abi.MemoryScope
	for _, g := range groups {
		scopes = append(scopes, g.scopes...)
	}
	facts := b.plantAll(scopes)
	at := 0
	for _, g := range groups {
		mine := facts[at : at+len(g.scopes)]
		at += len(g.scopes)
		b.part(strings.ReplaceAll(g.name, "-", "_"), "each scope finds its own fact and no other's: "+g.name,
			func() outcome { return b.checkEachApart(mine, facts) })
	}
	b.part("agents", "where agent_id is a part of the scope, agents share nothing", b.ownAgents)
	b.part("namespaces", "installations of different namespaces share nothing", b.ownNamespaces)
}

// checkEachApart requires that each of mine finds its own fact and no other.
func (b *bench) checkEachApart(mine, all []*plantedFact) outcome {
	for _, p := range mine {
		if p.trouble != nil {
			return *p.trouble
		}
		result, err := b.ask(p.scope)
		if err != nil {
			return refused("retrieve in "+scopeName(p.scope), err)
		}
		for _, other := range all {
			if other != p && holds(result, other.name) {
				return failed("%s found %s, which was told in %s", scopeName(p.scope), other.name, scopeName(other.scope))
			}
		}
		if p.found != nil && !holds(result, p.name) {
			return failed("%s lost %s when other scopes were written", scopeName(p.scope), p.name)
		}
	}
	if o := control(mine...); o != nil {
		if o.verdict == NotApplicable {
			return passed("nothing crosses: %s", o.reason)
		}
		return *o
	}
	return passed("%d scopes, each found its own fact among %d", len(mine), len(all))
}

// checkConcurrency is clause 13.
func checkConcurrency(b *bench) {
	for _, pool := range []int{1, 4} {
		r := b.rig
		if pool == 1 {
			var err error
			if r, err = b.open(b.dir+"-1", 1, nil); err != nil {
				b.part(poolPart(pool), "callers of several scopes at once", func() outcome {
					return refused("open", err)
				})
				continue
			}
		}
		b.part(poolPart(pool), fmt.Sprintf("callers of several scopes at once do not mix, with %d instances", pool),
			func() outcome { return b.checkConcurrent(r, pool) })
	}
	b.part("order", "one scope's writes are sent in their order", b.inOrder)
	b.part("moment", "what was found stays found while the scope is written", b.whileWritten)
}

// whileWritten asks for a fact again and again while other turns are recorded in its scope. A guest that lays together
// what it read before a write and after it misses facts, or fails.
func (b *bench) whileWritten() outcome {
	const turns, readers, questions = 4, 3, 20 // each reader's, at most
	p := b.plant(b.scope("moment", "p"))
	if o := control(p); o != nil {
		return *o
	}
	written := make(chan struct{})
	found := make([]outcome, readers+1)
	asked := make([]int, readers+1)
	parallel(readers+1, readers+1, func(n int) {
		if n == readers {
			defer close(written)
			for range turns {
				// These turns are unlike the question: a provider that shows its best three items still shows the fact.
				e := b.event(p.scope, "I bought a kettle from "+b.kit.names.name()+".")
				if _, err := b.record(b.ctx, e); err != nil {
					found[n] = refused("record_event in "+scopeName(p.scope), err)
					return
				}
			}
			return
		}
		for done := false; !done && asked[n] < questions; {
			select {
			case <-written:
				done = true // and asked once more
			default:
			}
			asked[n]++
			result, err := b.ask(p.scope)
			switch {
			case err != nil:
				found[n] = refused("retrieve in "+scopeName(p.scope)+" while it is written", err)
				return
			case !holds(result, p.name):
				found[n] = failed("%s did not find %s while it was written, and did before", scopeName(p.scope), p.name)
				return
			}
		}
	})
	all := 0
	for n, o := range found {
		if o.verdict != "" {
			return o
		}
		all += asked[n]
	}
	return passed("%d questions while %d turns were recorded", all, turns)
}

func poolPart(pool int) string { return fmt.Sprintf("pool_%d", pool) }

// checkConcurrent records and asks in several scopes at once, with the same session and question, so that only the
// scope keeps them apart.
func (b *bench) checkConcurrent(r *rig, pool int) outcome {
	const scopes, rounds = 4, 3
	session := b.session()
	facts := make([]*plantedFact, scopes)
	parallel(scopes, scopes, func(i int) { facts[i] = r.plant(b.scope(fmt.Sprint("pool", pool), fmt.Sprint("p", i))) })
	found := make([]outcome, scopes*rounds)
	parallel(len(found), scopes, func(n int) {
		p := facts[n%scopes]
		result, err := r.retrieve(&abi.RetrieveRequest{Query: b.kit.target.Probe.Question, Scope: p.scope,
			SessionID: session})
		if err != nil {
			found[n] = refused("retrieve in "+scopeName(p.scope), err)
			return
		}
		for _, other := range facts {
			if other != p && holds(result, other.name) {
				found[n] = failed("%s found %s, which was told in %s at the same time", scopeName(p.scope), other.name,
					scopeName(other.scope))
			}
		}
		if p.found != nil && !holds(result, p.name) && found[n].verdict == "" {
			found[n] = failed("%s did not find its own fact while others asked", scopeName(p.scope))
		}
	})
	for _, o := range found {
		if o.verdict != "" {
			return o
		}
	}
	if o := control(facts...); o != nil && o.verdict != NotApplicable {
		return *o
	}
	return passed("%d scopes, %d questions at once", scopes, len(found))
}

// inOrder records a batch and single events, and looks in which order they left the host.
func (b *bench) inOrder() outcome {
	s := b.scope("order", "p")
	var names []string
	batch := &abi.EventBatch{}
	for range 4 {
		names = append(names, b.kit.names.name())
		batch.Events = append(batch.Events, *b.event(s, b.kit.target.Probe.Wordings[0](names[len(names)-1])))
	}
	b.wrote(s)
	mark := b.wire.mark()
	answers, err := b.slot.RecordEvents(b.ctx, batch)
	if err != nil {
		return refused("record_events", err)
	}
	for _, a := range answers.Receipts {
		if a.Error != nil {
			return refused("record_events", a.Error)
		}
	}
	last := b.kit.names.name()
	names = append(names, last)
	if _, err := b.record(b.ctx, b.event(s, b.kit.target.Probe.Wordings[0](last))); err != nil {
		return refused("record_event", err)
	}
	var order []string
	for _, x := range changes(b.wire.since(mark)) {
		text := strings.ToLower(string(x.call.Body))
		for {
			first, at := "", len(text)
			for _, n := range names {
				if i := strings.Index(text, strings.ToLower(n)); i >= 0 && i < at {
					first, at = n, i
				}
			}
			if first == "" {
				break
			}
			if len(order) == 0 || order[len(order)-1] != first {
				order = append(order, first)
			}
			text = text[at+len(first):]
		}
	}
	if len(order) == 0 {
		return notChecked("no native call carries the turns: they are kept by the host, one after another")
	}
	next := 0
	for _, n := range order {
		switch {
		case next < len(names) && n == names[next]:
			next++
		case next > 0 && n == names[next-1]:
		default:
			return failed("recorded were %v, the host saw them leave as %v", names, order)
		}
	}
	if next < len(names) {
		return failed("recorded were %v, the host saw only %v leave", names, order)
	}
	return passed("%d turns in order", len(names))
}
