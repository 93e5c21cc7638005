package state

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// A group ends when its batches reach this many bytes, which limits the size of a transaction.
const groupBytes = 32 << 20

// request is a Commit that waits for its outcome.
type request struct {
	batch  *Batch
	phase  atomic.Int32
	done   chan struct{} // closed when result and err are final
	result CommitResult
	err    error
}

// The phases of a request. Only a waiting request can be withdrawn.
const (
	waiting int32 = iota
	taken
	withdrawn
)

// Commit applies a batch, together with others that arrived while the last transaction was being synced, so that one
// sync serves them all. A single caller only waits for its own transaction. Batches are applied one after another, each
// sees those before it, and one that fails leaves no trace and does not affect the others.
//
// If ctx ends while the batch is still queued, the batch is withdrawn: Commit returns the context's error and nothing
// is applied. Once the batch's transaction has started, Commit waits for the outcome whatever the context says, so that
// the result is always right.
//
// Errors: ErrInvalid, ErrConflict, ErrQuota, ErrDamaged: nothing was applied. ErrUnavailable (the disk is full,
// read-only or failing): no batch of the group was applied, and a later Commit may succeed. An error that is also
// ErrUncertain means that writing failed so late that reads see the batch, while a power loss may undo it.
func (s *Bolt) Commit(ctx context.Context, b *Batch) (CommitResult, error) {
	if err := b.Validate(); err != nil {
		return CommitResult{}, err
	}
	if err := ctx.Err(); err != nil {
		return CommitResult{}, fmt.Errorf("state: commit: %w", err)
	}
	r := &request{batch: b, done: make(chan struct{})}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return CommitResult{}, errClosed("commit")
	}
	s.queue = append(s.queue, r)
	s.mu.Unlock()
	s.wakeUp()

	select {
	case <-r.done:
	case <-ctx.Done():
		if r.phase.CompareAndSwap(waiting, withdrawn) {
			return CommitResult{}, fmt.Errorf("state: commit was withdrawn before its turn, nothing was applied: %w",
				ctx.Err())
		}
		<-r.done
	}
	if r.err != nil {
		return CommitResult{}, r.err
	}
	return r.result, nil
}

func (s *Bolt) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// committer is the state of the one goroutine that writes, run.
type committer struct {
	// unsynced means that DurabilityProcess has committed since the last sync; syncErr is why the last sync failed.
	unsynced bool
	syncErr  error
	// smallWasLast means that the last group was one of small batches.
	smallWasLast bool
}

// run commits groups until the store closes and its queue is empty.
func (s *Bolt) run() {
	defer close(s.ended)
	var tick <-chan time.Time
	for {
		// Let callers that the last group woke commit again before the next group starts.
		runtime.Gosched()
		group, closing := s.take()
		switch {
		case len(group) > 0:
			s.commitGroup(group)
			for _, r := range group {
				close(r.done)
			}
			if s.unsynced && tick == nil {
				tick = s.opts.After(s.opts.SyncEvery)
			}
			select {
			case <-tick:
				tick, _ = nil, s.sync()
			default:
			}
		case closing:
			return
		default:
			select {
			case <-s.wake:
			case <-tick:
				tick, _ = nil, s.sync()
			}
		}
	}
}

// largeBytes is the size from which a batch gets its own transaction.
const largeBytes = 1 << 20

// take returns the next group of queued batches: a single large batch, or small ones up to groupBytes. Small ones come
// first, unless they were the last group. So small batches wait for one large batch at most, and a large one for at
// most one group of small ones per large batch before it.
func (s *Bolt) take() (group []*request, closing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(group) == 0 && len(s.queue) > 0 {
		group = s.takeFrom()
	}
	return group, s.closing
}

// takeFrom takes a group off the queue. It is empty if all its batches were withdrawn.
func (s *Bolt) takeFrom() (group []*request) {
	isLarge := func(r *request) bool { return r.batch.Bytes() >= largeBytes }
	large := slices.ContainsFunc(s.queue, isLarge)
	if large && !s.smallWasLast {
		large = !slices.ContainsFunc(s.queue, func(r *request) bool { return !isLarge(r) })
	}
	size := 0
	s.queue = slices.DeleteFunc(s.queue, func(r *request) bool {
		full := large && len(group) > 0 || len(group) > 0 && size+r.batch.Bytes() > groupBytes
		if full || isLarge(r) != large {
			return false
		}
		if r.phase.CompareAndSwap(waiting, taken) {
			group = append(group, r)
			size += r.batch.Bytes()
		}
		return true
	})
	s.smallWasLast = !large
	return group
}

