package mcpdoor

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

func (d *Door) status(ctx context.Context, _ arguments) (*mcp.CallToolResult, error) {
	var mode *abi.ModeReceipt
	var health *abi.BackendHealth
	var ready *abi.BackendReadiness
	err := d.options.Slot(ctx, func(ctx context.Context, c host.Contract) (err error) {
		if mode, err = c.Mode(ctx); err != nil {
			return err
		}
		if health, err = c.Health(ctx); err != nil {
			return err
		}
		ready, err = c.Readiness(ctx, &abi.ReadinessRequest{Scope: d.options.Scope})
		if abi.CodeOf(err) == abi.CodeUnsupported {
			ready, err = &abi.BackendReadiness{Status: abi.ReadinessUnknown}, nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	d.note(func(s *state) { s.readOnly = mode.ReadOnly })
	word := "open for writing"
	if mode.ReadOnly {
		word = "READ-ONLY: nothing is recorded"
	}
	warnings := append(nonNil(health.Warnings), ready.Warnings...)
	text := fmt.Sprintf("%s is %s. The slot is %s since %s. What was recorded: %s.", health.BackendName, health.Status, word, mode.Since, ready.Status)
	if len(warnings) > 0 {
		text += "\nWarnings: " + strings.Join(warnings, "; ")
	}
	return answered(text, map[string]any{"provider": health.BackendName, "health": health.Status, "read_only": mode.ReadOnly, "readiness": ready.Status,
		"pending": len(ready.EventIDs.Pending), "run_id": d.options.Scope.RunID, "persona_id": d.options.Scope.PersonaID, "session_id": d.options.Session,
		"warnings": warnings}), nil
}

func (d *Door) reset(ctx context.Context, _ arguments) (*mcp.CallToolResult, error) {
	var r *abi.ResetReceipt
	err := d.options.Slot(ctx, func(ctx context.Context, c host.Contract) (err error) {
		r, err = c.ResetScope(ctx, d.options.Scope)
		return err
	})
	if abi.CodeOf(err) == abi.CodeReadOnly {
		d.note(func(s *state) { s.readOnly = true })
	}
	if err != nil {
		return nil, err
	}
	text := map[abi.ResetStatus]string{
		abi.ResetDone:       "Erased.",
		abi.ResetInProgress: "The memory is being erased, which is not done yet. Nothing of it can be found from now on.",
		abi.ResetIncomplete: "Erased in part.",
		abi.ResetFailed:     "NOT erased.",
	}[r.Status]
	if len(r.Remains) > 0 {
		text += "\nWhat remains: " + strings.Join(r.Remains, "; ")
	}
	return answered(text, map[string]any{"status": r.Status, "remains": nonNil(r.Remains), "warnings": nonNil(r.Warnings)}), nil
}

// setMode sets the mode of the door's scope alone: the slot may serve others.
func (d *Door) setMode(ctx context.Context, a arguments) (*mcp.CallToolResult, error) {
	readOnly, err := a.truth("read_only")
	if err != nil {
		return nil, err
	}
	reason, err := a.text("reason")
	if err != nil {
		return nil, err
	}
	if reason == "" {
		reason = "asked for by an MCP client"
	}
	scope := d.options.Scope
	var r *abi.ModeReceipt
	err = d.options.Slot(ctx, func(ctx context.Context, c host.Contract) (err error) {
		r, err = c.SetMode(ctx, &abi.AdapterMode{ReadOnly: readOnly, Reason: reason, Scope: &scope})
		return err
	})
	if err != nil {
		return nil, err
	}
	d.note(func(s *state) { s.skipped = r.ReadOnly && !s.readOnly })
	text := "This memory can be written."
	switch {
	case r.ReadOnly && readOnly:
		text = "This memory is read-only from now on."
	case r.ReadOnly:
		text = "The whole slot is read-only, which this tool cannot end: nothing is recorded."
	}
	return answered(text, map[string]any{"read_only": r.ReadOnly, "since": r.Since, "in_flight": r.InFlight}), nil
}
