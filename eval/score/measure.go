package score

import (
	"math"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
)

// retrieval is one answered retrieval.
type retrieval struct {
	evidence []abi.Evidence
	context  string // formatted
	trace    *abi.Trace
	// locate means that the provider never says where items are shown, so items are searched by their text. raw is the
	// provider's answer (abi.RawResult as JSON), which items without their own text point into.
	locate bool
	raw    []byte
}

// reading is the result of measuring one retrieval of a probe.
type reading struct {
	values values
	// err is the class of the error; readings with an error have no values.
	err string
	// lacks means that memory lacks an event that the probe is about, because recording it failed.
	lacks   bool
	pending bool
	// leaked means that the user named the preference first, in this conversation or in the same one of another column.
	leaked bool
	// top is the provider's top score: NaN if it gives none, -Inf if nothing was found.
	top     float64
	context string // SHA-256
	// canaries of other clusters in the context or in an item
	canaries  []canary
	truncated bool // the context was cut, according to the provider
}

// item is one returned item.
type item struct {
	*abi.Evidence
	// sources are its source events; nil if it names none, or too many to be evidence for any.
	sources    []string
	start, end int // range of its words in the context; empty if it is not shown
}

func (i *item) shown() bool { return i.end > i.start }

// measure computes every metric of a retrieval.
func (t *timeline) measure(p *probe, r *retrieval) *reading {
	m := t.measuring(p, r)
	out := &reading{values: newValues(), top: math.NaN(), canaries: m.scan().canaries}
	for i := range metrics {
		if x := &metrics[i]; x.measure != nil && x.applies(p) {
			out.values[i] = x.measure(m)
		}
	}
	switch {
	case len(m.items) == 0:
		out.top = math.Inf(-1)
	case m.trace.TopScore != nil:
		out.top = *m.trace.TopScore
	}
	out.truncated = m.trace.Truncated != nil && *m.trace.Truncated
	return out
}

// items returns the evidence in order of rank, with the position of each in the context.
func (r *retrieval) items(body *foldedText) []item {
	list := make([]item, len(r.evidence))
	for i := range r.evidence {
		e := &r.evidence[i]
		list[i] = item{Evidence: e, sources: attributed(e.SourceEventIDs)}
		if s := e.Shown; s != nil && 0 <= s.Start && s.Start < s.End && s.End <= int64(len(r.context)) {
			list[i].start, list[i].end = int(s.Start), int(s.End)
		}
	}
	slices.SortStableFunc(list, func(a, b item) int { return int(a.Rank - b.Rank) })
	if r.locate {
		r.find(list, body)
	}
	return list
}

// attributed returns the distinct source events of an item, if there are 1 to 3.
func attributed(ids []string) []string {
	var list []string
	for _, id := range ids {
		if !slices.Contains(list, id) {
			list = append(list, id)
		}
		if len(list) > maxSources {
			return nil
		}
	}
	return list
}

// measurement is a retrieval that is being measured. What several metrics need is only computed once.
type measurement struct {
	*timeline
	*probe
	*retrieval
	body  *foldedText
	items []item

	ranked       lazy[*ranks]
	scanned      lazy[*scan]
	servedGroups lazy[int]
	values       lazy[*shownValues]
}

func (t *timeline) measuring(p *probe, r *retrieval) *measurement {
	body := fold(r.context)
	if r.trace == nil {
		r.trace = new(abi.Trace)
	}
	return &measurement{timeline: t, probe: p, retrieval: r, body: body, items: r.items(body)}
}

// lazy is a lazily computed value.
type lazy[T any] struct {
	value T
	known bool
}

func (o *lazy[T]) get(work func() T) T {
	if !o.known {
		o.value, o.known = work(), true
	}
	return o.value
}

// ranks has the scores of the items' order, and the numbers of items that name a source, and of those that name one of
// another context.
type ranks struct {
	events, sessions *rankScores
	named, elsewhere int
}

func (m *measurement) ranks() *ranks { return m.ranked.get(m.rank) }

