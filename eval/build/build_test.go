package build

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/simulate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// buildPack builds a pack from sources in testdata, opens it, and requires that lint finds nothing fatal.
func buildPack(t *testing.T, name string, options map[string]string, sources ...string) *pack.Pack {
	t.Helper()
	b, err := Find(name)
	require.NoError(t, err)
	for i := range sources {
		if !filepath.IsAbs(sources[i]) {
			sources[i] = filepath.Join("testdata", sources[i])
		}
	}
	path := filepath.Join(t.TempDir(), "p"+pack.Archive)
	_, err = b.Build(Request{Sources: sources, Options: options}, path)
	require.NoError(t, err)
	p, err := pack.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	findings, err := pack.Lint(p)
	require.NoError(t, err)
	for _, f := range findings {
		assert.False(t, f.Fatal, "%+v", f)
	}
	return p
}

// contentsOf lists a pack's events and probes, one per line.
func contentsOf(t *testing.T, p *pack.Pack) (events, probes []string) {
	t.Helper()
	for _, persona := range p.Manifest.Personas {
		for e, err := range p.Events(persona.PersonaID) {
			require.NoError(t, err)
			var said []string
			for _, m := range e.Messages {
				said = append(said, string(m.Role)+": "+*m.Content)
			}
			events = append(events, fmt.Sprintf("%d %s %s | %s", e.SessionIndex, e.EventID, e.Timestamp,
				strings.Join(said, " / ")))
		}
		for q, err := range p.Probes(persona.PersonaID) {
			require.NoError(t, err)
			probes = append(probes, fmt.Sprintf("%s after %d [%s] %v %v", q.ProbeID, q.AfterSession, q.Label,
				q.Gold.Evidence, q.Gold.Answers))
		}
	}
	return events, probes
}

func TestLocomo(t *testing.T) {
	p := buildPack(t, "locomo", map[string]string{"insert": "asap", "group": "pair"}, "locomo.json")
	events, probes := contentsOf(t, p)
	assert.Equal(t, []string{
		"1 locomo-conv-1-a-1-1 2023-05-08T13:56:00Z | user: Hi Tom! I started pottery on Monday. / assistant: " +
			"Lovely. I adopted a greyhound. [shares a photo of a grey dog]",
		"1 locomo-conv-1-a-1-2 2023-05-08T13:57:00Z | user: What is its name?",
		"2 locomo-conv-1-a-2-1 2023-05-25T09:05:00Z | assistant: She is called Juno. / user: I gave up pottery, my " +
			"wrist hurts.",
		"3 locomo-conv-1-a-3-1 2023-08-01T23:00:00Z | assistant: Juno won a race. / user: Bravo!",
	}, events)
	assert.Equal(t, []string{
		"locomo-conv-1-a-q1 after 1 [temporal] [[locomo-conv-1-a-1-1]] [[8 May 2023]]",
		"locomo-conv-1-a-q4 after 1 [adversarial] [] []",
		"locomo-conv-1-a-q2 after 2 [multi_hop] [[locomo-conv-1-a-1-1] [locomo-conv-1-a-2-1]] [[1]]",
		"locomo-conv-1-a-q3 after 3 [single_hop] [[locomo-conv-1-a-3-1]] [[a race]]",
		"locomo-conv-1-a-q5 after 3 [open_domain] [] [[No]]",
	}, probes)
	repairs := map[string]int{}
	for _, r := range p.Manifest.Repairs {
		repairs[r.Kind] = r.Count
		assert.Len(t, r.Examples, r.Count, "every repair is listed")
	}
	assert.Equal(t, map[string]int{"date_without_session": 1, "evidence_mended": 3, "evidence_unknown": 1,
		"evidence_unreadable": 1, "unknown_category": 1}, repairs)
}

