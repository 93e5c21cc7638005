package main

import (
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// report is what could be tidied on a branch. Only duplicates and what has expired are forgotten by it; the rest is for a reader to judge.
type report struct {
	duplicates, expired, uncertain, repeated []*entry
	rivals                                   map[string][]string
	dead                                     int64
}

// examine reads every active entry of a view.
func (l *ledger) examine(v *view) (*report, error) {
	r := &report{rivals: map[string][]string{}}
	facts, objects := map[string][]*entry{}, map[string]*entry{}
	var order []string
	if err := l.each(v.prefix+"item/", func(i sdk.Item) error {
		e, err := unpack(i.Value)
		if err != nil {
			return damaged(i.Key)
		}
		about := fold(e.Subject) + "\x00" + fold(e.Predicate)
		switch {
		case l.expired(e):
			r.expired = append(r.expired, e)
			return nil
		case e.observed():
			if e.Count >= 3 {
				r.repeated = append(r.repeated, e)
			}
			return nil
		}
		if e.Confidence < 300 {
			r.uncertain = append(r.uncertain, e)
		}
		// The same value in two lineages, which a modify can bring about. The one that was touched last stays.
		exact := about + "\x00" + fold(e.Object) + "\x00" + e.Scope + "\x00" + e.Topic
		if objects[exact] != nil {
			r.duplicates = append(r.duplicates, e)
			return nil
		}
		objects[exact] = e
		if facts[about] == nil {
			order = append(order, about)
		}
		facts[about] = append(facts[about], e)
		return nil
	}); err != nil {
		return nil, err
	}
	known := r.repeated[:0]
	for _, e := range r.repeated {
		if facts[fold(e.Subject)+"\x00"+fold(e.Predicate)] == nil {
			known = append(known, e)
		}
	}
	r.repeated = known
	for _, about := range order {
		if list := facts[about]; len(list) > 1 {
			for _, e := range list {
				r.rivals[list[0].Subject+" "+list[0].Predicate] = append(r.rivals[list[0].Subject+" "+list[0].Predicate], e.EventID)
			}
		}
	}
	var err error
	r.dead, _, err = l.tally(deadPrefix)
	return r, err
}

func idsOf(entries []*entry) []string {
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.EventID)
	}
	return ids
}

func (r *report) details() abi.Members[abi.Raw] {
	var rivals [][]byte
	for _, ids := range sortedBy(r.rivals) {
		rivals = append(rivals, appendTexts(nil, ids))
	}
	list := []byte{'['}
	for i, each := range rivals {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, each...)
	}
	return abi.Members[abi.Raw]{{Name: "duplicates", Value: appendTexts(nil, idsOf(r.duplicates))}, {Name: "several_objects", Value: append(list, ']')},
		{Name: "expired", Value: appendTexts(nil, idsOf(r.expired))}, {Name: "low_confidence", Value: appendTexts(nil, idsOf(r.uncertain))},
		{Name: "repeated_observations", Value: appendTexts(nil, idsOf(r.repeated))}, {Name: "dead_letters", Value: sdk.Number(r.dead)}}
}

func (l *ledger) queryReport(p *params) ([]byte, error) {
	if p.flag("apply") {
		return nil, wrong("params.apply", "a query changes nothing; apply is a mutation")
	}
	_, v, err := l.branchOf(p)
	if err != nil {
		return nil, err
	}
	r, err := l.examine(v)
	if err != nil {
		return nil, err
	}
	out := []byte{'{'}
	for i, detail := range r.details() {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(appendString(out, detail.Name), ':'), detail.Value...)
	}
	return append(out, '}'), nil
}

// consolidate extracts what waits, and forgets what the report calls a duplicate or expired, in one commit. Without apply it forgets nothing.
func (l *ledger) consolidate(p *params) (*abi.MutationReceipt, error) {
	apply := p.flag("apply")
	p.text("branch")
	if err := p.done(); err != nil {
		return nil, err
	}
	if l.s.llm != nil {
		if err := l.work(false); err != nil {
			return nil, err
		}
	}
	b, v, err := l.branchOf(p)
	if err != nil {
		return nil, err
	}
	r, err := l.examine(v)
	if err != nil {
		return nil, err
	}
	doomed := append(append([]*entry(nil), r.duplicates...), r.expired...)
	if !apply || len(doomed) == 0 {
		return l.result(noChange, nil, r.details()), nil
	}
	_, ids, err := l.forgetAll(b, v, doomed, "Consolidate", "")
	if err != nil {
		return nil, err
	}
	return l.result(applied, ids, r.details()), nil
}

// sortedBy is a map's values in the order of their keys.
func sortedBy(m map[string][]string) [][]string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	values := make([][]string, len(keys))
	for i, key := range keys {
		values[i] = m[key]
	}
	return values
}
