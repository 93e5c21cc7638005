package cli

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/state"
)

// reasonOtherSlot is the error reason if a command's configuration describes another memory than the running slot's.
const reasonOtherSlot = "other_slot"

// DescribeSlot fills in slot.json: how the slot was started, so that a command can tell whether it means this slot.
func (a *App) DescribeSlot(c *config.Config, m *Module) (state.SlotInfo, error) {
	info := state.SlotInfo{StartedAt: a.Now().UTC(), Child: a.MCP == MCPStdio, Namespace: c.Memory.Namespace}
	info.RunID, info.PersonaID, info.AgentID = c.Memory.Scope.RunID, c.Memory.Scope.PersonaID, c.Memory.Scope.AgentID
	var err error
	if info.Folder, err = filepath.Abs(c.Data.Dir); err != nil {
		return info, err
	}
	if c.File != "" {
		if info.Config, err = filepath.Abs(c.File); err != nil {
			return info, err
		}
	}
	info.Provider, _, _ = c.Block()
	info.Block, err = blockDigest(c, m)
	return info, err
}

// blockDigest is the SHA-256 (hex) of the chosen provider's effective block. Equal settings have equal digests, however
// they are written.
func blockDigest(c *config.Config, m *Module) (string, error) {
	name, word, block := c.Block()
	effective, err := m.Info.Check(name, word, block)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(effective)), nil
}

// checkSlot rejects a running slot that is not the one that this command's configuration describes: a command must not
// record into, or erase, a memory that it does not mean. A configuration that chooses no provider accepts any.
//
// Errors: invalid_argument with reasonOtherSlot.
func (a *App) checkSlot(ctx context.Context, c *config.Config, info state.SlotInfo, d *Door) error {
	if info.Provider == "" { // written by an older version
		return nil
	}
	if !sameFolder(info.Folder, c.Data.Dir) {
		return otherSlot("the slot.json in "+c.Data.Dir+" is of the slot that serves "+info.Folder+": the folder was "+
			"probably copied while that slot ran",
			"such a copy may hold half of a commit: use `memhost backup`, or copy again when the slot has ended. To use this one "+
				"as it is, remove "+filepath.Join(c.Data.Dir, state.SlotFile))
	}
	ours := a.Flags.Config == "" && c.File != "" && SameFile(c.File, info.Config)
	name, word, block := c.Block()
	choice := c.Source("memory." + word)
	chosen := choice.String() + " chooses " + name
	switch {
	case choice.Kind == config.KindDefault:
	case name != info.Provider:
		// A flag may name a provider that a swap put there, but a file that chooses another provider belongs to another
		// slot.
		if serves := d.serves(ctx); choice.Kind != config.KindFlag || serves != name {
			return a.otherProvider(info, chosen, serves)
		}
		return nil
	case choice.Kind == config.KindFlag || !SameFile(c.File, info.Config):
		if serves := d.serves(ctx); serves != name {
			return a.otherProvider(info, chosen, serves)
		}
	}
	if namespace := c.Source("memory.namespace"); namespace.Kind != config.KindDefault &&
		c.Memory.Namespace != info.Namespace && !ours {
		return a.otherSettings(info, namespace.String()+" sets memory.namespace to "+
			Quote(c.Memory.Namespace)+", the slot has "+Quote(info.Namespace))
	}
	if name != info.Provider || string(block) == "{}" || ours {
		return nil
	}
	m, err := a.ResolveChecked(c)
	if err != nil {
		return err
	}
	digest, err := blockDigest(c, m)
	if err != nil || digest == info.Block {
		return err
	}
	return a.otherSettings(info, "the block of "+name+" here is not the one that it was started with")
}

// serves returns the provider that the slot serves now, "" if it cannot be asked.
func (d *Door) serves(ctx context.Context) string {
	c, err := d.Capabilities(ctx)
	if err != nil {
		return ""
	}
	return c.Provider
}

func otherSlot(message, hint string) error {
	return abi.NewError(abi.CodeInvalidArgument, message).WithReason(reasonOtherSlot).WithHint(hint)
}

func (a *App) otherProvider(info state.SlotInfo, said, serves string) error {
	text := said + ", but the slot at " + info.Address + " was started with " + info.Provider
	if info.Config != "" {
		text += " (" + info.Config + ")"
	}
	if serves != "" && serves != info.Provider {
		text += ", and after a swap " + serves + " serves"
	}
	return otherSlot(text+"; nothing was sent", a.otherSlotHint(info))
}

func (a *App) otherSettings(info state.SlotInfo, what string) error {
	text := "the slot at " + info.Address + " serves " + info.Provider + " with other settings: " + what +
		"; nothing was sent"
	return otherSlot(text, a.otherSlotHint(info)+"; if they were changed since, start the slot again")
}

func (a *App) otherSlotHint(info state.SlotInfo) string {
	hint := "for a memory of its own, give it a data folder of its own: data.dir in the configuration, or --data " +
		"DIR; for the slot that runs, --server " + info.Address
	if a.Flags.Config != "" || len(a.Flags.Set) > 0 {
		hint += " without --config and --set"
	}
	return hint
}

// sameFolder reports whether two paths name the same folder. A path that does not exist here, as that of a slot in a
// container, counts as the same.
func sameFolder(slots, here string) bool {
	of, err := os.Stat(slots)
	if err != nil {
		return true
	}
	ours, err := os.Stat(here)
	return err != nil || os.SameFile(of, ours)
}

// SameFile reports whether two names refer to the same file. "" is not a file.
func SameFile(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	of, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(of, other)
}

// DialNamed connects to the slot that --server or MEMHOST_SERVER names. If the command line also chooses a provider, by
// --config or --set, it must be the serving one.
func (a *App) DialNamed(ctx context.Context, server string) (*Door, error) {
	d, err := a.Dial(server)
	if err != nil || a.Flags.Config == "" && len(a.Flags.Set) == 0 {
		return d, err
	}
	c, err := a.Config()
	if err != nil {
		return nil, err
	}
	name, word, _ := c.Block()
	choice := c.Source("memory." + word)
	// A provider from a default configuration file says nothing about a slot that was named explicitly.
	named := choice.Kind == config.KindFlag || choice.Kind == config.KindFile && a.Flags.Config != ""
	if !named {
		return d, nil
	}
	within, cancel := context.WithTimeout(ctx, AnswerWithin)
	defer cancel()
	serves := d.serves(within)
	if serves == "" || serves == name { // the command reports a slot that does not answer
		return d, nil
	}
	d.Close()
	return nil, otherSlot(
		choice.String()+" chooses "+name+", but the slot at "+d.Where()+" serves "+serves+"; nothing was sent",
		"leave --config and --set out to use the slot as it is, or --server to use the configuration's own")
}
