package host

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/guest"
	"github.com/memhost/memhost/internal/state"
)

// The powers of a guest other than the network: configuration, log, tokens and state. network.go has the network,
// readonly.go what read-only refuses.

var _ guest.Powers = (*operation)(nil)

// Config implements guest.Powers.
func (o *operation) Config() []byte { return o.provider.guestConfig }

// CountTokens implements guest.Powers.
func (o *operation) CountTokens(text []byte) int64 { return o.provider.tokens.Count(text) }

// FitTokens implements guest.Powers.
func (o *operation) FitTokens(text []byte, limit int64) (n int, tokens int64) {
	return o.provider.tokens.Fit(text, limit)
}

// logLine is the maximum length in bytes of a line of a guest's log.
const logLine = 8 << 10

// loggedBytes counts what a guest has logged in one call; cut is true once it exceeded the limit.
type loggedBytes struct {
	bytes int64
	cut   bool
}

var logLevels = []hclog.Level{abi.LogDebug: hclog.Debug, abi.LogInfo: hclog.Info, abi.LogWarn: hclog.Warn,
	abi.LogError: hclog.Error}

// Log implements guest.Powers. Text beyond Limits.LogBytes is dropped, and a line says so.
func (o *operation) Log(level int32, text []byte) {
	p := o.provider
	o.logged.bytes += int64(len(text)) + 16
	if o.logged.bytes > p.limits.LogBytes {
		if !o.logged.cut {
			o.logged.cut = true
			p.logger.Warn("log cut: the guest logged more than it may in one call", "operation", o.Op, "limit_bytes",
				p.limits.LogBytes)
		}
		return
	}
	at := hclog.Info
	if level >= 0 && int(level) < len(logLevels) {
		at = logLevels[level]
	}
	line := p.network.Redactor().Text(string(text)) // redact before cutting: half a secret would not be found
	p.logger.Log(at, guest.Printable(line, logLine), "operation", o.Op, "from", "guest")
}

// Bounds of one state call.
const (
	stateNameBytes = 512
	statePageItems = 1000
	statePageBytes = 16 << 20
)

// stateAt checks that the operation has state, and validates the name of a key, log or prefix.
//
// Errors: denied for an operation without a scope; invalid_argument for a name that is too short, too long or not
// UTF-8.
func (o *operation) stateAt(what, name string, least int) error {
	switch {
	case o.state == nil:
		return abi.NewError(abi.CodeDenied, fmt.Sprintf("%s has no scope, so it has no state", o.Op))
	case len(name) < least || len(name) > stateNameBytes:
		return abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("state %s has %d bytes, want %d to %d", what, len(name), least, stateNameBytes))
	case !utf8.ValidString(name):
		return abi.NewError(abi.CodeInvalidArgument, "state "+what+" is not UTF-8")
	}
	return nil
}

// ownValue copies a value that the guest writes.
//
// Errors: too_large.
func (o *operation) ownValue(value []byte) ([]byte, error) {
	if limit := o.provider.limits.StateValueBytes; int64(len(value)) > limit {
		return nil, abi.NewError(abi.CodeTooLarge,
			fmt.Sprintf("state value has %d bytes, the limit is %d", len(value), limit))
	}
	return bytes.Clone(value), nil
}

// StateGet implements guest.Powers.
func (o *operation) StateGet(ctx context.Context, key string) (value []byte, version int64, err error) {
	if err := o.stateAt("key", key, 1); err != nil {
		return nil, 0, err
	}
	value, version, err = o.state.Get(ctx, key)
	return value, version, stateError(err)
}

// StatePut implements guest.Powers.
func (o *operation) StatePut(ctx context.Context, key string, value []byte, expected int64) (version int64, err error) {
	if err := o.stateAt("key", key, 1); err != nil {
		return 0, err
	}
	own, err := o.ownValue(value)
	if err != nil {
		return 0, err
	}
	if expected < abi.AnyVersion {
		return 0, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("expected version %d; want -1, 0 or a version", expected))
	}
	if err := o.roomForWrite(key, own, true); err != nil {
		return 0, err
	}
	version, err = o.state.Put(ctx, key, own, expected)
	return version, stateError(err)
}

// StateDelete implements guest.Powers.
func (o *operation) StateDelete(ctx context.Context, prefix string) (deleted int64, err error) {
	if err := o.stateAt("prefix", prefix, 0); err != nil {
		return 0, err
	}
	if err := o.roomForWrite(prefix, nil, false); err != nil {
		return 0, err
	}
	deleted, err = o.state.Delete(ctx, prefix)
	return deleted, stateError(err)
}

