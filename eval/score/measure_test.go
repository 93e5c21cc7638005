package score

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"github.com/stretchr/testify/assert"
)

func TestTextIsFolded(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"The  Cat\n is called &lt;Zorvex>", "the cat is called <zorvex>"},
		{"A&amp;B &quot;C&apos; &nbsp; &", "a&b \"c' &nbsp; &"},
		{"<\\memory-context>", "<memory-context>"},
		{"  \t", ""},
		{"ÄÖ\u00a0é", "äö é"},
	} {
		f := fold(c.text)
		assert.Equal(t, c.want, f.text)
		assert.Len(t, f.at, len(f.text))
	}
	f := fold("x  &lt;Ab> y")
	start, end := f.original(strings.Index(f.text, "<ab>"), strings.Index(f.text, "<ab>")+4)
	assert.Equal(t, "&lt;Ab>", "x  &lt;Ab> y"[start:end])
}

func TestWordsAreFoundWhole(t *testing.T) {
	for _, c := range []struct {
		text, words string
		want        int
	}{
		{"the category of cat", "cat", 16}, {"a scat", "cat", -1}, {"cat", "cat", 0}, {"cat.", "cat", 0}, {"x", "", -1},
		{"7 May 2023", "may 2023", 2}, {"12023", "2023", -1}, {"我住在北京市", "北京", 9}, {"tea-time", "time", 4}, {"a, b",
			"a, b", 0},
	} {
		assert.Equal(t, c.want, fold(c.text).index(c.words, 0), "%q in %q", c.words, c.text)
	}
}

func TestContentWords(t *testing.T) {
	count := func(text string) int { return len(contentWords(text)) }
	assert.Equal(t, 2, count("The cat is the Cat of Zorvex!"))
	assert.Equal(t, 0, count("It is not the"))
	assert.Equal(t, 2, count("北京"))
	assert.Equal(t, 1, count("42"))
}

func TestSequencesOfEightWords(t *testing.T) {
	var found []string
	text := "a b c d e f g h i"
	hashes := map[uint64]bool{}
	grams(text, func(w word) { found, hashes[w.hash] = append(found, text[w.start:w.end]), true })
	assert.Equal(t, []string{"a b c d e f g h", "b c d e f g h i"}, found)
	n := 0
	grams("x y b, c. d e f g h (i) z", func(w word) { n += int(yes(hashes[w.hash])) })
	assert.Equal(t, 1, n, "the second stands in another text, whatever is around it")
	grams("a b c d e f g", func(word) { t.Error("seven words are none") })
}

// person has three events: the first value, its successor, and small talk; e4 belongs to another context.
func person() *persona {
	at := func(day int) time.Time { return time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC) }
	return &persona{id: "ann", cluster: "ann", events: map[string]*event{
		"e1": {session: 1, at: at(1)}, "e2": {session: 2, at: at(11)}, "e3": {session: 2,
			at: at(12)}, "e4": {session: 3, at: at(13), context: "home"},
	}}
}

func TestValidityOfWhatIsShown(t *testing.T) {
	const said = "My tea is Old."
	old := abi.Evidence{Text: said, SourceEventIDs: []string{"e1"}}
	now := abi.Evidence{Text: "My tea is New.", SourceEventIDs: []string{"e2"}}
	ended := old
	ended.InvalidAt = "2026-01-11T00:00:00Z"
	for _, c := range []struct {
		name                             string
		lines                            []string // % stands for the item's text
		items                            []abi.Evidence
		current, stale, first, unflagged float64
	}{
		{"nothing", nil, nil, 0, 0, 0, 0},
		{"the present value", []string{"- %"}, []abi.Evidence{now}, 1, 0, 1, 0},
		{"the present value first", []string{"- %", "- %"}, []abi.Evidence{now, old}, 1, 1, 1, 1},
		{"the earlier value first", []string{"- %", "- %"}, []abi.Evidence{old, now}, 1, 1, 0, 1},
		{"a flag in the line", []string{"- % [2026-01-01 | superseded]", "- %"}, []abi.Evidence{old, now}, 1, 1, 0, 0},
		{"a flag in another line", []string{"- %", "- % [superseded]"}, []abi.Evidence{old, now}, 1, 1, 0, 1},
		{"the day on which it ended", []string{"- % [2026-01-01 to 2026-01-11]"}, []abi.Evidence{ended}, 0, 1, 0, 0},
		{"a day that nobody can read so", []string{"- % [2026-01-01]"}, []abi.Evidence{ended}, 0, 1, 0, 1},
	} {
		for _, by := range []string{"value", "event"} {
			t.Run(c.name+" by "+by, func(t *testing.T) {
				text, items := "", append([]abi.Evidence(nil), c.items...)
				for i, line := range c.lines {
					start := len(text) + strings.IndexByte(line, '%')
					text += strings.Replace(line, "%", items[i].Text, 1) + "\n"
					items[i].Rank = int64(i + 1)
					items[i].Shown = &abi.Shown{Start: int64(start), End: int64(start + len(items[i].Text))}
				}
				gold := pack.Gold{Answerable: true, Evidence: [][]string{{"e2"}},
					Stale: []pack.StaleValue{{EventID: "e1", SupersededAt: "2026-01-11T00:00:00Z"}}}
				if by == "value" {
					gold.Answers, gold.Stale[0].Value = [][]string{{"new"}}, "OLD"
				}
				p := &probe{Probe: &pack.Probe{AfterSession: 2, AsOf: "2026-01-21T00:00:00Z", Gold: gold},
					persona: person()}
				p.prepare(time.Time{})
				v := (&timeline{}).measure(p, &retrieval{evidence: items, context: text}).values
				assert.Equal(t, []float64{c.current, c.stale, c.first, c.unflagged},
					[]float64{v[place["current_shown"]], v[place["stale_shown"]], v[place["current_first"]],
						v[place["stale_unflagged"]]})
				if c.unflagged > 0 {
					assert.InDelta(t, 10, v[place["stale_age_days"]], 1e-12)
				} else {
					assert.True(t, math.IsNaN(v[place["stale_age_days"]]))
				}
			})
		}
	}
}

