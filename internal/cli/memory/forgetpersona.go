package memory

import (
	"context"
	"fmt"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
)

// personaEraser is a door that can erase a person: a slot's client.
type personaEraser interface {
	ErasePersona(ctx context.Context, r *report.PersonaRequest) (*report.PersonaReceipt, error)
}

// forgetPersona erases a person at a slot, or in a data folder that was opened here.
func (a *commands) forgetPersona(ctx context.Context, d *cli.Door, r *report.PersonaRequest, yes bool) error {
	if !yes {
		runs := "all runs"
		if r.RunID != "" {
			runs = "run " + cli.Quote(r.RunID)
		}
		fmt.Fprintf(a.Out.Stderr, "Erase all that is held of user %s, %s, by every provider known to %s? Type yes: ",
			cli.Quote(r.PersonaID), runs, d.Where())
		if err := a.confirmed(ctx, "nothing was forgotten"); err != nil {
			return err
		}
	}
	erase := d.Erase
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
	if a.Out.JSON {
		if err := a.Out.Value(receipt); err != nil {
			return err
		}
	} else {
		a.showErased(r, receipt)
		if len(receipt.Scopes) == 0 && receipt.ArchivedEvents == 0 {
			a.TellNearScopes(ctx, d, abi.MemoryScope{RunID: r.RunID, PersonaID: r.PersonaID})
		}
	}
	return forgetExit(receipt.Status, receipt.MayRemain)
}

func (a *commands) showErased(asked *report.PersonaRequest, r *report.PersonaReceipt) {
	a.Out.Print("%s\n", r.Status)
	if len(r.Scopes) == 0 && r.ArchivedEvents == 0 {
		where := ""
		if asked.RunID != "" {
			where = " in run " + cli.Quote(asked.RunID)
		}
		a.Out.Note("  no memory of user %s is known here%s: is the name right?", cli.Quote(asked.PersonaID), where)
	}
	for i := range r.Scopes {
		s := &r.Scopes[i]
		where := "provider " + s.Provider + ", run " + cli.Quote(s.RunID)
		if s.BackendNamespace != "" {
			where += ", namespace " + cli.Quote(s.BackendNamespace)
		}
		if s.AgentID != "" {
			where += ", agent " + cli.Quote(s.AgentID)
		}
		a.Out.Print("  %s: %s\n", where, s.Status)
	}
	a.Out.Print("  archive: %s\n", cli.Count(int(r.ArchivedEvents), "event"))
	a.showRemains(r.MayRemain, r.Outside)
}
