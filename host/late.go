package host

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/state"
)

// A late write is a native call that changes a backend and leaves this host after its session has ended. The host looks
// at its session before each such call (willSend), but it may be paused between the look and the sending, and no store
// can hold back what has been sent. So it looks again when the request has been written, counts, and tells: the event's
// receipt, the slot's mode, and the cluster's state name the call.

// tableLate holds the late writes of all hosts: time in ns since 1970 (8 bytes) and the scope's key -> lateWrite's JSON.
const tableLate state.Table = "late"

// maxLateWrites bounds what is read of the table.
const maxLateWrites = 100

const warnLateWrite = "late_write: "

// watchSending makes a context that notices a late write of the operation: the request was written, and the session had
// ended. sent must be called after the call; it notices one of a protocol without such a moment.
func (o *operation) watchSending(ctx context.Context, class abi.Class, route string) (_ context.Context, sent func()) {
	if o.turn == nil || class == abi.ClassRead {
		return ctx, func() {}
	}
	var once sync.Once // the request's writer and its caller may come at the same time
	look := func() {
		once.Do(func() {
			if o.turn.Alive() != nil {
				o.noteLate(route)
			}
		})
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { look() }}), look
}

// noteLate counts a late write and lets the other hosts know. The host has no session for the moment, and its store is
// perhaps out of reach: so it goes on trying.
func (o *operation) noteLate(route string) {
	h := o.slot.host
	h.lateWrites.Add(1)
	o.late = true
	scope := o.memoryScope()
	w := &abi.LateWrite{At: h.stamp(), Host: h.name, Route: route, RunID: scope.RunID, Persona: scope.PersonaID,
		EventIDs: slices.Clone(o.sending)}
	if w.EventIDs == nil {
		w.EventIDs = []string{}
	}
	o.provider.logger.Error("a write left this host after its session had ended: another host may have acted for the "+
		"scope, and the slot may have become read-only", "route", route, "run", scope.RunID, "persona", scope.PersonaID,
		"events", strings.Join(w.EventIDs, " "))
	key := append(binary.BigEndian.AppendUint64(nil, uint64(h.now().UnixNano())), o.scope.key[:]...)
	h.fleet.Insist(func(ctx context.Context) error {
		var b state.Batch
		b.PutRecord(tableLate, key, abi.Marshal(w))
		return h.fleet.Commit(ctx, &b)
	})
}

// readLateWrites returns the newest late writes first.
func readLateWrites(ctx context.Context, store state.Store) ([]abi.LateWrite, error) {
	list := []abi.LateWrite{}
	err := state.EachRecord(ctx, store, tableLate, nil, func(r state.KeyValue) error {
		var w abi.LateWrite
		if err := abi.Unmarshal(r.Value, &w); err != nil {
			return abi.WrapError(abi.CodeUnavailable, "state: the record of a late write is damaged", err).WithReason("state")
		}
		list = append(list, w)
		return nil
	})
	slices.Reverse(list)
	return list[:min(len(list), maxLateWrites)], err
}

// lateWarning is the warning of a mode that is read-only since a time, about late writes after it; "" when there were
// none. A scope of nil means all.
func (h *Host) lateWarning(ctx context.Context, sc *scopeState, since string) (string, error) {
	if !h.fleet.Shared() {
		return "", nil
	}
	from, err := time.Parse(time.RFC3339Nano, since)
	if err != nil {
		return "", nil // a mode of before times were kept
	}
	after := binary.BigEndian.AppendUint64(nil, uint64(from.Add(-time.Second).UnixNano())) // clocks differ a little
	records, err := h.store.Records(ctx, tableLate, nil, after, maxLateWrites)
	if err != nil {
		return "", stateError(err)
	}
	var calls []string
	for _, r := range records {
		var w abi.LateWrite
		if sc != nil && !bytes.HasSuffix(r.Key, sc.key[:]) || abi.Unmarshal(r.Value, &w) != nil {
			continue
		}
		calls = append(calls, fmt.Sprintf("%s of host %s at %s for %s / %s, events %s", w.Route, w.Host, w.At, w.RunID,
			w.Persona, strings.Join(w.EventIDs, " ")))
	}
	if len(calls) == 0 {
		return "", nil
	}
	return warnLateWrite + "sent after the host's session had ended, perhaps behind the wall: " +
		strings.Join(calls, "; "), nil
}