func TestLongMemEvalTellsOfSessionsThatCannotBe(t *testing.T) {
	session := `[{"role":"user","content":"I like oolong.","has_answer":true},{"role":"assistant","content":"Noted."}]`
	source := filepath.Join(t.TempDir(), "longmemeval_s.json")
	require.NoError(t, os.WriteFile(source, []byte("\ufeff"+`[{"question_id":"q","question_type":"single","question":"Which tea?",
		"answer":"oolong","question_date":"2023/05/30 (Tue) 23:40","haystack_session_ids":["a","a","b","a"],
		"haystack_dates":["2023/05/01 (Mon) 10:00","2023/05/02 (Tue) 10:00","2023/06/01 (Thu) 10:00","2023/05/03 (Wed) 10:00"],
		"haystack_sessions":[`+session+`,`+session+`,[{"role":"user","content":"Later."}],[{"role":"user","content":"Other."}]],
		"answer_session_ids":["a"]}]`), 0o600))
	to := filepath.Join(t.TempDir(), "p")
	m, err := longmemevalBuilder.Build(Request{Sources: []string{source}}, to)
	require.NoError(t, err)
	repairs := map[string]int{}
	for _, r := range m.Repairs {
		repairs[r.Kind] = r.Count
	}
	require.Equal(t, map[string]int{"session_given_twice": 1, "session_id_given_twice": 1,
		"session_later_than_its_question": 1}, repairs)
	require.Equal(t, 3, m.Counts.Sessions)
}

func TestLocomoPerspectivesAreOneCluster(t *testing.T) {
	p := buildPack(t, "locomo", map[string]string{"perspective": "both", "group": "message", "insert": "every:2"},
		"locomo.json")
	assert.Equal(t, pack.Counts{Personas: 2, Clusters: 1, Sessions: 6, Events: 14, Probes: 10}, p.Manifest.Counts)
	events, probes := contentsOf(t, p)
	assert.Contains(t, events[0], "| user: Hi Tom!")
	assert.Contains(t, events[7], "| assistant: Hi Tom!")
	assert.Contains(t, probes[0], "after 2", "every second session")
	mended := slices.IndexFunc(p.Manifest.Repairs, func(r pack.Repair) bool { return r.Kind == "evidence_mended" })
	assert.Equal(t, 3, p.Manifest.Repairs[mended].Count, "once, not for each side")
}

func TestLocomoEvidenceIDsAreMended(t *testing.T) {
	known := map[string]string{"D8:6": "e1", "D9:17": "e2", "D30:5": "e3", "D11:26": "e4"}
	for given, want := range map[string][]string{"D8:6; D9:17": {"D8:6", "D9:17"}, "D8:6 D9:17": {"D8:6", "D9:17"},
		"D30:05": {"D30:5"}, "D:11:26": {"D11:26"}, "D": nil, "D8:7": nil, "": nil} {
		w, err := pack.Create(filepath.Join(t.TempDir(), "p"), pack.Manifest{})
		require.NoError(t, err)
		assert.Equal(t, want, (&builder{Writer: w}).locomoEvidence("qa", []string{given}, known), given)
		require.NotEmpty(t, w.Manifest.Repairs, given)
		w.Abort()
	}
}

func TestLongmemeval(t *testing.T) {
	p := buildPack(t, "longmemeval", nil, "longmemeval.json")
	events, probes := contentsOf(t, p)
	assert.Equal(t, []string{
		"1 lme-0001-1-1 2023-05-20T02:21:00Z | user: I keep my bike in the hall. / assistant: I see.",
		"2 lme-0001-2-1 2023-05-22T08:15:00Z | user: How do I boil an egg? / assistant: Seven minutes.",
		"2 lme-0001-2-2 2023-05-22T08:16:00Z | user: Thanks / assistant: Welcome",
		"3 lme-0001-3-1 2023-05-25T10:00:00Z | user: I moved my bike to the cellar. / assistant: Good idea.",
		"1 lme-0002-1-1 2023-05-25T10:00:00Z | user: I keep my bike in the cellar.",
	}, events)
	assert.Equal(t, []string{
		"lme-0001-q after 3 [knowledge-update] [[lme-0001-1-1] [lme-0001-3-1]] [[in the cellar]]",
		"lme-0002-q after 1 [knowledge-update] [] []",
	}, probes)
	assert.Equal(t, 1, p.Manifest.Counts.Clusters, "a question and its unanswerable twin are one cluster")
	text, err := os.ReadFile("testdata/longmemeval.json")
	require.NoError(t, err)
	assert.Contains(t, string(text), "answer_9_1")
	for _, line := range append(events, probes...) {
		assert.NotContains(t, line, "answer_9", "the source's session ids name the gold")
	}
}

