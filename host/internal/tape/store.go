package tape

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/internal/state"
)

// store wraps a store. A recording keeps the older records that the host reads, which a replay first copies into its
// own store, and the commits that fail, which fail in a replay too. The guest's state is only replayed through the
// guest's own host calls.
type store struct {
	state.Store
	tape *Tape
}

// Store wraps a store, so that its reads and failures are on the tape.
func (t *Tape) Store(under state.Store) state.Store { return &store{under, t} }

// Record implements state.Store.
func (s *store) Record(ctx context.Context, table state.Table, key []byte) ([]byte, error) {
	value, err := s.Store.Record(ctx, table, key)
	if err == nil {
		s.tape.readRecord(ctx, table, key, value)
	}
	return value, err
}

// Records implements state.Store.
func (s *store) Records(ctx context.Context, table state.Table, prefix, after []byte, limit int) ([]state.KeyValue,
	error) {
	page, err := s.Store.Records(ctx, table, prefix, after, limit)
	for _, r := range page {
		s.tape.readRecord(ctx, table, r.Key, r.Value)
	}
	return page, err
}

// Usage implements state.Store. A replay does not store the guest's state, so it uses the recorded size.
func (s *store) Usage(ctx context.Context, space state.Space) (int64, error) {
	n, err := s.Store.Usage(ctx, space)
	if err != nil || !inside(ctx) {
		return n, err
	}
	t := s.tape
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.current == nil:
	case t.record != nil:
		t.current.Usage = append(t.current.Usage, n)
	case t.current.usage < len(t.current.Usage):
		t.current.usage++
		n = t.current.Usage[t.current.usage-1]
	}
	return n, nil
}

// Commit implements state.Store.
func (s *store) Commit(ctx context.Context, b *state.Batch) (state.CommitResult, error) {
	if !inside(ctx) {
		return s.Store.Commit(ctx, b)
	}
	nth, failed := s.tape.nextCommit()
	if failed != nil {
		return state.CommitResult{}, failed
	}
	result, err := s.Store.Commit(ctx, b)
	if err != nil {
		s.tape.commitFailed(nth, err)
	}
	return result, err
}

// readRecord records a record that a replay would not have, because it existed before the recording.
func (t *Tape) readRecord(ctx context.Context, table state.Table, key, value []byte) {
	if t.record == nil || !inside(ctx) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	id := string(table) + "\x00" + string(key)
	if t.record.seen[id] || t.current == nil {
		return
	}
	t.record.seen[id] = true
	if value != nil {
		t.current.Records = append(t.current.Records,
			cassette.Record{Table: string(table), Key: t.text(key), Value: t.text(value)})
	}
}

// nextCommit counts the commits of the present operation, and returns the error with which this one failed in the
// recording.
func (t *Tape) nextCommit() (nth int64, failed error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		return 0, nil
	}
	t.current.commits++
	if t.play != nil {
		for _, f := range t.current.Failed {
			if f.Nth == t.current.commits {
				return f.Nth, recordedError(f.Error)
			}
		}
	}
	return t.current.commits, nil
}

func (t *Tape) commitFailed(nth int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.record != nil && t.current != nil {
		t.current.Failed = append(t.current.Failed, cassette.FailedCommit{Nth: nth, Error: t.encoded(abi.AsError(err))})
	}
}

// Restore copies records that existed before the recording into a store.
//
// Errors: those of the store.
func Restore(ctx context.Context, store state.Store, records []cassette.Record) error {
	if len(records) == 0 {
		return nil
	}
	var b state.Batch
	for _, r := range records {
		b.PutRecord(state.Table(r.Table), r.Key, r.Value)
	}
	_, err := store.Commit(ctx, &b)
	return err
}
