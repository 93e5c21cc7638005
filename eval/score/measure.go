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
	// locate: the provider says of no item where it is shown, so items are looked for by their text. raw is the
	// provider's answer (abi.RawResult as JSON), which items without a text of their own point into.
	locate bool
	raw    []byte
}

// reading is what one retrieval of a probe came to.
type reading struct {
	values values
	// err is the class of the error; an error has no values.
	err string
	// lacks: memory lacks an event that the probe is about, since recording it failed.
	lacks   bool
	pending bool
	// top is the provider's top score: NaN where it gives none, -Inf where nothing was found.
	top     float64
	context string // SHA-256
	// canaries of other clusters that the context or an item held.
	canaries  []canary
	truncated bool // the context was cut, by the provider's word
}

// item is one returned item.
type item struct {
	*abi.Evidence
	// sources are its source events; nil where it names none, or more than an item can be evidence of.
	sources    []string
	start, end int // of its words in the context; equal where it is not shown
}

func (i *item) shown() bool { return i.end > i.start }

// measure works out every metric of a retrieval.
func (t *timeline) measure(p *probe, r *retrieval) *reading {
	out := &reading{values: newValues(), top: math.NaN()}
	v := out.values
	body := fold(r.context)
	items := r.items(body)
	m := &measuring{timeline: t, probe: p, retrieval: r, body: body, items: items, values: v}
	m.ranks()
	m.shownEvidence()
	m.content(out)
	m.order()
	m.answer()
	m.validity()
	m.costs()
	switch {
	case len(items) == 0:
		out.top = math.Inf(-1)
	case r.trace != nil && r.trace.TopScore != nil:
		out.top = *r.trace.TopScore
	}
	out.truncated = r.trace != nil && r.trace.Truncated != nil && *r.trace.Truncated
	return out
}

// items are the evidence in the order of its ranks, with the place of each in the context.
func (r *retrieval) items(body *folded) []item {
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

// attributed are the distinct source events of an item, where there are 1 to 3.
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

// measuring is one retrieval while it is measured.
type measuring struct {
	*timeline
	*probe
	*retrieval
	body   *folded
	items  []item
	values values
}

// ranks are the metrics of the items' order.
func (m *measuring) ranks() {
	m.values.set("items", float64(len(m.items)))
	if m.unanswerable() {
		m.values.set("items_unanswerable", float64(len(m.items)))
	}
	named, elsewhere := 0, 0
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
		// An item without a source keeps its place; a session that is there already needs none.
		if len(from) > 0 || !repeated {
			sessions = append(sessions, from)
		}
		if len(sources) > 0 {
			named++
			elsewhere += int(yes(other))
		}
	}
	if len(m.items) > 0 {
		m.values.set("coverage", float64(named)/float64(len(m.items)))
	}
	if m.hasContext() && named > 0 {
		m.values.set("other_context", float64(elsewhere)/float64(named))
	}
	if m.hasEvidence() {
		m.values.setRanks("", scoreRanks(firstRanks(m.groups, ranking)))
		if len(m.sessions) > 0 {
			m.values.setRanks("session.", scoreRanks(firstRanks(m.sessions, sessions)))
		}
	}
}

// shownEvidence is the evidence inside the context.
func (m *measuring) shownEvidence() {
	if !m.hasEvidence() {
		return
	}
	served, named, derived := 0, 0, 0
	for _, group := range m.groups {
		if _, shown := m.shownEvent(group); shown {
			served++
		}
		if m.namedEvent(group) {
			named++
		}
		derived += int(yes(m.hasAnswers() && m.derived(group)))
	}
	if named > 0 {
		m.values.set("unsupported", float64(named-served)/float64(named))
	}
	if m.hasAnswers() {
		m.values.set("derived@tokens", float64(derived)/float64(len(m.groups)))
	}
	m.values.set("recall@tokens", float64(served)/float64(len(m.groups)))
	m.values.set("all@tokens", yes(served == len(m.groups)))
}

// namedEvent reports whether a shown item names one of the events, whatever it shows.
func (m *measuring) namedEvent(ids []string) bool {
	return slices.ContainsFunc(m.items, func(x item) bool {
		return x.shown() && slices.ContainsFunc(x.sources, func(id string) bool { return slices.Contains(ids, id) })
	})
}