func TestPersonamem(t *testing.T) {
	p := buildPack(t, "personamem", nil, "contexts.jsonl", "questions.csv")
	events, probes := contentsOf(t, p)
	assert.Equal(t, []string{
		"1 personamem-c1-1 2026-01-05T09:00:00Z | system: Current user persona: Ana.",
		"1 personamem-c1-2 2026-01-05T09:01:00Z | user: User: I like jazz. / assistant: Assistant: Noted.",
		"2 personamem-c1-3 2026-01-05T09:03:00Z | user: User: I like folk now. / assistant: Assistant: Noted, too.",
		"1 personamem-c2-1 2026-01-05T09:00:00Z | user: User: I run. / assistant: Assistant: Fine.",
	}, events)
	assert.Equal(t, []string{
		"personamem-c1-q1 after 1 [recall_user_shared_facts] [] [[(a) jazz]]",
		"personamem-c1-q2 after 2 [track_full_preference_evolution] [] [[(b) folk]]",
		"personamem-c2-q3 after 1 [recall_user_shared_facts] [] []",
	}, probes)
	var clusters []string
	for _, persona := range p.Manifest.Personas {
		clusters = append(clusters, persona.Cluster)
	}
	assert.Equal(t, []string{"person-0", "person-1"}, clusters)
	assert.Equal(t, []pack.Repair{{Kind: "correct_answer_unknown", Count: 1, Examples: []string{`question q3: "(z)"`}},
		{Kind: "question_without_context", Count: 1, Examples: []string{"shared_context_id c9: 1 questions"}}},
		p.Manifest.Repairs)
}

// TestPersonamemsClustersAreItsPersons: several contexts may be about one person.
func TestPersonamemsClustersAreItsPersons(t *testing.T) {
	const head = "question_id,question_type,question,correct_answer,all_options,shared_context_id,end_index_in_shared_context"
	for _, c := range []struct {
		name, questions string
		clusters        int
		repair          string
	}{
		{"two contexts of one person", "persona_id," + head + "\n7,q1,t,q,(a),\"['(a) x']\",c1,2\n7,q2,t,q,(a),\"['(a) x']\",c2,2\n", 1, ""},
		{"two persons", "persona_id," + head + "\n7,q1,t,q,(a),\"['(a) x']\",c1,2\n8,q2,t,q,(a),\"['(a) x']\",c2,2\n", 2, ""},
		{"a file without persons", head + "\nq1,t,q,(a),\"['(a) x']\",c1,2\nq2,t,q,(a),\"['(a) x']\",c2,2\n", 2, "person_unknown"},
		{"a context of two persons", "persona_id," + head + "\n7,q1,t,q,(a),\"['(a) x']\",c1,2\n8,q2,t,q,(a),\"['(a) x']\",c1,2\n", 2,
			"several_persons"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			contexts, questions := filepath.Join(dir, "contexts.jsonl"), filepath.Join(dir, "questions.csv")
			const said = `[{"role":"user","content":"I run."},{"role":"assistant","content":"Fine."}]`
			require.NoError(t, os.WriteFile(contexts, []byte(`{"c1":`+said+"}\n"+`{"c2":`+said+"}\n"), 0o600))
			require.NoError(t, os.WriteFile(questions, []byte(c.questions), 0o600))
			m, err := personamemBuilder.Build(Request{Sources: []string{contexts, questions}}, filepath.Join(dir, "p"))
			require.NoError(t, err)
			assert.Equal(t, c.clusters, m.Counts.Clusters)
			if c.repair == "" {
				assert.Empty(t, m.Repairs)
			} else {
				require.NotEmpty(t, m.Repairs)
				assert.Equal(t, c.repair, m.Repairs[0].Kind)
			}
		})
	}
}

func TestChats(t *testing.T) {
	p := buildPack(t, "chats", nil, "chats.jsonl", "probes.jsonl")
	events, probes := contentsOf(t, p)
	require.Len(t, events, 2)
	assert.Contains(t, events[1], "| user: She likes tuna.")
	assert.Equal(t, []string{"probe-2 after 1 [unanswerable] [] []", "probe-1 after 2 [single] [] [[Zorvex]]"}, probes)
	assert.Equal(t, "unknown", p.Manifest.Source.Licence)
}

