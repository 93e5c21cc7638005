package score

import (
	"slices"

	"github.com/memhost/memhost/eval/pack"
)

// saidWords are the words of each message of an event, in order.
func saidWords(e *pack.Event) [][]uint64 {
	var list [][]uint64
	for i := range e.Messages {
		if text := e.Messages[i].Content; text != nil {
			if said := allWords(fold(*text).text); len(said) > 0 {
				list = append(list, said)
			}
		}
	}
	return list
}

func allWords(text string) []uint64 {
	var list []uint64
	words(text, func(w word) { list = append(list, w.hash) })
	return list
}

// runWords is how many words in a row make an order: a list of a history's distinct words has hardly any such run.
const runWords = 4

// inOrder is the share of a message's words that are in runs of four words that shown texts hold, too. A message of
// fewer words is one run.
func inOrder(said []uint64, shown ...[]uint64) float64 {
	k := min(runWords, len(said))
	if k == 0 {
		return 0
	}
	runs := map[[runWords]uint64]bool{}
	run := func(list []uint64, i int) (r [runWords]uint64) {
		copy(r[:], list[i:i+k])
		return r
	}
	for _, text := range shown {
		for i := 0; i+k <= len(text); i++ {
			runs[run(text, i)] = true
		}
	}
	covered, until := 0, 0
	for i := 0; i+k <= len(said); i++ {
		if runs[run(said, i)] {
			covered += i + k - max(i, until)
			until = i + k
		}
	}
	return float64(covered) / float64(len(said))
}

// shownShare is the least share of one of an event's messages, in order, that has to be shown to be verbatim.
const shownShare = 0.75

// verbatim reports whether the shown spans of the items that name an event hold at least three quarters of one of its messages, in
// order. An event without words proves nothing, and is believed.
func (m *measuring) verbatim(id string) bool {
	e := m.persona.events[id]
	if e == nil || len(e.said) == 0 {
		return e != nil
	}
	var shown [][]uint64
	for i := range m.items {
		if x := &m.items[i]; x.shown() && slices.Contains(x.sources, id) {
			shown = append(shown, allWords(fold(m.context[x.start:x.end]).text))
		}
	}
	return slices.ContainsFunc(e.said, func(said []uint64) bool { return inOrder(said, shown...) >= shownShare })
}

// derivedWords bounds a derived item: a fact, not a page that holds the value somewhere.
const derivedWords = 60

// derived reports whether an item that names one of the events shows a gold value: a fact that the backend extracted. An
// item that shares its span with another one is none.
func (m *measuring) derived(ids []string) bool {
	for i := range m.items {
		x := &m.items[i]
		if !x.shown() || !slices.ContainsFunc(x.sources, func(id string) bool { return slices.Contains(ids, id) }) {
			continue
		}
		if slices.ContainsFunc(m.items, func(y item) bool {
			return y.Evidence != x.Evidence && y.shown() && y.start < x.end && x.start < y.end
		}) {
			continue
		}
		text := fold(m.context[x.start:x.end])
		if len(allWords(text.text)) <= derivedWords && slices.ContainsFunc(slices.Concat(m.answers...),
			func(value *folded) bool { return text.index(value.text, 0) >= 0 }) {
			return true
		}
	}
	return false
}

// order measures how many gold groups the whole shown text holds in order, whatever items claim.
func (m *measuring) order() {
	if !m.hasWords() {
		return
	}
	var shown [][]uint64
	for _, span := range m.spans() {
		shown = append(shown, allWords(fold(m.context[span[0]:span[1]]).text))
	}
	total, n := 0.0, 0
	for _, group := range m.groups {
		best, there := 0.0, false
		for _, id := range group {
			if e := m.persona.events[id]; e != nil {
				for _, said := range e.said {
					best, there = max(best, yes(inOrder(said, shown...) >= shownShare)), true
				}
			}
		}
		if there {
			total += best
			n++
		}
	}
	if n > 0 {
		m.values.set("in_order", total/float64(n))
	}
}
