package conformance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/memhost/memhost/abi"
)

// namer makes up proper names that no language has.
type namer struct {
	mu   sync.Mutex
	used map[string]bool
}

// name is one that was not given before: three syllables, such as Zorvexum.
func (n *namer) name() string {
	first := []string{"Zor", "Quil", "Bran", "Thar", "Vex", "Jor", "Mip", "Wux", "Krel", "Fyn", "Dax", "Gloz", "Plim",
		"Yast", "Xan", "Hob"}
	middle := []string{"vex", "bri", "dol", "mag", "nup", "rof", "siv", "tuk", "wab", "zin", "gor", "lyp", "quo", "fam",
		"jex", "cah"}
	last := []string{"um", "ix", "or", "an", "el", "ak", "is", "oth", "yn", "ub", "eg", "op", "az", "im", "ur", "ev"}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.used == nil {
		n.used = map[string]bool{}
	}
	for {
		name := first[rand.IntN(len(first))] + middle[rand.IntN(len(middle))] + last[rand.IntN(len(last))]
		if !n.used[name] {
			n.used[name] = true
			return name
		}
	}
}

// plantedFact is a fact that was recorded in a scope.
type plantedFact struct {
	scope abi.MemoryScope
	name  string
	// events and receipts are of the wordings that it took.
	events   []*abi.MemoryEvent
	receipts []*abi.WriteReceipt
	// found is the answer that held the name, from a new session after the wait.
	found *abi.RetrieveResult
	// trouble is why it was not found, unless the provider simply returned nothing.
	trouble *outcome
}

// retained reports whether the receipts claim that the fact was kept.
func (p *plantedFact) retained() bool {
	for _, r := range p.receipts {
		if r.Status != abi.StatusNotRetained {
			return true
		}
	}
	return len(p.receipts) == 0
}

// plant tells a fact in a scope and looks for it, in three wordings at most.
func (r *rig) plant(s abi.MemoryScope) *plantedFact { return r.plantWith(s, nil) }

// plantWith lets edit change each event before it is recorded.
func (r *rig) plantWith(s abi.MemoryScope, edit func(*abi.MemoryEvent)) *plantedFact {
	b := r.bench
	p := &plantedFact{scope: s, name: b.kit.names.name()}
	for _, wording := range b.kit.target.Probe.Wordings {
		e := b.event(s, wording(p.name))
		if edit != nil {
			edit(e)
		}
		receipt, err := r.record(b.ctx, e)
		if err != nil {
			o := refused("record_event in "+scopeName(s), err)
			p.trouble = &o
			return p
		}
		p.events, p.receipts = append(p.events, e), append(p.receipts, receipt)
		if p.trouble = r.findOnce(p); p.trouble != nil || p.found != nil || !p.retained() {
			return p
		}
	}
	return p
}

// findOnce waits and asks once.
func (r *rig) findOnce(p *plantedFact) *outcome {
	if o := r.wait(p.scope); o != nil {
		return o
	}
	result, err := r.ask(p.scope)
	if err != nil {
		o := refused("retrieve in "+scopeName(p.scope), err)
		return &o
	}
	if holds(result, p.name) {
		p.found = result
	}
	return nil
}

// plantAll tells a fact in each scope, four at once.
func (r *rig) plantAll(scopes []abi.MemoryScope) []*plantedFact {
	list := make([]*plantedFact, len(scopes))
	parallel(len(scopes), 4, func(i int) { list[i] = r.plant(scopes[i]) })
	return list
}

// control is the positive control of a "not found": nil when every fact was found. A provider that retains nothing has
// none.
func control(facts ...*plantedFact) *outcome {
	for _, p := range facts {
		switch {
		case p.trouble != nil:
			return p.trouble
		case p.found != nil:
		case !p.retained():
			o := foundOut("positive control: every receipt says not_retained")
			return &o
		default:
			o := inconclusive("positive control: %s was told in %d wordings and not found in %s", p.name, len(p.events),
				scopeName(p.scope))
			return &o
		}
	}
	return nil
}

// holds looks for a name in everything that an answer gives, without regard to case.
func holds(result *abi.RetrieveResult, name string) bool {
	name = strings.ToLower(name)
	for _, c := range result.Raw.Calls {
		if strings.Contains(strings.ToLower(string(c.Body)), name) {
			return true
		}
	}
	if strings.Contains(strings.ToLower(result.FormattedContext), name) {
		return true
	}
	for _, e := range result.Evidence {
		if strings.Contains(strings.ToLower(e.Text), name) {
			return true
		}
	}
	return false
}

// mentions counts how often raw holds a name.
func mentions(result *abi.RetrieveResult, name string) int {
	n := 0
	for _, c := range result.Raw.Calls {
		n += strings.Count(strings.ToLower(string(c.Body)), strings.ToLower(name))
	}
	return n
}

// scopeName returns a scope's name for messages.
func scopeName(s abi.MemoryScope) string {
	return fmt.Sprintf("scope %q/%q", short(s.RunID, 60), short(s.PersonaID, 60))
}
