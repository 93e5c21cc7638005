package score

import (
	"slices"

	"github.com/memhost/memhost/eval/pack"
)

// saidMessage is a message that is evidence for a probe: its words in order, and which of them no other event of the
// person has.
type saidMessage struct {
	words []uint64
	own   []bool
	runs  runs
}

// saidWords are the messages of an event that have words; of these only the ones with words of their own, where any has: an
// assistant's thanks are no evidence.
func saidWords(e *pack.Event, events map[uint64]int) []saidMessage {
	var list []saidMessage
	for i := range e.Messages {
		text := e.Messages[i].Content
		if text == nil {
			continue
		}
		m := saidMessage{words: allWords(fold(*text).text)}
		for _, w := range m.words {
			m.own = append(m.own, events[w] == 1)
		}
		if len(m.words) > 0 {
			m.runs = runsOf(m.words)
			list = append(list, m)
		}
	}
	own := func(m saidMessage) bool { return slices.Contains(m.own, true) }
	if slices.ContainsFunc(list, own) {
		list = slices.DeleteFunc(list, func(m saidMessage) bool { return !own(m) })
	}
	return list
}

// countEvents counts an event for each of its words.
func countEvents(counts map[uint64]int, e *pack.Event) {
	seen := map[uint64]bool{}
	words(fold(eventText(e)).text, func(w word) {
		if !seen[w.hash] {
			seen[w.hash] = true
			counts[w.hash]++
		}
	})
}

func allWords(text string) []uint64 {
	var list []uint64
	words(text, func(w word) { list = append(list, w.hash) })
	return list
}

// runWords is how many words in a row make an order: a list of a history's distinct words has hardly any such run.
const runWords = 4

// runs are where each run of k words begins in a text, by a hash of its words.
type runs struct {
	k      int
	begins map[uint64][]int
}

func runsOf(text []uint64) runs {
	r := runs{k: min(runWords, len(text)), begins: make(map[uint64][]int, len(text))}
	r.each(text, func(hash uint64, i int) { r.begins[hash] = append(r.begins[hash], i) })
	return r
}

// each calls back for every run of k words of a text, with its hash and where it begins.
func (r *runs) each(text []uint64, run func(hash uint64, i int)) {
	if r.k == 0 {
		return
	}
	hash := newSequenceHash(r.k)
	for i, w := range text {
		oldest := uint64(0)
		if i >= r.k {
			oldest = text[i-r.k]
		}
		if hash.add(w, oldest); i >= r.k-1 {
			run(hash.sum, i-r.k+1)
		}
	}
}

// mark marks the words of the text that are in runs that another text holds, too.
func (r *runs) mark(marked []bool, other []uint64) {
	r.each(other, func(hash uint64, _ int) {
		for _, start := range r.begins[hash] {
			for n := range r.k {
				marked[start+n] = true
			}
		}
	})
}

// markIn marks the words of another text that are in runs of this one.
func (r *runs) markIn(other []uint64, marked []bool) {
	r.each(other, func(hash uint64, i int) {
		if r.begins[hash] != nil {
			for n := range r.k {
				marked[i+n] = true
			}
		}
	})
}

// inOrder is the share of a message's words that are in runs of four words that shown texts hold, too; or the share of
// its own words, where that is less: what was said again with another name is not shown by what was said before. A message
// of fewer words is one run.
func (m *saidMessage) inOrder(shown ...[]uint64) float64 {
	marked := make([]bool, len(m.words))
	for _, text := range shown {
		m.runs.mark(marked, text)
	}
	all, covered, own, ownCovered := len(marked), 0.0, 0, 0.0
	for i := range marked {
		covered += yes(marked[i])
		if m.own[i] {
			own++
			ownCovered += yes(marked[i])
		}
	}
	switch {
	case all == 0:
		return 0
	case own == 0:
		return covered / float64(all)
	}
	return min(covered/float64(all), ownCovered/float64(own))
}

// ownWords is the share of a text's words that are in runs that an event's messages hold, too.
func (e *event) ownWords(text []uint64) float64 {
	marked := make([]bool, len(text))
	for i := range e.said {
		m := &e.said[i]
		m.runs.markIn(text, marked)
	}
	n := 0
	for _, own := range marked {
		n += int(yes(own))
	}
	return float64(n) / float64(max(1, len(text)))
}

// shownShare is the least share of one of an event's messages, in order, that has to be shown to be verbatim.
const shownShare = 0.75

// ownShare is the least share of an item's words that has to come from what it names, in order, of one event; of two or
// three, where the others may be no evidence and are not known here, a half or a third of it. A label and a time are not
// the event's words, and a page that holds them somewhere is no item of the event.
const ownShare = 0.5

// verbatim reports whether the shown spans of the items that name an event hold at least three quarters of one of its
// messages, in order, and little else. An event without words proves nothing, and is believed.
func (m *measuring) verbatim(id string) bool {
	e := m.persona.events[id]
	if e == nil || len(e.said) == 0 {
		return e != nil
	}
	var shown [][]uint64
	for i := range m.items {
		x := &m.items[i]
		if !x.shown() || !slices.Contains(x.sources, id) {
			continue
		}
		text := allWords(fold(m.context[x.start:x.end]).text)
		if e.ownWords(text) >= ownShare/float64(len(x.sources)) {
			shown = append(shown, text)
		}
	}
	return slices.ContainsFunc(e.said, func(said saidMessage) bool { return said.inOrder(shown...) >= shownShare })
}