// StateAppend implements guest.Powers.
func (o *operation) StateAppend(ctx context.Context, log string, entry []byte) (seq int64, err error) {
	if err := o.stateAt("log", log, 1); err != nil {
		return 0, err
	}
	own, err := o.ownValue(entry)
	if err != nil {
		return 0, err
	}
	if err := o.roomForWrite(log, own, false); err != nil {
		return 0, err
	}
	seq, err = o.state.Append(ctx, log, own)
	return seq, stateError(err)
}

// StateList implements guest.Powers.
func (o *operation) StateList(ctx context.Context, r *abi.StateListRequest) (*abi.StateList, [][]byte, error) {
	if err := o.stateAt("prefix", "", 0); err != nil {
		return nil, nil, err
	}
	page, err := o.state.List(ctx, state.ListQuery{Prefix: r.Prefix, After: r.After, Limit: pageItems(r.Limit),
		Values: r.Values, MaxBytes: statePageBytes})
	if err != nil {
		return nil, nil, stateError(err)
	}
	head := &abi.StateList{Keys: make([]abi.StateKey, len(page.Items)), More: page.More}
	var values [][]byte
	for i, item := range page.Items {
		head.Keys[i] = abi.StateKey{Key: item.Key, Version: item.Version, Size: int64(item.Size)}
		if r.Values {
			values = append(values, item.Data)
		}
	}
	return head, values, nil
}

// StateRead implements guest.Powers.
func (o *operation) StateRead(ctx context.Context, r *abi.StateReadRequest) (*abi.StateEntries, [][]byte, error) {
	if err := o.stateAt("log", r.Log, 1); err != nil {
		return nil, nil, err
	}
	page, err := o.state.Read(ctx, state.LogQuery{Log: r.Log, From: max(0, r.From), Limit: pageItems(r.Limit),
		Reverse: r.Reverse, MaxBytes: statePageBytes})
	if err != nil {
		return nil, nil, stateError(err)
	}
	head := &abi.StateEntries{Entries: make([]abi.StateEntry, len(page.Items)), Last: page.Last, More: page.More}
	entries := make([][]byte, len(page.Items))
	for i, e := range page.Items {
		head.Entries[i] = abi.StateEntry{Seq: e.Seq, Size: int64(len(e.Data))}
		entries[i] = e.Data
	}
	return head, entries, nil
}

// pageItems is the number of items in a page: the requested limit, at most statePageItems.
func pageItems(limit int64) int {
	if limit <= 0 || limit > statePageItems {
		return statePageItems
	}
	return int(limit)
}

// stateWritesInFlight bounds, in bytes, the uncommitted state writes of all operations of a host. A single operation
// may always hold Limits.StateWriteBytes.
const stateWritesInFlight = 128 << 20

// roomForWrite reserves room for one more write of the operation.
//
// Errors: too_large if the operation would hold more than Limits.StateWriteBytes; rate_limited if all operations of the
// host would hold more than stateWritesInFlight.
func (o *operation) roomForWrite(name string, value []byte, put bool) error {
	limit, bytes := o.provider.limits.StateWriteBytes, o.state.WriteBytesWith(name, value, put)
	if bytes > limit {
		return abi.NewError(abi.CodeTooLarge,
			fmt.Sprintf("the operation would write %d bytes of state, the limit is %d", bytes, limit)).
			WithReason("state_writes").WithHint("record less at once, or raise limits.state_write_bytes")
	}
	more := bytes - o.reservedWrites
	inFlight := o.slot.stateWrites()
	if inFlight.Add(more) > max(stateWritesInFlight, limit) && more > 0 {
		inFlight.Add(-more)
		return abi.NewError(abi.CodeRateLimited, fmt.Sprintf("operations under way hold %d bytes of state writes, "+
			"and at most %d may wait for their commits", inFlight.Load(), stateWritesInFlight)).
			WithReason("state_writes_in_flight").WithHint("try again when other operations have ended")
	}
	o.reservedWrites = bytes
	return nil
}

// releaseWrites frees the reserved room after the writes are committed or dropped.
func (o *operation) releaseWrites() {
	o.slot.stateWrites().Add(-o.reservedWrites)
	o.reservedWrites = 0
}

// stateWrites counts what running operations have written: of all slots of the host together, but of a follower
// separately, so that it takes no room from the serving provider.
func (s *Slot) stateWrites() *atomic.Int64 {
	if s.following != nil {
		return &s.following.stateWrites
	}
	return &s.host.stateWrites
}
