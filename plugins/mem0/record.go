package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/recorded"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// recordEvent adds a turn with one add, and looks up every id that the add returned.
//
// Out: committed with the rows' ids (self-hosted, and verbatim on the platform); queued with a marker (platform,
// extracting); not_retained if mem0 extracted nothing from the turn; partial if it stored a part of it; uncertain if
// that is unknown.
// Errors: rate_limited, unavailable or backend if mem0 reports that its LLM, embedder or store failed and nothing was
// stored; those of failure.
func recordEvent(b *backend, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	r, err := b.record(e)
	if err == nil && (r.Status == abi.StatusCommitted || r.Status == abi.StatusQueued) {
		err = recorded.Note(b.Call)
	}
	return r, err
}

func (b *backend) record(e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	o := b.translate(e)
	switch {
	case b.Resume != nil:
		return b.resume(o, b.Resume)
	case len(o.parts) == 0:
		o.warn("nothing_to_store: no message of the turn has text that mem0 would take")
		return b.receipt(o, abi.StatusNotRetained, nil), nil
	}
	return b.add(o, o.parts, b.infer)
}

// add sends parts of an event and returns their outcome.
func (b *backend) add(o *outgoing, parts []part, infer bool) (*abi.WriteReceipt, error) {
	route := b.route("add")
	body, err := b.send(request{route: route, body: b.addBody(o, parts, infer)})
	switch {
	case err != nil && b.Resume != nil:
		// The host keeps the first attempt's error, and checks again.
		return nil, err
	case err != nil:
		return b.afterFailure(o, infer, abi.AsError(err))
	}
	job, results, err := readAdded(route, body)
	switch {
	case err != nil:
		return nil, err
	case job.pending():
		r := b.receipt(o, abi.StatusQueued, []string{job.id})
		r.NativeIDsKind, r.Markers = abi.NativeIDsTransient, []string{marker(job.id, o.event.EventID)}
		return r, nil
	case len(results) == 0:
		o.warn("no_memories_extracted: mem0 stored nothing and does not say why: nothing memorable, known already, " +
			"an answer of its LLM that could not be read or was cut, or an embedder that failed after the extraction")
		return b.receipt(o, abi.StatusNotRetained, nil), nil
	}
	return b.verify(o, results)
}

// job is the platform's receipt of a write in progress.
type job struct{ id, status string }

// pending reports whether the platform will do the work later. An unknown status counts as pending.
func (j job) pending() bool { return j.id != "" && j.status != "SUCCEEDED" }

// readAdded reads the answer of either surface: {"results": [{id, memory, event}]}, or {event_id, status, results?:
// [{id, data: {memory}, event}]}.
func readAdded(route string, body abi.Raw) (j job, results []*memory, err error) {
	var list []abi.Raw
	if err := read(route, body, "event_id", &j.id, "status", &j.status, "results", &list); err != nil {
		return j, nil, err
	}
	if j.id == "" && list == nil {
		return j, nil, unusable(route, body, "it has no list of results")
	}
	results, good := readAddedList(list)
	if !good {
		return j, nil, unusable(route, body, "a result has no id")
	}
	return j, results, nil
}

// readAddedList returns what was stored; good is false if a result does not say what.
func readAddedList(list []abi.Raw) (stored []*memory, good bool) {
	for _, result := range list {
		item, event := &memory{}, "ADD"
		wire.Pick(result, "id", &item.id, "memory", &item.text, "data", wire.Fields{"memory", &item.text},
			"event", &event)
		// Servers before library 2.0 also return what they removed or left unchanged.
		switch {
		case event == "DELETE" || event == "NONE":
		case item.id == "":
			return nil, false
		default:
			stored = append(stored, item)
		}
	}
	return stored, true
}

// verify looks up every returned id. mem0 before library 2.2.1 returns ids of rows that its database rejected, possibly
// only some of a batch; only a look-up by id reveals them.
func (b *backend) verify(o *outgoing, results []*memory) (*abi.WriteReceipt, error) {
	var stored []string
	var ghosts []*memory
	for _, item := range results {
		if !b.verifyWrites {
			stored = append(stored, item.id)
			continue
		}
		switch m, err := b.getMemory(item.id); {
		case abi.CodeOf(err) == abi.CodeIsolationBreach:
			return nil, err
		case err != nil:
			o.warn("write_unverified: mem0 answered that the turn is stored, and then could not be asked for it: " +
				abi.AsError(err).Message)
			return b.receipt(o, abi.StatusUncertain, idsOfRows(results)), nil
		case m == nil:
			ghosts = append(ghosts, item)
		default:
			stored = append(stored, item.id)
		}
	}
	if len(ghosts) == 0 {
		return b.receipt(o, abi.StatusCommitted, stored), nil
	}
	if len(stored) == 0 {
		e := abi.NewError(abi.CodeBackend, "mem0 answered that the turn is stored, and has none of the ids that it "+
			"gave").
			WithReason("write_not_persisted").WithHint("its database refused the rows; mem0's log says why. Record " +
			"the turn again; library 2.2.1 and later say so themselves")
		e.Retryable, e.NothingStored = true, true
		return nil, e
	}
	o.warn("write_not_persisted: mem0 answered ids of memories that it did not store; recording the turn again " +
		"stores only those")
	r := b.receipt(o, abi.StatusPartial, stored)
	for _, g := range ghosts {
		r.Markers = append(r.Markers, factPrefix+g.text)
	}
	return r, nil
}

