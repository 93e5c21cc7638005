package cli

import (
	"context"
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/server"
)

// eraser erases a person with a slot. running is the configuration that the slot was started with, options how it was
// read: providers that served before are opened with the block that they had, and with the secrets of today.
func (a *app) eraser(slot *host.Slot, running *config.Config, options config.Options) func(context.Context,
	*abi.PersonaRequest) (*abi.PersonaReceipt, error) {
	find := func(_ context.Context, kept *host.KeptProvider) (host.ProviderConfig, error) {
		r := server.SwapRequest{Condition: kept.Name, Config: kept.Block}
		if kept.Word == config.WordBackend {
			r.Backend, r.Condition = kept.Name, ""
		}
		if kept.Source != sourceBuiltin {
			r.Plugin = kept.Source
		}
		next, err := a.swapConfig(running, options, r)
		next.Profile = kept.Profile
		return next, err
	}
	return func(ctx context.Context, r *abi.PersonaRequest) (*abi.PersonaReceipt, error) {
		return slot.ErasePersona(ctx, r, find)
	}
}

// personaEraser is a door that can erase a person: a slot's client.
type personaEraser interface {
	ErasePersona(ctx context.Context, r *abi.PersonaRequest) (*abi.PersonaReceipt, error)
}

// forgetPersona erases a person at a slot, or in a data folder that was opened here.
func (a *app) forgetPersona(ctx context.Context, d *door, r *abi.PersonaRequest, yes bool) error {
	if !yes {
		runs := "all runs"
		if r.RunID != "" {
			runs = "run " + quote(r.RunID)
		}
		fmt.Fprintf(a.Stderr, "Erase all that is held of user %s, %s, by every provider known to %s? Type yes: ",
			quote(r.PersonaID), runs, d.where())
		if err := a.confirmed(ctx, "nothing was forgotten"); err != nil {
			return err
		}
	}
	erase := d.erase
	if remote, ok := d.Contract.(personaEraser); ok && erase == nil {
		erase = remote.ErasePersona
	}
	if erase == nil {
		return abi.NewError(abi.CodeUnsupported, "this slot cannot erase a person")
	}
	receipt, err := erase(ctx, r)
	if err != nil {
		return err
	}
	if a.out.json {
		if err := a.out.value(receipt); err != nil {
			return err
		}
	} else {
		a.showErased(r, receipt)
	}
	return forgetExit(receipt.Status, receipt.MayRemain)
}

func (a *app) showErased(asked *abi.PersonaRequest, r *abi.PersonaReceipt) {
	a.out.print("%s\n", r.Status)
	if len(r.Scopes) == 0 && r.ArchivedEvents == 0 {
		where := ""
		if asked.RunID != "" {
			where = " in run " + quote(asked.RunID)
		}
		a.out.note("  no memory of user %s is known here%s: is the name right?", quote(asked.PersonaID), where)
	}
	for i := range r.Scopes {
		s := &r.Scopes[i]
		where := "provider " + s.Provider + ", run " + quote(s.RunID)
		if s.BackendNamespace != "" {
			where += ", namespace " + quote(s.BackendNamespace)
		}
		if s.AgentID != "" {
			where += ", agent " + quote(s.AgentID)
		}
		a.out.print("  %s: %s\n", printable(where), s.Status)
	}
	a.out.print("  archive: %s\n", count(int(r.ArchivedEvents), "event"))
	a.showRemains(r.MayRemain, r.Outside)
}
