package mcpdoor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// statusParts are the parts of a status, nil if the answer has not arrived.
type statusParts struct {
	mode   *abi.ModeReceipt
	health *abi.BackendHealth
	ready  *abi.BackendReadiness
}

// status reports what is known within Options.StatusWait, even if the slot or its provider hangs.
//
// Errors: timeout if not even the slot's mode is known; the slot's own.
func (d *Door) status(ctx context.Context, _ arguments) (*mcp.CallToolResult, error) {
	within, done := context.WithTimeout(ctx, d.options.StatusWait)
	defer done()
	p, err := d.ask(within)
	if err != nil && within.Err() == nil {
		return nil, err
	}
	if p.mode == nil {
		return nil, abi.NewError(abi.CodeTimeout, fmt.Sprintf("the slot has not answered within %s", d.options.StatusWait)).
			WithHint("it may hang, or be very busy; memory_search and memory_add may still work")
	}
	d.note(func(s *state) { s.readOnly = p.mode.ReadOnly })
	word := "open for writing"
	if p.mode.ReadOnly {
		word = "READ-ONLY: nothing is recorded"
	}
	warnings, provider, health, readiness, pending := []string{}, "", "unknown", abi.ReadinessUnknown, 0
	text := fmt.Sprintf("The provider has not answered within %s: its health is not known.", d.options.StatusWait)
	if p.health != nil {
		provider, health, warnings = p.health.BackendName, string(p.health.Status), append(warnings, p.health.Warnings...)
		text = fmt.Sprintf("%s is %s.", provider, health)
	}
	if p.ready != nil {
		readiness, pending, warnings = p.ready.Status, len(p.ready.EventIDs.Pending), append(warnings, p.ready.Warnings...)
	}
	text += fmt.Sprintf(" The slot is %s since %s. What was recorded: %s.", word, p.mode.Since, readiness)
	if len(warnings) > 0 {
		text += "\nWarnings: " + strings.Join(warnings, "; ")
	}
	return textResult(text, map[string]any{"provider": provider, "health": health, "read_only": p.mode.ReadOnly,
		"readiness": readiness,
		"pending":   pending, "run_id": d.options.Scope.RunID, "persona_id": d.options.Scope.PersonaID,
		"session_id": d.options.Session,
		"warnings":   warnings}), nil
}

// ask requests the parts of a status one after another, and returns those that arrived before ctx ended. It does not
// wait for a slot that ignores the end of ctx.
func (d *Door) ask(ctx context.Context) (statusParts, error) {
	var mu sync.Mutex
	var known statusParts
	put := func(change func()) {
		mu.Lock()
		defer mu.Unlock()
		change()
	}
	ended := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				ended <- abi.NewError(abi.CodeInternal, "a defect of memhost or of its provider: "+fmt.Sprint(p))
			}
		}()
		ended <- d.options.Slot(ctx, func(ctx context.Context, c host.Contract) error {
			mode, err := c.Mode(ctx)
			if err != nil {
				return err
			}
			put(func() { known.mode = mode })
			health, err := c.Health(ctx)
			if err != nil {
				return err
			}
			put(func() { known.health = health })
			ready, err := c.Readiness(ctx, &abi.ReadinessRequest{Scope: d.options.Scope})
			if abi.CodeOf(err) == abi.CodeUnsupported {
				ready, err = &abi.BackendReadiness{Status: abi.ReadinessUnknown}, nil
			}
			put(func() { known.ready = ready })
			return err
		})
	}()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = ctx.Err()
	}
	mu.Lock()
	defer mu.Unlock()
	return known, err
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
	text += outsideText(r.Outside)
	return textResult(text, map[string]any{"status": r.Status, "remains": nonNil(r.Remains),
		"warnings": nonNil(r.Warnings)}), nil
}

// outsideText names the copies that the slot cannot reach.
func outsideText(outside []string) string {
	if len(outside) == 0 {
		return ""
	}
	return "\nWhat the slot cannot reach: " + strings.Join(outside, "; ")
}

// forget removes part of the scope's memory.
func (d *Door) forget(ctx context.Context, a arguments) (*mcp.CallToolResult, error) {
	request := &abi.ForgetRequest{Scope: d.options.Scope, Reason: "asked for by an MCP client"}
	for name, to := range map[string]*[]string{"event_ids": &request.EventIDs, "native_ids": &request.NativeIDs} {
		list, err := a.texts(name)
		if err != nil {
			return nil, err
		}
		*to = list
	}
	for name, to := range map[string]*string{"session_id": &request.SessionID, "from": &request.From, "to": &request.To,
		"reason": &request.Reason} {
		read := a.id
		if name == "reason" {
			read = a.text
		}
		text, err := read(name)
		if err != nil {
			return nil, err
		}
		if text != "" {
			*to = text
		}
	}
	if err := request.Validate(); err != nil {
		return nil, err
	}
	var r *abi.ForgetReceipt
	err := d.options.Slot(ctx, func(ctx context.Context, c host.Contract) (err error) {
		r, err = c.Forget(ctx, request)
		return err
	})
	if abi.CodeOf(err) == abi.CodeReadOnly {
		d.note(func(s *state) { s.readOnly = true })
	}
	if err != nil {
		return nil, err
	}
	text := map[abi.ForgetStatus]string{
		abi.ForgetDone:        "Forgotten.",
		abi.ForgetInProgress:  "It is being removed, which is not done yet: ask again.",
		abi.ForgetPartial:     "Removed in part.",
		abi.ForgetUnsupported: "NOT removed: the provider cannot. It is not recorded again.",
	}[r.Status]
	removed, nothing := map[string][]string{}, len(r.DerivedMayRemain) == 0
	for kind, ids := range r.Removed {
		removed[kind] = nonNil(ids)
		nothing = nothing && len(ids) == 0
	}
	if nothing && r.Status == abi.ForgetDone {
		text = "Nothing of that is in this memory: looked for " + lookedFor(request) + "."
	}
	if len(r.DerivedMayRemain) > 0 {
		text += "\nWhat may remain: " + strings.Join(r.DerivedMayRemain, "; ")
	}
	text += outsideText(r.Outside)
	return textResult(text, map[string]any{"status": r.Status, "removed": removed,
		"may_remain": nonNil(r.DerivedMayRemain)}), nil
}

// lookedFor repeats what a request was about, so that a model notices an id that it wrote in another form.
func lookedFor(r *abi.ForgetRequest) string {
	var parts []string
	add := func(what string, ids ...string) {
		for _, id := range ids {
			if id != "" {
				parts = append(parts, what+" "+strconv.Quote(id))
			}
		}
	}
	add("event", r.EventIDs...)
	add("native id", r.NativeIDs...)
	add("session", r.SessionID)
	add("from", r.From)
	add("to", r.To)
	const most = 5
	if len(parts) > most {
		parts = append(parts[:most], strconv.Itoa(len(parts)-most)+" more")
	}
	return strings.Join(parts, ", ")
}

// setMode sets the mode of the door's scope only, because the slot may serve others.
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
	return textResult(text, map[string]any{"read_only": r.ReadOnly, "since": r.Since, "in_flight": r.InFlight}), nil
}
