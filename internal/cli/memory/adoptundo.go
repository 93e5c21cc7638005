package memory

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/wholefile"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/doors/agenthook/hookcmd"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/outbox"
)

// adoptionNote is the file in the data folder that records adoptions of one agent at one slot, so that they can be
// undone.
type adoptionNote struct {
	// Hooks is true if adopt installed the hooks.
	Hooks  bool            `json:"hooks"`
	Events []adoptedEvents `json:"events"`
}

// adoptedEvents lists the events of a scope that were new.
type adoptedEvents struct {
	Scope abi.MemoryScope `json:"scope"`
	IDs   []string        `json:"ids"`
}

// forgetAtOnce is the largest number of events in one call.
const forgetAtOnce = 500

// adoptionFile returns the file of an agent's adoptions at the named slot, or at that of the data folder.
func (a *commands) adoptionFile(p *adoption) (string, error) {
	c, err := a.Config()
	if err != nil {
		return "", err
	}
	name := string(p.source) + ".json"
	if server := a.ServerNamed(); server != "" {
		named, err := client.New(server, "")
		if err != nil {
			return "", err
		}
		name = outbox.Digest(named.Base())[:16] + "-" + name
	}
	return filepath.Join(c.Data.Dir, "adopted", name), nil
}

// readAdoption reads what was adopted, which is nothing if the file is missing.
func readAdoption(path string) (*adoptionNote, error) {
	note := new(adoptionNote)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return note, nil
	case err == nil:
		err = json.Unmarshal(text, note)
	}
	if err != nil {
		return nil, cli.FileError(path, err)
	}
	return note, nil
}

func writeAdoption(path string, note *adoptionNote) error {
	text, err := json.Marshal(note)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = wholefile.WriteDurable(path, text, 0o600)
	}
	if err != nil {
		return cli.FileError(path, err)
	}
	return nil
}

// noteAdoption adds to the note of an adoption.
func (a *commands) noteAdoption(p *adoption, events *adoptedEvents, hooks bool) error {
	path, err := a.adoptionFile(p)
	if err != nil {
		return err
	}
	note, err := readAdoption(path)
	if err != nil {
		return err
	}
	note.Hooks = note.Hooks || hooks
	if events != nil && len(events.IDs) > 0 {
		at := slices.IndexFunc(note.Events, func(e adoptedEvents) bool { return e.Scope == events.Scope })
		if at < 0 {
			at, note.Events = len(note.Events), append(note.Events, adoptedEvents{Scope: events.Scope})
		}
		note.Events[at].IDs = append(note.Events[at].IDs, events.IDs...)
	}
	return writeAdoption(path, note)
}

// undoAdoption removes the hooks and forgets what was adopted.
func (a *commands) undoAdoption(cmd *cobra.Command, f *adoptFlags, p *adoption) error {
	ctx, stop := a.UntilInterrupted(cmd.Context())
	defer stop()
	path, err := a.adoptionFile(p)
	if err != nil {
		return err
	}
	note, err := readAdoption(path)
	if err != nil {
		return err
	}
	change := new(hookcmd.Change)
	if note.Hooks {
		if change, err = hookcmd.Prepare(a.App, cmd.Flags(), string(p.source), true); err != nil {
			return err
		}
	}
	n := 0
	for _, e := range note.Events {
		n += len(e.IDs)
	}
	if n == 0 && change.Diff == "" {
		a.Out.Note("nothing of %s was adopted here", p.title)
		return nil
	}
	for _, e := range note.Events {
		a.Out.Note("%s: %s to forget, which cannot be recorded again", cli.ScopeText(e.Scope), cli.Count(len(e.IDs), "turn"))
	}
	if change.Diff != "" {
		a.Out.Note("hooks, in %s:\n%s", change.Path, change.Diff)
	}
	if !f.yes {
		if !cli.IsTerminal(a.Stdin) {
			return cli.UsageError("adopt --undo cannot ask here, and did nothing", "say --yes if that is meant")
		}
		fmt.Fprintf(a.Out.Stderr, "Take it back? Type yes: ")
		if err := a.confirmed(ctx, "nothing was taken back"); err != nil {
			return err
		}
	}
	if err := change.Write(); err != nil {
		return err
	}
	note.Hooks = false
	if err := writeAdoption(path, note); err != nil || n == 0 {
		return err
	}
	d, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	whole := error(nil)
	var left []adoptedEvents
	for _, e := range note.Events {
		for ids := range slices.Chunk(e.IDs, forgetAtOnce) {
			r, err := d.Forget(ctx, &abi.ForgetRequest{Scope: e.Scope, EventIDs: ids, Reason: "adopt --undo"})
			if err != nil {
				return err
			}
			if a.Out.JSON {
				if err := a.Out.Value(r); err != nil {
					return err
				}
			} else {
				a.Out.Print("%s: %s, %s\n", cli.ScopeText(e.Scope), cli.Count(len(ids), "turn"), r.Status)
				a.showRemains(r.DerivedMayRemain, r.Outside)
			}
			if err := forgetExit(r.Status, r.DerivedMayRemain); err != nil {
				whole = cmp.Or(whole, err)
				left = append(left, adoptedEvents{e.Scope, ids})
			}
		}
	}
	note.Events = left
	if err := writeAdoption(path, note); err != nil {
		return err
	}
	return whole
}