// TestSourcesComeInTheEncodingsOfWindows: with a byte order mark and CRLF, and as UTF-16.
func TestSourcesComeInTheEncodingsOfWindows(t *testing.T) {
	for _, c := range []struct {
		name    string
		options map[string]string
		sources []string
	}{{"locomo", map[string]string{"insert": "asap", "group": "pair"}, []string{"locomo.json"}},
		{"longmemeval", nil, []string{"longmemeval.json"}}, {"personamem", nil, []string{"contexts.jsonl", "questions.csv"}},
		{"chats", nil, []string{"chats.jsonl", "probes.jsonl"}}} {
		events, probes := contentsOf(t, buildPack(t, c.name, c.options, slices.Clone(c.sources)...))
		for encoding, encode := range map[string]func(string) []byte{
			"mark": func(text string) []byte { return []byte("\ufeff" + text) },
			"UTF-16": func(text string) (out []byte) {
				for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
					out = binary.LittleEndian.AppendUint16(out, unit)
				}
				return out
			}} {
			t.Run(c.name+" "+encoding, func(t *testing.T) {
				folder := t.TempDir()
				var sources []string
				for _, name := range c.sources {
					text, err := os.ReadFile(filepath.Join("testdata", name))
					require.NoError(t, err)
					path := filepath.Join(folder, name)
					require.NoError(t, os.WriteFile(path, encode(strings.ReplaceAll(string(text), "\n", "\r\n")), 0o600))
					sources = append(sources, path)
				}
				gotEvents, gotProbes := contentsOf(t, buildPack(t, c.name, c.options, sources...))
				require.Equal(t, events, gotEvents)
				require.Equal(t, probes, gotProbes)
			})
		}
	}
}

func TestSynthIsTheSameForTheSameSeed(t *testing.T) {
	one, again, other := buildPack(t, "synth", nil), buildPack(t, "synth", nil),
		buildPack(t, "synth", map[string]string{"seed": "2"})
	assert.Equal(t, one.Manifest, again.Manifest)
	assert.NotEqual(t, one.Manifest.ContentSHA256, other.Manifest.ContentSHA256)
	assert.Equal(t, pack.Counts{Personas: 6, Clusters: 6, Sessions: 216, Events: 6 * (9 + 35*6),
		Probes: 6 * (36*4 + 9), Preferences: one.Manifest.Counts.Preferences}, one.Manifest.Counts)
	labels := map[string]int{}
	for _, persona := range one.Manifest.Personas {
		said := map[string]string{}
		for e, err := range one.Events(persona.PersonaID) {
			require.NoError(t, err)
			said[e.EventID] = *e.Messages[0].Content
		}
		for q, err := range one.Probes(persona.PersonaID) {
			require.NoError(t, err)
			labels[q.Label]++
			if q.Gold.Answerable {
				assert.Contains(t, said[q.Gold.Evidence[0][0]], q.Gold.Answers[0][0])
			}
			for _, s := range q.Gold.Stale {
				assert.Contains(t, said[s.EventID], s.Value)
			}
		}
	}
	assert.Greater(t, labels["in_context_changed"], 100)
	assert.Greater(t, labels["general_changed"], 100)
	assert.Equal(t, 216, labels["unanswerable"])
	assert.Contains(t, one.Conditions, "static_profile")
	assert.Contains(t, one.Conditions, "oracle_ipas")
}