// shownEvent is where the context first shows one of the events, by an attributed item whose text is the event's.
func (m *measuring) shownEvent(ids []string) (at int, shown bool) {
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

// spans are the shown ranges of the context, sorted; the whole body where the provider lists no items at all.
func (m *measuring) spans() [][2]int {
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

// element is the range of a context inside its element: without the tags, which hold the scope's names.
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

// content looks for the words of the evidence in the shown text, and for other clusters' canaries in the whole body.
func (m *measuring) content(out *reading) {
	wanted := map[uint64]bool{} // word -> found
	for _, groups := range [][][][]uint64{m.probe.content, m.foreign} {
		for _, group := range groups {
			for _, member := range group {
				for _, w := range member {
					wanted[w] = false
				}
			}
		}
	}
	spans := m.spans()
	start, end := element(m.context)
	words(m.body.text, func(w word) {
		at := int(m.body.at[w.start])
		for len(spans) > 0 && spans[0][1] <= at {
			spans = spans[1:]
		}
		if found, asked := wanted[w.hash]; asked && !found && len(spans) > 0 && spans[0][0] <= at {
			wanted[w.hash] = true
		}
		if at >= start && at < end {
			out.canaries = m.foreignCanary(out.canaries, m.body, w)
		}
	})
	for i := range m.items { // what was returned and not shown is a leak, too
		if x := &m.items[i]; len(m.canaries) > 0 && !x.shown() {
			text := fold(x.Text)
			words(text.text, func(w word) { out.canaries = m.foreignCanary(out.canaries, text, w) })
		}
	}
	if m.hasWords() {
		m.values.set("content", contentShare(m.probe.content, wanted))
	}
	if m.hasFalseWords() {
		m.values.set("content_false", contentShare(m.foreign, wanted))
	}
}

// contentShare is the mean over groups of the best member's share of words that were found.
func contentShare(groups [][][]uint64, found map[uint64]bool) float64 {
	total := 0.0
	for _, group := range groups {
		best := 0.0
		for _, member := range group {
			n := 0
			for _, w := range member {
				n += int(yes(found[w]))
			}
			best = max(best, float64(n)/float64(len(member)))
		}
		total += best
	}
	return total / float64(len(groups))
}

// foreignCanary adds the canary of another cluster that begins with a word.
func (m *measuring) foreignCanary(list []canary, text *folded, w word) []canary {
	for _, c := range m.canaries[w.hash] {
		if c.owner.cluster != m.persona.cluster && text.index(c.text, w.start) == w.start && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// find is where the body of the context first holds a text, by the folded text; -1 where it does not.
func (m *measuring) find(text *folded) int {
	start, _ := element(m.context)
	at := m.body.index(text.text, 0)
	for at >= 0 && int(m.body.at[at]) < start {
		at = m.body.index(text.text, at+1)
	}
	return at
}

// answer looks for answers and forbidden texts.
func (m *measuring) answer() {
	if m.hasAnswers() {
		all := true
		for _, group := range m.answers {
			all = all && slices.ContainsFunc(group, func(text *folded) bool { return m.find(text) >= 0 })
		}
		m.values.set("answer_shown", yes(all))
	}
	if m.hasForbidden() {
		m.values.set("forbidden_shown", yes(slices.ContainsFunc(m.forbidden,
			func(text *folded) bool { return m.find(text) >= 0 })))
	}
}

// validity reports whether the present value is shown, and which earlier ones are, flagged or not.
func (m *measuring) validity() {
	if !m.hasStale() {
		return
	}
	current := m.current()
	first, oldest := -1, math.NaN()
	for _, s := range m.stale {
		at, unflagged := m.staleShown(s)
		if at < 0 {
			continue
		}
		if first < 0 || at < first {
			first = at
		}
		if unflagged {
			if age := days(s.at, m.asOf); !(age <= oldest) { // also where there is none yet
				oldest = age
			}
		}
	}
	m.values.set("current_shown", yes(current >= 0))
	m.values.set("stale_shown", yes(first >= 0))
	m.values.set("current_first", yes(current >= 0 && (first < 0 || current < first)))
	m.values.set("stale_unflagged", yes(!math.IsNaN(oldest)))
	m.values.set("stale_age_days", oldest)
}

// current is where the present value is first shown whole, as an offset in the context: the place of the last group. It
// is -1 where one is not shown. By value where gold has answers, else by event.
func (m *measuring) current() int {
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

// staleShown is where an earlier value is first shown, as an offset in the context, and whether one place of it is not
// flagged; -1 where it is not shown.
func (m *measuring) staleShown(s stale) (first int, unflagged bool) {
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

// flags are the signs that something no longer holds, as formatters print them around an item. The last is not a sign
// in prose.
var flags = []string{"superseded", "invalid", "expired", "outdated", "obsolete", "no longer", "until "}

// flagged reports whether the line or lines around a place of the context say that what is there no longer holds: one
// of the words above outside the item's own, or the day on which the item became invalid.
func (m *measuring) flagged(at int) bool {
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

// costs are what the context takes.
func (m *measuring) costs() {
	if m.trace == nil {
		return
	}
	for name, n := range map[string]*int64{"context_tokens": m.trace.TokenCount, "frame_tokens": m.trace.FrameTokens,
		"shortfall": m.trace.BudgetShortfall} {
		if n != nil {
			m.values.set(name, float64(*n))
		}
	}
}