func (m *measurement) rank() *ranks {
	r := &ranks{}
	ranking := make([][]string, len(m.items))
	var sessions [][]int
	seen := map[int]bool{}
	for i := range m.items {
		sources := m.items[i].sources
		ranking[i] = sources
		other, repeated := false, false
		var from []int
		for _, id := range sources {
			e := m.persona.events[id]
			if e == nil {
				continue
			}
			repeated = repeated || seen[e.session]
			if !seen[e.session] {
				from, seen[e.session] = append(from, e.session), true
			}
			other = other || e.context != "" && e.context != m.Context
		}
		// An item without a source keeps its place; a session that is already listed is not repeated.
		if len(from) > 0 || !repeated {
			sessions = append(sessions, from)
		}
		if len(sources) > 0 {
			r.named++
			r.elsewhere += int(yes(other))
		}
	}
	if m.hasEvidence() {
		scores := scoreRanks(firstRanks(m.groups, ranking))
		r.events = &scores
	}
	if m.hasSessions() {
		scores := scoreRanks(firstRanks(m.sessions, sessions))
		r.sessions = &scores
	}
	return r
}

// shownEvent returns where the context first shows one of the events: an attributed item with the event's text.
func (m *measurement) shownEvent(ids []string) (at int, shown bool) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !m.verbatim(id) })
	for i := range m.items {
		x := &m.items[i]
		if x.shown() && slices.ContainsFunc(x.sources, func(id string) bool { return slices.Contains(ids, id) }) &&
			(!shown || x.start < at) {
			at, shown = x.start, true
		}
	}
	return at, shown
}

// spans returns the shown ranges of the context, sorted; the whole body if the provider lists no items.
func (m *measurement) spans() [][2]int {
	if len(m.items) == 0 {
		start, end := element(m.context)
		return [][2]int{{start, end}}
	}
	var list [][2]int
	for i := range m.items {
		if m.items[i].shown() {
			list = append(list, [2]int{m.items[i].start, m.items[i].end})
		}
	}
	slices.SortFunc(list, func(a, b [2]int) int { return a[0] - b[0] })
	return list
}

// element returns the range of a context inside its element: without the tags, which contain the scope's names.
func element(context string) (start, end int) {
	end = len(context)
	if strings.HasPrefix(context, "<"+abi.ContextTag) {
		if i := strings.IndexByte(context, '>'); i >= 0 {
			start = i + 1
		}
		if i := strings.LastIndex(context, "</"+abi.ContextTag); i >= start {
			end = i
		}
	}
	return start, end
}

// scan is the result of one pass over the words of a context.
type scan struct {
	// found has the words of the evidence, and of another cluster's, that are in shown text.
	found map[uint64]bool
	// shown has the words of each shown span, in order.
	shown    [][]uint64
	canaries []canary // of other clusters, in the whole body and in items that are not shown
}

func (m *measurement) scan() *scan { return m.scanned.get(m.scanContext) }

func (m *measurement) scanContext() *scan {
	out := &scan{found: map[uint64]bool{}}
	wanted := map[uint64]bool{}
	for _, groups := range [][][][]uint64{m.content, m.foreign} {
		for _, group := range groups {
			for _, member := range group {
				for _, w := range member {
					wanted[w] = true
				}
			}
		}
	}
	spans := m.spans()
	out.shown = make([][]uint64, len(spans))
	span := 0
	start, end := element(m.context)
	words(m.body.text, func(w word) {
		at := int(m.body.at[w.start])
		for span < len(spans) && spans[span][1] <= at {
			span++
		}
		if span < len(spans) && spans[span][0] <= at {
			out.shown[span] = append(out.shown[span], w.hash)
			if wanted[w.hash] {
				out.found[w.hash] = true
			}
		}
		if at >= start && at < end {
			out.canaries = m.foreignCanary(out.canaries, m.body, w)
		}
	})
	for i := range m.items { // an item that was returned but not shown is a leak, too
		if x := &m.items[i]; len(m.canaries) > 0 && !x.shown() {
			text := fold(x.Text)
			words(text.text, func(w word) { out.canaries = m.foreignCanary(out.canaries, text, w) })
		}
	}
	return out
}

