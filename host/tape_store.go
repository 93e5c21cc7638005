package host

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/internal/state"
)

// tapedStore is the store under a tape. A recording notes what the host reads of an earlier time, which a replay puts into its own store first, and the
// commits that fail, which a replay fails too. The guest's state is not played here, but where the guest asks for it.
type tapedStore struct {
	state.Store
	tape *tape
}

var _ state.Store = (*tapedStore)(nil)

// Record implements state.Store.
func (s *tapedStore) Record(ctx context.Context, table state.Table, key []byte) ([]byte, error) {
	value, err := s.Store.Record(ctx, table, key)
	if err == nil {
		s.tape.readRecord(ctx, table, key, value)
	}
	return value, err
}

// Records implements state.Store.
func (s *tapedStore) Records(ctx context.Context, table state.Table, prefix, after []byte, limit int) ([]state.KeyValue, error) {
	page, err := s.Store.Records(ctx, table, prefix, after, limit)
	for _, r := range page {
		s.tape.readRecord(ctx, table, r.Key, r.Value)
	}
	return page, err
}

// Usage implements state.Store. A replay keeps no state of the guest, so it is told.
func (s *tapedStore) Usage(ctx context.Context, space state.Space) (int64, error) {
	n, err := s.Store.Usage(ctx, space)
	if err != nil || ctx.Value(takeKey{}) == nil {
		return n, err
	}
	t := s.tape
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.take == nil:
	case t.record != nil:
		t.take.Usage = append(t.take.Usage, n)
	case t.take.usage < len(t.take.Usage):
		t.take.usage++
		n = t.take.Usage[t.take.usage-1]
	}
	return n, nil
}

// Commit implements state.Store.
func (s *tapedStore) Commit(ctx context.Context, b *state.Batch) (state.CommitResult, error) {
	if ctx.Value(takeKey{}) == nil {
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

// readRecord notes a record that a replay would not have: one that was there before the recording.
func (t *tape) readRecord(ctx context.Context, table state.Table, key, value []byte) {
	if t.record == nil || ctx.Value(takeKey{}) == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	id := string(table) + "\x00" + string(key)
	if t.record.seen[id] || t.take == nil {
		return
	}
	t.record.seen[id] = true
	if value != nil {
		t.take.Records = append(t.take.Records, cassette.Record{Table: string(table), Key: t.text(key), Value: t.text(value)})
	}
}

// nextCommit counts a commit of the operation under way, and tells the error with which it failed when it was recorded.
func (t *tape) nextCommit() (nth int64, failed error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.take == nil {
		return 0, nil
	}
	t.take.commits++
	if t.play != nil {
		for _, f := range t.take.Failed {
			if f.Nth == t.take.commits {
				return f.Nth, recordedError(f.Error)
			}
		}
	}
	return t.take.commits, nil
}

func (t *tape) commitFailed(nth int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.record != nil && t.take != nil {
		t.take.Failed = append(t.take.Failed, cassette.FailedCommit{Nth: nth, Error: t.encoded(stateError(err))})
	}
}

// restore puts what the recording found into the store.
func (t *tape) restore(ctx context.Context, store state.Store, records []cassette.Record) error {
	if len(records) == 0 {
		return nil
	}
	var b state.Batch
	for _, r := range records {
		b.PutRecord(state.Table(r.Table), r.Key, r.Value)
	}
	if _, err := store.Commit(ctx, &b); err != nil {
		return abi.AsError(stateError(err))
	}
	return nil
}