// afterFailure determines the outcome of a failed add. If mem0 itself reports that its LLM or embedder failed, an
// extracting add has stored nothing; otherwise the rows are checked once, since mem0 has finished. If something else
// answered in its place, the add may still be in progress.
func (b *backend) afterFailure(o *outgoing, infer bool, e *abi.Error) (*abi.WriteReceipt, error) {
	status := statusOf(e)
	switch {
	case status < 500:
		return nil, e // not sent, rejected, or unknown: the host knows which
	case e.Reason == "" && status != 500 || b.platform():
		o.warn("write_in_doubt: " + e.Message)
		return b.receipt(o, abi.StatusUncertain, nil), nil
	case infer && strings.HasPrefix(e.Reason, "provider_"):
		e.NothingStored = true
		return nil, e
	}
	look, err := b.findRows(o.event.EventID)
	switch {
	case abi.CodeOf(err) == abi.CodeIsolationBreach:
		return nil, err
	case err != nil || len(look.rows) == 0 && !look.complete:
		o.warn("write_in_doubt: " + e.Message)
		return b.receipt(o, abi.StatusUncertain, nil), nil
	case len(look.rows) == 0:
		e.NothingStored = true
		return nil, e
	}
	missing := missingParts(o.digests, look.rows)
	o.warn("stored_despite_error: " + e.Message)
	r := b.receipt(o, abi.StatusCommitted, idsOfRows(look.rows))
	switch {
	case len(missing) > 0 && look.complete:
		r.Status, r.Markers = abi.StatusPartial, missing
	case len(missing) > 0:
		r.Status = abi.StatusUncertain
	}
	return r, nil
}

// resume sends what find_event found missing: parts of a verbatim turn by their digests, and facts that mem0 extracted
// but did not store by their text.
func (b *backend) resume(o *outgoing, r *abi.Resume) (*abi.WriteReceipt, error) {
	var facts, parts []part
	wanted := map[string]int{}
	for _, missing := range r.Missing {
		if text, ok := strings.CutPrefix(missing, factPrefix); ok {
			facts = append(facts, part{role: string(abi.RoleUser), text: text})
		} else if digest, ok := strings.CutPrefix(missing, partPrefix); ok {
			wanted[digest]++
		}
	}
	// mem0 stores a turn's messages one after another, so of equal ones the last is missing.
	for _, p := range slices.Backward(o.parts) {
		if digest := digestOf(p.text); wanted[digest] > 0 {
			wanted[digest]--
			parts = append(parts, p)
		}
	}
	slices.Reverse(parts)
	if parts = append(parts, facts...); len(parts) == 0 {
		return nil, abi.NewError(abi.CodeConflict, "resume: nothing of what is missing is in the event").
			WithReason("nothing_missing").
			WithHint("was max_chars_per_message changed, or infer, since the turn was recorded first?")
	}
	return b.add(o, parts, false)
}

// receipt returns an event's receipt. ids are those of rows, or of a job.
func (b *backend) receipt(o *outgoing, status abi.WriteStatus, ids []string) *abi.WriteReceipt {
	effective := wire.Object{"api", b.surface.api, "infer", b.infer, "procedural", b.procedural,
		"gateway", b.surface.gateway,
		"observation_date", wire.If(b.infer && b.observationDate != "none", b.observationDate)}
	r := &abi.WriteReceipt{EventID: o.event.EventID, Status: status, NativeIDs: ids, NativeIDsKind: abi.NativeIDsNone,
		Warnings: o.warnings,
		Trace: &abi.Trace{BackendName: b.config.Provider, NativeOperation: "POST /memories", NativeIDs: ids,
			Effective: effective.Map()}}
	if b.platform() {
		r.Trace.NativeOperation = "POST /v3/memories/add/"
	}
	switch status {
	case abi.StatusCommitted, abi.StatusPartial, abi.StatusNotRetained:
		r.StoredCount = sdk.Ptr(int64(len(ids)))
	}
	if len(ids) > 0 {
		r.NativeIDsKind = abi.NativeIDsFinal
	}
	return r
}
