package score

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/stretchr/testify/require"
)

// fabricatedAnswer is a made-up provider's answer to a probe: items shown one after another, each completely.
type fabricatedAnswer struct {
	items     []abi.Evidence
	err       *abi.Error
	silent    bool // the cell ended before it asked
	pending   bool
	score     *float64
	unshown   bool // the provider does not say where items are shown
	truncated bool
	gaveUp    []string // events that could not be recorded before this probe
	recorded  []journal.Record
	readiness *journal.Readiness // the wait before this probe
	hidden    bool               // its items are not in the context
	breached  bool               // its test session changed memory
}

// fabricate writes the folder of a run whose providers give the answers of a function.
func fabricate(t *testing.T, l *lab.Lab, p *pack.Pack, answer func(label string, probe *pack.Probe, budget int64,
	events []*pack.Event) fabricatedAnswer) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "run")
	r := &rundir.Run{Run: rundir.Version, Program: "test", Lab: l, PackPath: "synth.pack", Pack: p.Manifest,
		LabSHA256: l.SHA256(p.Manifest.ContentSHA256)}
	for i := range l.Providers {
		c := &rundir.Cell{Label: l.Providers[i].Label, Replicate: 1, RunID: "eval", State: rundir.Complete, Alone: true}
		r.Cells = append(r.Cells, c)
		dir := c.Folder(folder)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		manifest := fmt.Sprintf(`{"provider":%q,"condition_kind":"architecture","abi":"mh1","config":{},"module":{"name":%q,"version":"1","sha256":"00"},"smokes":[]}`,
			c.Label, c.Label)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(manifest), 0o600))
		w, err := journal.Append(filepath.Join(dir, journal.Name), func() string { return "2026-03-02T10:00:00Z" },
			func(*journal.Line) {})
		require.NoError(t, err)
		write := func(line *journal.Line) { require.NoError(t, w.Write(line)) }
		write(&journal.Line{Kind: journal.KindBegin, Begin: &journal.Begin{Label: c.Label,
			PackSHA256: p.Manifest.ContentSHA256}})
		for _, persona := range p.Manifest.Personas {
			var events []*pack.Event
			for e, err := range p.Events(persona.PersonaID) {
				require.NoError(t, err)
				events = append(events, e)
			}
			for probe, err := range p.Probes(persona.PersonaID) {
				require.NoError(t, err)
				known := slices.IndexFunc(events, func(e *pack.Event) bool {
					return e.SessionIndex > probe.AfterSession
				})
				if known < 0 {
					known = len(events)
				}
				for _, budget := range l.BudgetsOf(&l.Providers[i]) {
					a := answer(c.Label, probe, budget, events[:known])
					if a.silent {
						c.State, c.Error = rundir.Failed, abi.NewError(abi.CodeUnavailable, "the backend is gone")
						continue
					}
					for _, id := range a.gaveUp {
						write(&journal.Line{Kind: journal.KindRecord, PersonaID: probe.PersonaID, Session: probe.AfterSession,
							Record: &journal.Record{EventID: id, Failed: true, Error: abi.NewError(abi.CodeInternal, "no")}})
					}
					for i := range a.recorded {
						write(&journal.Line{Kind: journal.KindRecord, PersonaID: probe.PersonaID, Session: probe.AfterSession,
							Record: &a.recorded[i]})
					}
					if a.pending {
						a.readiness = &journal.Readiness{Status: abi.ReadinessPending}
					}
					if a.readiness != nil {
						a.readiness.Purpose = "test_session"
						write(&journal.Line{Kind: journal.KindReadiness, PersonaID: probe.PersonaID, Session: probe.AfterSession,
							Readiness: a.readiness})
					}
					write(&journal.Line{Kind: journal.KindProbe, PersonaID: probe.PersonaID,
						Session: probe.AfterSession,
						Probe:   a.line(t, folder, probe.ProbeID, budget)})
					if a.breached {
						write(&journal.Line{Kind: journal.KindClosed, PersonaID: probe.PersonaID, Session: probe.AfterSession,
							Closed: &journal.Closed{Wall: "breached", Detail: "inventory before 3, after 4"}})
					}
				}
			}
		}
		if c.State == rundir.Complete {
			write(&journal.Line{Kind: journal.KindEnd, End: &journal.End{}})
			c.Head = w.Head()
		}
		require.NoError(t, w.Close())
	}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, rundir.File), text, 0o600))
	return folder
}

// line is the journal line of an answer, whose context it stores.
func (a *fabricatedAnswer) line(t *testing.T, folder, probe string, budget int64) *journal.Probe {
	t.Helper()
	if a.err != nil {
		return &journal.Probe{ProbeID: probe, Budget: budget, Read: 1, Error: a.err}
	}
	text, items := "<memory-context backend=\"x\" scope=\"r/p\">\n", slices.Clone(a.items)
	for i := range items {
		items[i].Rank = int64(i + 1)
		if a.hidden {
			continue
		}
		start := int64(len(text) + len("- "))
		text += "- " + items[i].Text + "\n"
		if !a.unshown {
			items[i].Shown = &abi.Shown{Start: start, End: start + int64(len(items[i].Text)), Whole: true}
		}
	}
	if len(items) == 0 {
		text = ""
	} else {
		text += "</memory-context>"
	}
	sum := sha256.Sum256([]byte(text))
	name := hex.EncodeToString(sum[:])
	path := filepath.Join(folder, "contexts", name[:2], name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	tokens := int64(len(text)+3) / 4
	if budget > 0 && tokens > budget { // the host would reject it
		refused := abi.NewError(abi.CodeInternal, "the context is longer than its budget").WithReason(abi.ReasonContractBreach)
		return &journal.Probe{ProbeID: probe, Budget: budget, Read: 1, Error: refused}
	}
	return &journal.Probe{ProbeID: probe, Budget: budget, Read: 1, ContextSHA256: name, Evidence: items, LatencyMS: 2,
		Trace: &abi.Trace{TokenCount: &tokens, TopScore: a.score, Truncated: &a.truncated, BackendMS: 1}}
}

// asItems returns items that name the events.
func asItems(events ...*pack.Event) []abi.Evidence {
	var list []abi.Evidence
	for _, e := range events {
		list = append(list, abi.Evidence{Text: *e.Messages[0].Content, NativeID: e.EventID,
			SourceEventIDs: []string{e.EventID}})
	}
	return list
}

// evidenceOf returns the events in a probe's gold.
func evidenceOf(probe *pack.Probe, events []*pack.Event) []*pack.Event {
	var list []*pack.Event
	for _, e := range events {
		if slices.ContainsFunc(probe.Gold.Evidence, func(g []string) bool { return slices.Contains(g, e.EventID) }) {
			list = append(list, e)
		}
	}
	return list
}
