package pack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func text(s string) *string { return &s }

// event is a turn of a session, some minutes after the previous one.
func event(session, turn int, content string) *Event {
	return &Event{SessionIndex: session, EventID: fmt.Sprintf("e%d-%d", session, turn),
		SessionID: fmt.Sprint("s", session),
		TurnID:    fmt.Sprint("t", turn), Timestamp: fmt.Sprintf("2026-03-%02dT10:%02d:00Z", session, turn),
		Messages: []abi.Message{{Role: abi.RoleUser, Content: text(content)}}}
}

func question(id string, after int, evidence ...string) *Probe {
	p := &Probe{ProbeID: id, AfterSession: after, Kind: "question", Label: "single", Query: "What?",
		Gold: Gold{Answerable: true}}
	for _, e := range evidence {
		p.Gold.Evidence = append(p.Gold.Evidence, []string{e})
	}
	return p
}

// write writes a pack with personas ann and bob, with two sessions each.
func write(t *testing.T, path string, change func(persona string, e *Event, p *Probe)) {
	t.Helper()
	w, err := Create(path, Manifest{Name: "small", Builder: Builder{Name: "test"}, Timestamps: "source"})
	require.NoError(t, err)
	for _, name := range []string{"ann", "bob"} {
		w.Persona(name, "cluster of "+name)
		for session := 1; session <= 2; session++ {
			for turn := 1; turn <= 3; turn++ {
				e := event(session, turn, fmt.Sprint(name, " says ", turn, " <&> \u00e9"))
				if change != nil {
					change(name, e, nil)
				}
				require.NoError(t, w.Event(e))
			}
			p := question(fmt.Sprint(name, session), session, fmt.Sprintf("e%d-2", session))
			if change != nil {
				change(name, nil, p)
			}
			require.NoError(t, w.Probe(p))
		}
	}
	require.NoError(t, w.Close(map[string]json.RawMessage{"static_profile": json.RawMessage(`{"profiles":{}}`)}))
}

func TestAPackIsReadAsItWasWritten(t *testing.T) {
	for _, name := range []string{"folder", "file" + Archive} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			write(t, path, nil)
			p, err := Open(path)
			require.NoError(t, err)
			defer p.Close()
			assert.Equal(t, Counts{Personas: 2, Clusters: 2, Sessions: 4, Events: 12, Probes: 4}, p.Manifest.Counts)
			assert.JSONEq(t, `{"profiles":{}}`, string(p.Conditions["static_profile"]))
			var events []string
			for e, err := range p.Events("bob") {
				require.NoError(t, err)
				events = append(events, e.EventID+" "+*e.Messages[0].Content)
			}
			assert.Len(t, events, 6)
			assert.Equal(t, "e1-1 bob says 1 <&> é", events[0])
			for probe, err := range p.Probes("ann") {
				require.NoError(t, err)
				assert.Equal(t, "ann", probe.PersonaID)
			}
			findings, err := Lint(p)
			require.NoError(t, err)
			assert.Empty(t, findings)
		})
	}
}

func TestEqualPacksAreEqualFiles(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "a"+Archive), filepath.Join(t.TempDir(), "b"+Archive)
	write(t, one, nil)
	write(t, two, nil)
	a, err := os.ReadFile(one)
	require.NoError(t, err)
	b, err := os.ReadFile(two)
	require.NoError(t, err)
	assert.Equal(t, a, b)
}

func TestAPackThatWasChangedIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, file, old, new, says string
	}{
		{"an event", EventsFile, "ann says 2", "ann says 7", "was changed after it was built"},
		{"a probe", ProbesFile, "What?", "Who??", "was changed after it was built"},
		{"the conditions", ConditionsFile, "profiles", "profilez", "was changed after it was built"},
		{"another version", ManifestFile, `"pack": 1`, `"pack": 2`, "version 2"},
		{"a field that is not known", ManifestFile, `"name"`, `"nome"`, "nome"},
		{"a line cut off", EventsFile, "\n", "", "cut off"},
		{"personas mixed", EventsFile, `"persona_id":"ann","session_index":2,"event_id":"e2-2"`,
			`"persona_id":"bob","session_index":2,"event_id":"e2-2"`, "do not follow each other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p")
			write(t, path, nil)
			file := filepath.Join(path, c.file)
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			at := strings.LastIndex(string(content), c.old)
			require.GreaterOrEqual(t, at, 0)
			require.NoError(t, os.WriteFile(file, []byte(string(content[:at])+c.new+string(content[at+len(c.old):])),
				0o600))
			_, err = Open(path)
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.says)
			assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
		})
	}
	_, err := Open(t.TempDir())
	assert.ErrorContains(t, err, "is not a pack")
}

func TestLintFindsWhatWouldMakeAComparisonWrong(t *testing.T) {
	for _, c := range []struct {
		rule   string
		change func(persona string, e *Event, p *Probe)
	}{
		{"no_evidence", func(_ string, _ *Event, p *Probe) {
			if p != nil {
				p.Gold.Evidence, p.Gold.Answers = nil, [][]string{{"x"}}
			}
		}},
		{"answers_unanswerable", func(_ string, _ *Event, p *Probe) {
			if p != nil {
				p.Gold.Answerable, p.Gold.Answers = false, [][]string{{"x"}}
			}
		}},
		{"dangling_evidence", func(_ string, _ *Event, p *Probe) {
			if p != nil && p.ProbeID == "ann1" {
				p.Gold.Evidence = [][]string{{"e1-1", "nowhere"}}
			}
		}},
		{"evidence_after_probe", func(_ string, _ *Event, p *Probe) {
			if p != nil && p.ProbeID == "ann1" {
				p.Gold.Evidence = [][]string{{"e2-1"}}
			}
		}},
		{"time_backwards", func(persona string, e *Event, _ *Probe) {
			if e != nil && persona == "bob" && e.EventID == "e2-2" {
				e.Timestamp = "2026-03-02T10:00:30+01:00"
			}
		}},
		{"doubled_id", func(_ string, e *Event, _ *Probe) {
			if e != nil && e.EventID == "e2-2" {
				e.EventID = "e1-2"
			}
		}},
		{"doubled_id", func(_ string, _ *Event, p *Probe) {
			if p != nil {
				p.ProbeID = "same"
			}
		}},
		{"probe_order", func(_ string, _ *Event, p *Probe) {
			if p != nil {
				p.AfterSession = 3
			}
		}},
		{"session_order", func(_ string, e *Event, _ *Probe) {
			if e != nil && e.SessionIndex == 2 {
				e.SessionIndex = 4
			}
		}},
		{"event", func(_ string, e *Event, _ *Probe) {
			if e != nil && e.EventID == "e1-3" {
				e.Messages = nil
			}
		}},
		{"empty_query", func(_ string, _ *Event, p *Probe) {
			if p != nil {
				p.Query = " "
			}
		}},
		{"no_gold", func(_ string, _ *Event, p *Probe) {
			if p != nil {
				p.Gold.Evidence = nil
			}
		}},
		{"canary_not_unique", func(persona string, e *Event, p *Probe) {
			if p != nil && persona == "ann" {
				p.Kind, p.Gold.Answers = CanaryKind, [][]string{{"Zorvex"}}
			}
			if e != nil && persona == "bob" && e.EventID == "e1-3" {
				e.Messages[0].Content = text("a cat called zorvex")
			}
		}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "p")
			write(t, path, c.change)
			p, err := Open(path)
			require.NoError(t, err)
			findings, err := Lint(p)
			require.NoError(t, err)
			require.NotEmpty(t, findings)
			assert.Equal(t, c.rule, findings[0].Rule, "%+v", findings)
		})
	}
}