func TestItemsAreLocatedByTheirText(t *testing.T) {
	const text = "<memory-context backend=\"x\" scope=\"tea/tea\">\n- I like tea & cake.\n- Two\n  lines.\n- I like " +
		"tea &lt;b&gt;.\n</memory-context>"
	list := []item{}
	for _, s := range []string{"I like tea & cake.", "Two\nlines.", "I like tea <b>.", "not there", ""} {
		list = append(list, item{Evidence: &abi.Evidence{Text: s}})
	}
	list = append(list, item{Evidence: &abi.Evidence{Pointer: "/calls/0/body/1"}},
		item{Evidence: &abi.Evidence{Pointer: "/calls/0/body/0", Span: &abi.Span{Start: 2, End: 6}}})
	r := &retrieval{context: text, raw: []byte(`{"calls":[{"body":["xxlines",{"messages":[{"content":"Two"},{"content":"lines."},{"content":"cut off"}]}]}]}`)}
	r.find(list, fold(text))
	var found []string
	for _, i := range list {
		found = append(found, text[i.start:i.end])
	}
	assert.Equal(t, []string{"I like tea & cake.", "Two\n  lines.", "I like tea &lt;b&gt;.", "", "", "Two\n  lines.",
		"line"}, found)
}

func TestEachMetricOfARetrieval(t *testing.T) {
	p := &probe{Probe: &pack.Probe{AfterSession: 3, Context: "work",
		Gold: pack.Gold{Answerable: true, Answers: [][]string{{"Zorvex", "the cat"}, {"7 May"}},
			Evidence: [][]string{{"e1"}, {"e2", "e3"}}, Forbidden: []pack.ForbiddenValue{{Text: "secret word"}}}},
		persona: person()}
	p.persona.events["e1"].content = contentWords("zorvex sleeps")
	p.persona.events["e2"].content = contentWords("may seven evening")
	p.persona.events["e3"].content = contentWords("something else")
	p.prepare(time.Time{})
	p.foreign = [][][]uint64{{contentWords("zorvex barks loudly tonight")}}
	const text = "head zorvex Sleeps Zorvex 7 May, tail"
	shown := func(s string) *abi.Shown {
		at := int64(strings.Index(text, s))
		return &abi.Shown{Start: at, End: at + int64(len(s))}
	}
	r := &retrieval{context: text, evidence: []abi.Evidence{
		{Rank: 1, SourceEventIDs: []string{"a", "b", "c", "d", "e1"}},
		{Rank: 2, SourceEventIDs: []string{"e4"}},
		{Rank: 3, SourceEventIDs: []string{"e1"}, Shown: shown("Sleeps Zorvex")},
		{Rank: 4, SourceEventIDs: []string{"e3"}},
		{Rank: 5},
	}}
	got := (&timeline{}).measure(p, r).values
	for name, want := range map[string]float64{
		"hit@1": 0, "hit@5": 1, "recall@5": 1, "all@5": 1, "mrr": 1.0 / 3, "recall@tokens": 0.5, "all@tokens": 0,
		"content": 0.5, "content_false": 0.25, "answer_shown": 1, "forbidden_shown": 0, "items": 5, "coverage": 0.6,
		"other_context": 1.0 / 3,
		"session.hit@1": 0, "session.mrr": 1.0 / 3, "session.recall@5": 1,
	} {
		assert.InDelta(t, want, got[place[name]], 1e-12, name)
	}
	for _, name := range []string{"items_unanswerable", "context_tokens", "stability", "current_shown"} {
		assert.True(t, math.IsNaN(got[place[name]]), name)
	}
}

func TestTheElementIsNoMemory(t *testing.T) {
	p := &probe{Probe: &pack.Probe{AfterSession: 1, Gold: pack.Gold{Answerable: true, Answers: [][]string{{"tea"}}}},
		persona: person()}
	p.prepare(time.Time{})
	v := (&timeline{}).measure(p, &retrieval{context: "<memory-context scope=\"r/tea\">\nnothing\n</memory-context>"}).values
	assert.Zero(t, v[place["answer_shown"]])
}

func TestAUROCWeighsClusters(t *testing.T) {
	list := []scoredProbe{{-1, false, 0}, {0, true, 0}, {0, false, 1}, {2, true, 1}}
	area, known := weightedAUROC(list, []float64{1, 1})
	assert.True(t, known)
	assert.InDelta(t, (1+0.5+1+1)/4, area, 1e-12)
	area, _ = weightedAUROC(list, []float64{2, 0})
	assert.InDelta(t, 1, area, 1e-12)
	_, known = weightedAUROC(list[:1], []float64{1})
	assert.False(t, known)
}
