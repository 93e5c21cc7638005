package score

import (
	"slices"

	"github.com/memhost/memhost/eval/pack"
)

// evidenceMessage is a message that is evidence for a probe: its words in order, and which of them occur in no other
// event of the person.
type evidenceMessage struct {
	words []uint64
	own   []bool
	runs  runs
}

// evidenceWords returns the messages of an event that have words. If any of them has words that occur in no other
// event, it returns only such messages: an assistant's thanks are not evidence.
func evidenceWords(e *pack.Event, events map[uint64]int) []evidenceMessage {
	var list []evidenceMessage
	for i := range e.Messages {
		text := e.Messages[i].Content
		if text == nil {
			continue
		}
		m := evidenceMessage{words: allWords(fold(*text).text)}
		for _, w := range m.words {
			m.own = append(m.own, events[w] == 1)
		}
		if len(m.words) > 0 {
			m.runs = runsOf(m.words)
			list = append(list, m)
		}
	}
	own := func(m evidenceMessage) bool { return slices.Contains(m.own, true) }
	if slices.ContainsFunc(list, own) {
		list = slices.DeleteFunc(list, func(m evidenceMessage) bool { return !own(m) })
	}
	return list
}

// countEvents increments the event count of each word in an event.
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

// runWords is how many consecutive words count as an order: a list of the distinct words in a history has hardly any
// such run.
const runWords = 4

// runs has the start of each run of k words in a text, by a hash of its words.
type runs struct {
	k      int
	begins map[uint64][]int
}

func runsOf(text []uint64) runs {
	r := runs{k: min(runWords, len(text)), begins: make(map[uint64][]int, len(text))}
	r.each(text, func(hash uint64, i int) { r.begins[hash] = append(r.begins[hash], i) })
	return r
}

// each calls run for every run of k words in a text, with its hash and start.
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

// mark marks the words of the text that are in runs which also occur in another text.
func (r *runs) mark(marked []bool, other []uint64) {
	r.each(other, func(hash uint64, _ int) {
		for _, start := range r.begins[hash] {
			for n := range r.k {
				marked[start+n] = true
			}
		}
	})
}

// markIn marks the words of another text that are in runs which also occur in this one.
func (r *runs) markIn(other []uint64, marked []bool) {
	r.each(other, func(hash uint64, i int) {
		if r.begins[hash] != nil {
			for n := range r.k {
				marked[i+n] = true
			}
		}
	})
}

// inOrder is the share of a message's words that are in runs of four words which also occur in shown texts; or the same
// share of the message's own words, if that is less. Otherwise, showing an earlier statement would count as showing a
// repetition of it with another name. A shorter message is a single run.
func (m *evidenceMessage) inOrder(shown ...[]uint64) float64 {
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

// ownWords is the share of a text's words that are in runs which also occur in an event's messages.
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

// shownShare is the share of one of an event's messages that must be shown, in order, to count as verbatim.
const shownShare = 0.75

// ownShare is the minimum share of an item's words that must come, in order, from the event that it names; if it names
// two or three, of which the others may not be evidence and are not known here, a half or a third of that. Labels and
// times are not words of the event, and a long page that happens to contain them is not an item of the event.
const ownShare = 0.5

// verbatim reports whether the shown spans of the items that name an event contain at least three quarters of one of
// its messages, in order, and little else. An event without words proves nothing, and is accepted.
func (m *measurement) verbatim(id string) bool {
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
	return slices.ContainsFunc(e.said, func(said evidenceMessage) bool { return said.inOrder(shown...) >= shownShare })
}
