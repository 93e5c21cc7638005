// Package simulatetest creates runs in which made-up agents have conversations with scripted people, for tests of
// scores and reports.
package simulatetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/build"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/simulate"
	"github.com/stretchr/testify/require"
)

// Agent defines what a made-up agent does in one conversation.
type Agent struct {
	// Say returns its answer to the nth text of a person, from 1. If ok is false, it fails instead.
	Say func(n int) (text string, ok bool)
	// Context is what it retrieves before its first answer.
	Context string
	// Late are breaches that are found after the conversation.
	Late []journal.Breach
	// Change alters the transcript before it is written.
	Change func(*journal.Transcript)
}

// Run writes the folder of a run in which agents have conversations with scripted people.
func Run(t *testing.T, l *lab.Lab, p *pack.Pack,
	agent func(label string, replicate int, s *simulate.Setting) Agent) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "run")
	r := &rundir.Run{Run: rundir.Version, Program: "test", Lab: l, PackPath: "synth.pack", Pack: p.Manifest,
		LabSHA256: l.SHA256(p.Manifest.ContentSHA256)}
	budgets := l.Budgets
	if l.Subject != nil {
		budgets = l.SubjectBudgets(budgets)
	}
	for i := range l.Providers {
		for replicate := 1; replicate <= l.Replicates; replicate++ {
			c := &rundir.Cell{Label: l.Providers[i].Label, Replicate: replicate, RunID: "eval", State: rundir.Complete}
			r.Cells = append(r.Cells, c)
			dir := c.Folder(folder)
			require.NoError(t, os.MkdirAll(dir, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.json"), fmt.Appendf(nil,
				`{"provider":%q,"condition_kind":"control","abi":"mh1","config":{},"module":{},"smokes":[]}`, c.Label), 0o600))
			w, err := journal.Append(filepath.Join(dir, journal.Name), func() string { return "2026-03-02T10:00:00Z" },
				func(*journal.Line) {})
			require.NoError(t, err)
			require.NoError(t, w.Write(&journal.Line{Kind: journal.KindBegin, Begin: &journal.Begin{Label: c.Label,
				Replicate: replicate, PackSHA256: p.Manifest.ContentSHA256}}))
			for _, persona := range p.Manifest.Personas {
				list, err := p.Preferences(persona.PersonaID)
				require.NoError(t, err)
				for probe, err := range p.Probes(persona.PersonaID) {
					require.NoError(t, err)
					s := simulate.NewSetting(probe, list)
					if s.Value == "" && probe.Gold.Answerable { // the right answer is unknown
						continue
					}
					for _, budget := range budgets {
						a := agent(c.Label, replicate, s)
						line := &journal.Line{Kind: journal.KindTranscript, PersonaID: probe.PersonaID, Session: probe.AfterSession,
							Transcript: converse(t, folder, s, budget, a)}
						require.NoError(t, w.Write(line))
						check := &journal.NonceCheck{Nonces: len(line.Transcript.Exchanges)}
						for _, b := range a.Late {
							check.Breaches = append(check.Breaches, journal.LateBreach{ProbeID: probe.ProbeID, Budget: budget, Breach: b})
						}
						require.NoError(t, w.Write(&journal.Line{Kind: journal.KindNonceCheck, PersonaID: probe.PersonaID,
							Session: probe.AfterSession, NonceCheck: check}))
					}
				}
			}
			require.NoError(t, w.Write(&journal.Line{Kind: journal.KindEnd, End: &journal.End{}}))
			c.Head = w.Head()
			require.NoError(t, w.Close())
		}
	}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, rundir.File), text, 0o600))
	return folder
}

func converse(t *testing.T, folder string, s *simulate.Setting, budget int64, a Agent) *journal.Transcript {
	t.Helper()
	context, err := rundir.Contexts(folder).Put([]byte(a.Context))
	require.NoError(t, err)
	out := &journal.Transcript{ProbeID: s.ProbeID, Budget: budget, Context: s.Context, Attribute: s.Attribute, Seat: "builtin",
		Simulator: "scripted", Ended: journal.EndedSubject, Retrievals: []journal.Retrieval{{Turn: 1, Query: s.Opening, ContextSHA256: context}}}
	user, err := simulate.Scripted{}.Open(t.Context(), s)
	require.NoError(t, err)
	says := user.Opening()
	for n := 1; says != ""; n++ {
		x := journal.Exchange{User: says}
		text, ok := a.Say(n)
		if !ok {
			out.Exchanges, out.Error = append(out.Exchanges, x), abi.NewError(abi.CodeTimeout, "the agent hung")
			break
		}
		r, err := user.React(t.Context(), text)
		require.NoError(t, err)
		x.Agent, x.Action, says = text, r.Action, r.Text
		out.Exchanges = append(out.Exchanges, x)
		switch r.Action {
		case journal.ActionAccept:
			out.Ended = journal.EndedAccepted
		case journal.ActionGiveUp:
			out.Ended = journal.EndedGivenUp
		}
	}
	if a.Change != nil {
		a.Change(out)
	}
	return out
}

// Always is an agent that always gives the same answer.
func Always(text string) Agent {
	return Agent{Say: func(int) (string, bool) { return text, true }}
}

// Knowing is an agent that knows what the person wants.
func Knowing(s *simulate.Setting) Agent {
	if s.Value == "" {
		return Always("I do not know.")
	}
	return Always("Here is " + s.Value + ".")
}

// Lab is a lab whose sealed comparison is on pet, against the first label.
func Lab(replicates int, labels ...string) *lab.Lab {
	l := &lab.Lab{Lab: lab.Version, Name: "conversations", Budgets: []int64{1000}, Replicates: replicates, Seed: 1, Tokenizer: "o200k_base",
		Primary: &lab.Primary{Metric: "pet", Budget: 1000, Reference: labels[0]}}
	for _, label := range labels {
		l.Providers = append(l.Providers, lab.Provider{Label: label, Memory: map[string]any{"provider": label}})
	}
	return l
}

// Synth creates and opens a synthetic pack. It also returns the pack's path.
func Synth(t *testing.T, options map[string]string) (path string, p *pack.Pack) {
	t.Helper()
	b, err := build.Find("synth")
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "synth.pack")
	_, err = b.Build(build.Request{Options: options}, path)
	require.NoError(t, err)
	p, err = pack.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return path, p
}