// commitGroup decides every request of a group in one transaction. A request that fails after it has changed something
// is removed, and the others start over in a new transaction.
func (s *Bolt) commitGroup(group []*request) {
	if s.opts.beforeWrite != nil {
		s.opts.beforeWrite(len(group))
	}
	if err := s.writable(); err != nil {
		failAll(group, err)
		return
	}
	for {
		tx, err := s.begin(true)
		if err != nil {
			failAll(group, s.fail("commit", err))
			return
		}
		wrote, again := s.applyGroup(tx, group)
		switch {
		case again:
			s.rollback(tx)
		case !wrote:
			s.rollback(tx)
			return
		default:
			if err := s.finish(tx); err != nil {
				failAll(group, err)
			}
			return
		}
	}
}

// applyGroup applies the requests that have not failed yet. again means that a request failed half-way, so that tx must
// not be committed.
func (s *Bolt) applyGroup(tx *bbolt.Tx, group []*request) (wrote, again bool) {
	var w *writer
	err := guard(func() (err error) {
		w, err = newWriter(tx)
		return err
	})
	if err != nil {
		failAll(group, s.fail("commit", err))
		return false, false
	}
	w.fillPages(group)
	for _, r := range group {
		if r.err != nil {
			continue
		}
		changed := false
		err := guard(func() (err error) {
			if err = w.check(r.batch); err != nil {
				return err
			}
			changed = r.batch.writes()
			r.result, err = w.apply(r.batch)
			return err
		})
		if err != nil {
			r.err = s.fail("commit", err)
			if changed || isFault(err) {
				return false, true
			}
		}
		wrote = wrote || changed
	}
	if err := guard(w.flush); err != nil {
		failAll(group, s.fail("commit", err))
		return false, false
	}
	return wrote, false
}

// finish commits the transaction.
func (s *Bolt) finish(tx *bbolt.Tx) error {
	id := tx.ID()
	err := guard(tx.Commit)
	switch {
	case err == nil:
		s.unsynced = s.opts.Durability == DurabilityProcess
		return nil
	case isFault(err):
		s.rollback(tx)
		var f fault
		errors.As(err, &f)
		broken := &Error{Kind: ErrDamaged, Message: fmt.Sprintf("commit: data file %s is damaged and takes no more "+
			"writes: %v", s.path, f.value), Hint: damageHint, Cause: f}
		s.broken.Store(broken)
		return broken
	}
	return s.commitError(id, err)
}

// commitError explains a failed commit of transaction id. bbolt first writes and syncs the pages, and then the page
// that points to them. If that page reached the file, readers see the transaction although its sync failed.
func (s *Bolt) commitError(id int, err error) error {
	e := &Error{Kind: ErrUnavailable, Message: fmt.Sprintf("commit: data file %s could not be written: %s", s.path,
		err), Hint: hintFor(err), Cause: err}
	if tx, beginErr := s.begin(false); beginErr == nil {
		if tx.ID() >= id {
			e.Kind = ErrUncertain
			e.Message += "; it was written all the same, but a loss of power may undo it"
		}
		_ = tx.Rollback()
	}
	return e
}

// rollback abandons a write transaction. Its lock must be released, or bbolt is blocked permanently.
func (s *Bolt) rollback(tx *bbolt.Tx) {
	err := guard(tx.Rollback)
	if err != nil && !errors.Is(err, berrors.ErrTxClosed) {
		s.stuck.Store(true)
	}
}

// writable returns why nothing can be written, if so. It first retries a failed sync.
func (s *Bolt) writable() error {
	if e := s.broken.Load(); e != nil {
		return e
	}
	if s.syncErr != nil {
		return s.sync()
	}
	return nil
}

// sync writes what DurabilityProcess has committed to the disk.
func (s *Bolt) sync() error {
	if !s.unsynced && s.syncErr == nil {
		return nil
	}
	if s.stuck.Load() {
		return s.syncErr
	}
	s.unsynced, s.syncErr = false, nil
	if err := guard(s.db.Sync); err != nil {
		s.syncErr = &Error{Kind: ErrUnavailable, Message: fmt.Sprintf("data file %s could not be synced: %s", s.path,
			err), Hint: hintFor(err), Cause: err}
	}
	return s.syncErr
}

func failAll(group []*request, err error) {
	for _, r := range group {
		r.result, r.err = CommitResult{}, err
	}
}
