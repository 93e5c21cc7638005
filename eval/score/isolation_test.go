package score

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/build"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stock are common phrases of eight and nine words. Names are the speakers'.
var stock = []string{
	"it is so good to see you again", "how have you been doing since last week", "that sounds like a really great plan to me",
	"thanks for letting me know about all of that", "i am really looking forward to the next weekend",
	"let me know how it goes for you tomorrow", "what have you been up to these last days", "i have been meaning to tell you about this",
}

// shuffled is a pack in LoCoMo's format: ten conversations of two speakers, whose messages were distributed at random.
// Many start with a name and a stock phrase, like a speaker label and message in another conversation.
func shuffled(t *testing.T, seed uint64) *pack.Pack {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	names := []string{"Ada", "Bo", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jo"}
	var samples []any
	for i := range 10 {
		a, b := names[i], names[(i+3)%10]
		var turns []any
		for n := range 12 {
			speaker := []string{a, b}[n%2]
			text := stock[r.IntN(len(stock))]
			switch r.IntN(3) {
			case 0: // words that only occur in this message
				text = fmt.Sprintf("my neighbour w%dx keeps w%dx in the shed behind w%dx and talks of w%dx", r.IntN(1e6), r.IntN(1e6),
					r.IntN(1e6), r.IntN(1e6))
			case 1:
				text = names[r.IntN(10)] + " " + text
			}
			turns = append(turns, map[string]any{"speaker": speaker, "dia_id": fmt.Sprintf("D1:%d", n+1), "text": text})
		}
		samples = append(samples, map[string]any{"sample_id": fmt.Sprint(i),
			"conversation": map[string]any{"speaker_a": a, "speaker_b": b, "session_1_date_time": "1:56 pm on 8 May, 2023",
				"session_1": turns},
			"qa": []any{map[string]any{"question": "What was said?", "answer": "x", "evidence": []string{"D1:1"}, "category": 4}}})
	}
	source := filepath.Join(t.TempDir(), "locomo.json")
	text, err := json.Marshal(samples)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(source, text, 0o600))
	b, err := build.Find("locomo")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "p")
	_, err = b.Build(build.Request{Sources: []string{source}}, path)
	require.NoError(t, err)
	p, err := pack.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// TestALeakIsWhatChanceCannotGive: a memory that shows its own messages with labels, or rephrases them with a stock
// phrase, does not leak; one that shows any message of another conversation does.
func TestALeakIsWhatChanceCannotGive(t *testing.T) {
	alarms := 0
	runs := 100
	if brief.Tests() {
		runs = 8
	}
	for seed := range uint64(runs) {
		p := shuffled(t, seed)
		r := rand.New(rand.NewPCG(seed, 2))
		foreign := map[string]string{} // by persona: a message of the next persona with words that occur nowhere else
		for i, persona := range p.Manifest.Personas {
			to := p.Manifest.Personas[(i+9)%10].PersonaID
			for e, err := range p.Events(persona.PersonaID) {
				require.NoError(t, err)
				if text := *e.Messages[0].Content; strings.Contains(text, "neighbour") && (foreign[to] == "" || r.IntN(2) == 0) {
					foreign[to] = text
				}
			}
		}
		l := labOf(t, "providers: [own, retells, leaks]\nbudgets: [500]")
		m := scoredOf(t, l, p, func(label string, probe *pack.Probe, _ int64, events []*pack.Event) fabricatedAnswer {
			a := fabricatedAnswer{}
			for i, e := range events { // a turn and its answer on one line, with labels
				text := e.Messages[0].Name + ": " + *e.Messages[0].Content
				if i%2 == 1 {
					text = string(e.Messages[0].Role) + ": " + *e.Messages[0].Content
				}
				a.items = append(a.items, abi.Evidence{Text: text})
			}
			switch {
			case label == "retells":
				a.items = append(a.items, abi.Evidence{Text: stock[r.IntN(len(stock))]})
			case label == "leaks" && foreign[probe.PersonaID] != "":
				a.items = append(a.items, abi.Evidence{Text: "They told me: " + foreign[probe.PersonaID]})
			}
			return a
		})
		require.Equal(t, "works", m.LeakControl.Detector)
		for _, c := range m.Columns[:2] {
			if c.Isolation.Leaking > 0 {
				alarms++
				t.Logf("shuffle %d, %s: %+v", seed, c.Label, c.Isolation.Finds)
			}
		}
		assert.Equal(t, len(foreign), m.Columns[2].Isolation.Leaking, "every planted leak is found")
	}
	assert.Zero(t, alarms, "of %d memories without a leak", 2*runs)
}
