package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// report lists what could be tidied on a branch. Only duplicates and expired facts are forgotten automatically; the
// rest is for a reader to judge.
type report struct {
	duplicates, expired, uncertain, repeated []*entry
	// rivals are facts with the same subject and predicate, but different objects.
	rivals [][]*entry
	dead   int64
}

// about identifies the subject and predicate of a fact, for comparisons.
func (e *entry) about() string { return fold(e.Subject) + "\x00" + fold(e.Predicate) }

// normalizeObject returns an object without insignificant differences: case, blanks, surrounding quotes, and a full
// stop, comma or exclamation mark at its end.
func normalizeObject(object string) string {
	return strings.Join(strings.Fields(strings.TrimRight(strings.Trim(fold(object), "\"'"), ".,;!\"' ")), " ")
}

// examine reads every active entry of a view.
func (l *ledger) examine(v *view) *report {
	r := &report{dead: l.tally(deadPrefix).Count}
	facts, objects := map[string][]*entry{}, map[string]bool{}
	for item := range l.Values(v.prefix + itemPart) {
		e := l.unpack(item.Key, item.Value)
		switch {
		case l.expired(e):
			r.expired = append(r.expired, e)
			continue
		case e.observed():
			if e.Count >= 3 {
				r.repeated = append(r.repeated, e)
			}
			continue
		case e.Confidence < 300:
			r.uncertain = append(r.uncertain, e)
		}
		// The same value in two lineages, caused by a modify or by another spelling. The most recently changed one
		// stays.
		exact := e.about() + "\x00" + normalizeObject(e.Object) + "\x00" + e.Scope + "\x00" + e.Topic
		if objects[exact] {
			r.duplicates = append(r.duplicates, e)
			continue
		}
		objects[exact] = true
		facts[e.about()] = append(facts[e.about()], e)
	}
	r.repeated = slices.DeleteFunc(r.repeated, func(e *entry) bool { return facts[e.about()] != nil })
	for _, about := range abi.SortedKeys(facts) {
		if len(facts[about]) > 1 {
			r.rivals = append(r.rivals, facts[about])
		}
	}
	return r
}

func idsOf(entries []*entry) abi.Raw {
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.EventID)
	}
	return object.Texts(ids)
}

func (r *report) notes() []note {
	var rivals wirejson.Encoder
	rivals.ArrStart()
	for _, facts := range r.rivals {
		rivals.Raw(idsOf(facts))
	}
	rivals.ArrEnd()
	return []note{{"duplicates", idsOf(r.duplicates)}, {"several_objects", rivals.Bytes()},
		{"expired", idsOf(r.expired)},
		{"low_confidence", idsOf(r.uncertain)},
		{"repeated_observations", idsOf(r.repeated)}, {"dead_letters", sdk.Number(r.dead)}}
}

func (l *ledger) queryReport(p *params, answer *wirejson.Encoder) {
	if p.flag("apply") {
		p.fail("apply", "a query changes nothing; apply is a mutation")
	}
	_, v := p.branch()
	answer.ObjStart()
	for _, n := range l.examine(v).notes() {
		answer.FieldStart(n.name)
		answer.Raw(n.value)
	}
	answer.ObjEnd()
}

// consolidatedKey holds when tidy last ran, in ms since 1970.
const consolidatedKey = "consolidated"

// tidy forgets the duplicates and expired facts of the report on every branch, with one commit each, if that is due by
// the clock.
func (l *ledger) tidy() {
	stored, version := l.Get(consolidatedKey)
	last, _ := strconv.ParseInt(string(stored), 10, 64) // the first time: 0
	now := l.NowMS()
	if l.s.consolidateMS == 0 || now >= last && now-last < l.s.consolidateMS {
		return
	}
	l.Put(consolidatedKey, []byte(sdk.Itoa(now)), version)
	l.of = state.Seconds(l.timeline())
	defer func() { l.of = "" }()
	for _, each := range l.branches() {
		b, v := l.onView(each.Name)
		r := l.examine(v)
		if doomed := slices.Concat(r.duplicates, r.expired); len(doomed) > 0 {
			l.forgetAll(b, v, doomed, "Consolidate, as scheduled", "")
		}
	}
}

// consolidate extracts waiting events, and forgets the duplicates and expired facts of the report in one commit.
// Without apply it forgets nothing.
func (l *ledger) consolidate(p *params) *abi.MutationReceipt {
	apply, name := p.flag("apply"), p.text("branch")
	p.rejectUnknown()
	if l.s.llm != nil {
		l.work(false)
	}
	b, v := l.onView(name)
	r := l.examine(v)
	doomed := slices.Concat(r.duplicates, r.expired)
	if !apply || len(doomed) == 0 {
		return l.receiptOf(noChange, nil, r.notes()...)
	}
	_, ids := l.forgetAll(b, v, doomed, "Consolidate", "")
	return l.receiptOf(applied, ids, r.notes()...)
}