// foreignCanary adds the canary of another cluster that starts with a word.
func (m *measurement) foreignCanary(list []canary, text *foldedText, w word) []canary {
	for _, c := range m.canaries[w.hash] {
		if c.owner.cluster != m.persona.cluster && text.index(c.text, w.start) == w.start && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// find returns where the body of the context first contains a folded text; -1 if it does not.
func (m *measurement) find(text *foldedText) int {
	start, _ := element(m.context)
	at := m.body.index(text.text, 0)
	for at >= 0 && int(m.body.at[at]) < start {
		at = m.body.index(text.text, at+1)
	}
	return at
}

// shownValues has where the present value and an earlier one are first shown, as offsets in the context, or -1. age is
// how many days ago the oldest value that is shown unflagged was superseded; NaN if there is none.
type shownValues struct {
	current, stale int
	age            float64
}

func (m *measurement) shownValues() *shownValues {
	return m.values.get(func() *shownValues {
		v := &shownValues{current: m.current(), stale: -1, age: math.NaN()}
		for _, s := range m.stale {
			at, unflagged := m.staleShown(s)
			if at < 0 {
				continue
			}
			if v.stale < 0 || at < v.stale {
				v.stale = at
			}
			if unflagged {
				if age := days(s.at, m.asOf); !(age <= v.age) { // also true if age is NaN
					v.age = age
				}
			}
		}
		return v
	})
}

// current is where the present value is first shown completely, as an offset in the context: the position of the last
// group. It is -1 if a group is not shown. Groups are of values if gold has answers, else of events.
func (m *measurement) current() int {
	last := -1
	if m.hasAnswers() {
		for _, group := range m.answers {
			best := -1
			for _, text := range group {
				if at := m.find(text); at >= 0 && (best < 0 || at < best) {
					best = at
				}
			}
			if best < 0 {
				return -1
			}
			last = max(last, int(m.body.at[best]))
		}
		return last
	}
	for _, group := range m.groups {
		at, shown := m.shownEvent(group)
		if !shown {
			return -1
		}
		last = max(last, at)
	}
	return last
}

// staleShown is where an earlier value is first shown, as an offset in the context, or -1. unflagged reports whether
// one of its occurrences is not flagged.
func (m *measurement) staleShown(s staleValue) (first int, unflagged bool) {
	first = -1
	if s.value.text == "" {
		for i := range m.items {
			if x := &m.items[i]; x.shown() && slices.Contains(x.sources, s.eventID) {
				if first < 0 || x.start < first {
					first = x.start
				}
				unflagged = unflagged || !m.flagged(x.start)
			}
		}
		return first, unflagged
	}
	start, _ := element(m.context)
	for at := m.body.index(s.value.text, 0); at >= 0; at = m.body.index(s.value.text, at+1) {
		original := int(m.body.at[at])
		if original < start {
			continue
		}
		if first < 0 {
			first = original
		}
		unflagged = unflagged || !m.flagged(original)
	}
	return first, unflagged
}

// flags are the marks with which formatters indicate that something no longer holds. The last one also occurs in prose.
var flags = []string{"superseded", "invalid", "expired", "outdated", "obsolete", "no longer", "until "}

// flagged reports whether the lines around a place in the context say that it no longer holds: by one of the words
// above, outside the item's own text, or by the day on which the item became invalid.
func (m *measurement) flagged(at int) bool {
	from, to := at, at
	var own *item
	for i := range m.items {
		if x := &m.items[i]; x.shown() && x.start <= at && at < x.end {
			own, from, to = x, x.start, x.end
			break
		}
	}
	start := strings.LastIndexByte(m.context[:from], '\n') + 1
	end := len(m.context)
	if i := strings.IndexByte(m.context[to:], '\n'); i >= 0 {
		end = to + i
	}
	signs, around := flags, strings.ToLower(m.context[start:from]+" "+m.context[to:end])
	if own == nil {
		signs, around = flags[:len(flags)-1], strings.ToLower(m.context[start:end])
	}
	if slices.ContainsFunc(signs, func(flag string) bool { return strings.Contains(around, flag) }) {
		return true
	}
	if own == nil {
		return false
	}
	for _, at := range []string{own.InvalidAt, own.ExpiredAt} {
		if len(at) >= len("2026-01-02") && strings.Contains(around, at[:len("2026-01-02")]) {
			return true
		}
	}
	return false
}
