package score

import "slices"

var _ = register(metric{
	Entry: Entry{Name: "derived@tokens", Group: "derived", Unit: "share", Better: "more", Attribution: true,
		What: "gold groups of which an item of at most 60 words shows a gold value and names a member: facts that a " +
			"backend extracted; it has no verdict"},
	applies: func(p *probe) bool { return p.hasEvidence() && p.hasAnswers() },
	none:    "no answerable probe names evidence and answers",
	measure: func(m *measurement) float64 {
		n := 0
		for _, group := range m.groups {
			n += int(yes(m.derived(group)))
		}
		return float64(n) / float64(len(m.groups))
	},
	examples: []example{
		{"a fact of one message", items{{"Town: Lagos.", "e2"}}, 0.5},
		{"a fact of a message that is no evidence", items{{"Town: Lagos.", "e1"}}, 0},
		{"an outdated fact", items{{"Town: Porto.", "e2"}}, 0},
	},
})

// derivedWords is the maximum length of a derived item, which is a fact and not a page that happens to contain the
// value.
const derivedWords = 60

// derived reports whether an item that names one of the events shows a gold value: a fact that the backend extracted.
// Items that share their span with another one do not count.
func (m *measurement) derived(ids []string) bool {
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
			func(value *foldedText) bool { return text.index(value.text, 0) >= 0 }) {
			return true
		}
	}
	return false
}
