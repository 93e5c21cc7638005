package conformance

import (
	"math/rand/v2"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// joined are pairs of run and persona that are one text when they are put together, with and without a separator.
func joined() [][2]string {
	pairs := [][2]string{{"team1", "2ann"}, {"team12", "ann"}, {"a|b", "c"}, {"a", "b|c"}, {"a.b", "c"}, {"a", "b.c"},
		{"a#b", "c"}, {"a", "b#c"}, {"a b", "c"}, {"a", "b c"}}
	alphabet := []rune("ab01_-:/|.~@,; é%")
	for range 3 {
		text := make([]rune, 7)
		for i := range text {
			text[i] = alphabet[rand.IntN(len(alphabet))]
		}
		first := 1 + rand.IntN(3)
		pairs = append(pairs, [2]string{string(text[:first]), string(text[first:])},
			[2]string{string(text[:first+2]), string(text[first+2:])})
	}
	return pairs
}

// ownAgents checks scopes that differ in their agent only, or collide when persona and agent are put together.
func (b *bench) ownAgents() outcome {
	r, err := b.openAs(b.dir+"-agents", 2, nil, func(c *host.ProviderConfig) { c.AgentScoped = true })
	if err != nil {
		return refused("open with memory.agent_scoped", err)
	}
	var scopes []abi.MemoryScope
	for _, id := range [][2]string{{"p1", "2z"}, {"p12", "z"}, {"p", "helper"}, {"p", "Helper"}, {"p", "writer"}} {
		s := b.scope("agents", id[0])
		s.AgentID = id[1]
		scopes = append(scopes, s)
	}
	return r.checkApart(r.plantAll(scopes))
}

// ownNamespaces tells a fact under another namespace of the operator, and asks for it in the same scope without that.
func (b *bench) ownNamespaces() outcome {
	s := b.scope("namespaces", "p")
	here := b.plant(s)
	r, err := b.openAs(b.dir+"-namespace", 1, nil, func(c *host.ProviderConfig) { c.Namespace += "kit2" })
	if err != nil {
		return refused("open with another memory.namespace", err)
	}
	there := r.plant(s)
	for _, look := range []struct {
		in          *rig
		mine, other *plantedFact
		what        string
	}{{b.rig, here, there, "under another namespace"}, {r, there, here, "without that namespace"}} {
		result, err := look.in.ask(s)
		switch {
		case err != nil:
			return refused("retrieve in "+scopeName(s), err)
		case holds(result, look.other.name):
			return failed("%s found %s, which was told %s", scopeName(s), look.other.name, look.what)
		}
	}
	if o := control(here, there); o != nil && o.verdict != NotApplicable {
		return *o
	}
	return passed("the same scope under two namespaces, each found its own fact")
}

// checkApart requires that each fact is found in its own scope and in no other.
func (r *rig) checkApart(facts []*plantedFact) outcome {
	for _, p := range facts {
		if p.trouble != nil {
			return *p.trouble
		}
		result, err := r.ask(p.scope)
		if err != nil {
			return refused("retrieve in "+scopeName(p.scope), err)
		}
		for _, other := range facts {
			if other != p && holds(result, other.name) {
				return failed("%s found %s, which was told in %s", scopeName(p.scope), other.name, scopeName(other.scope))
			}
		}
	}
	if o := control(facts...); o != nil && o.verdict != NotApplicable {
		return *o
	}
	return passed("%d scopes, each found its own fact", len(facts))
}