// TestSynthKnowsWhatItsPeopleWant: probes, preferences and the oracle's entries are the same data, and the users in
// test sessions never state it.
func TestSynthKnowsWhatItsPeopleWant(t *testing.T) {
	for _, seed := range []string{"1", "2", "3"} {
		p := buildPack(t, "synth", map[string]string{"seed": seed})
		found, err := pack.Lint(p)
		require.NoError(t, err)
		require.Empty(t, found)
		var oracle struct {
			Entries []struct {
				PersonaID  string `json:"persona_id"`
				Attribute  string
				Context    string
				Value      string
				ValidFrom  string `json:"valid_from"`
				ValidUntil string `json:"valid_until"`
			}
		}
		require.NoError(t, json.Unmarshal(p.Conditions["oracle_ipas"], &oracle))
		var known []string
		for _, e := range oracle.Entries {
			if e.Attribute != "locker" {
				known = append(known, strings.Join([]string{e.PersonaID, e.Attribute, e.Context, e.Value, e.ValidFrom, e.ValidUntil}, " "))
			}
		}
		var wanted []string
		cs, pet, both, earlier := 0, 0, 0, 0
		for _, persona := range p.Manifest.Personas {
			list, err := p.Preferences(persona.PersonaID)
			require.NoError(t, err)
			for _, f := range list {
				wanted = append(wanted, strings.Join([]string{f.PersonaID, f.Attribute, f.Context, f.Value, f.From, f.Until}, " "))
			}
			for q, err := range p.Probes(persona.PersonaID) {
				require.NoError(t, err)
				s := simulate.NewSetting(q, list)
				if q.Attribute == "" {
					require.Empty(t, s.Value)
					continue
				}
				require.Equal(t, q.Gold.Answers, [][]string{{s.Value}})
				require.Len(t, q.Gold.Stale, len(s.Stale))
				require.NotEqual(t, q.Query, s.Opening)
				require.Equal(t, simulate.UseNone, s.UseOf(s.Opening))
				switch {
				case s.Differs && s.Changed():
					both++
				case s.Differs:
					cs++
					for _, o := range list.Elsewhere(s.Preference, must(t, q.AsOf)) {
						if o.From > s.Preference.From {
							earlier++
						}
					}
				case s.Changed():
					pet++
				}
			}
		}
		require.Equal(t, known, wanted)
		// Both headlines have sessions, and the requested value is often not the one that was stated last.
		assert.Greater(t, cs, 30)
		assert.Greater(t, pet, 100)
		assert.Greater(t, both, 30)
		assert.Greater(t, earlier, 10)
	}
}

func must(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := abi.ParseTime(text)
	require.NoError(t, err)
	return at
}

func TestASourceOfAnotherShapeIsToldWithItsPlace(t *testing.T) {
	for _, c := range []struct {
		name, builder, source string
		options               map[string]string
		says                  []string
	}{
		{"an object for a list", "locomo", `{"sample_id":"x"}`, nil,
			[]string{"want LoCoMo samples", "a JSON array", "found an object"}},
		{"another element", "locomo", `[{"question_id":"x"}]`, nil, []string{"sample 1: want conversation"}},
		{"no questions", "locomo", `[{"sample_id":"s","conversation":{"session_1":[{"text":"x"}],"session_1_date_time":"1:56 pm on 8 May, 2023"}}]`, nil,
			[]string{"source.json: sample s: want qa"}},
		{"a number for a text", "longmemeval", `[{"question_id":7}]`, nil,
			[]string{"element 0, near byte", "found a number in question_id, want a string"}},
		{"a number for turns", "locomo", `[{"sample_id":"s","conversation":{"session_1":7}}]`, nil,
			[]string{"source.json: sample s, session_1: want turns", "found a number, want an array"}},
		{"a date of another form", "locomo", `[{"sample_id":"s","conversation":{"session_1":[{"text":"x"}],"session_1_date_time":"2023-05-08"}}]`, nil,
			[]string{"session_1_date_time: want a date", `"2023-05-08"`}},
		{"cut off", "longmemeval", `[{"question_id":"x","question":"y","question_da`, nil,
			[]string{"element 0, near byte"}},
		{"LoCoMo for LongMemEval", "longmemeval", `[{"sample_id":"x"}]`, nil, []string{"want LongMemEval questions"}},
		{"an unknown option", "locomo", `[]`, map[string]string{"insret": "end"}, []string{"no option", "insert"}},
		{"an unknown insertion", "locomo", `[]`, map[string]string{"insert": "every:0"},
			[]string{"asap, end, every:N"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "source.json")
			require.NoError(t, os.WriteFile(path, []byte(c.source), 0o600))
			b, err := Find(c.builder)
			require.NoError(t, err)
			out := filepath.Join(t.TempDir(), "out")
			_, err = b.Build(Request{Sources: []string{path}, Options: c.options}, out)
			require.Error(t, err)
			assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
			e := abi.AsError(err)
			for _, says := range c.says {
				assert.Contains(t, e.Message+" "+e.Hint, says)
			}
			_, err = os.Stat(filepath.Join(out, pack.ManifestFile))
			assert.ErrorIs(t, err, os.ErrNotExist, "a half pack is no pack")
			_, err = os.Stat(out)
			assert.ErrorIs(t, err, os.ErrNotExist, "and no folder is left")
		})
	}
	_, err := Find("locmo")
	assert.Contains(t, abi.AsError(err).Hint, "locomo")
}
