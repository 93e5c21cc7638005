package opstate

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"

	"github.com/memhost/memhost/internal/state"
)

// TableCommits names the last commit that changed the state of a space: space -> count, 8 bytes, big-endian, and 8
// random bytes. These differ also if a database loses commits and counts up to the same number again. A space whose
// state was never written has no record.
const TableCommits state.Table = "commits"

// KnowCommits gives the operation the space's record of TableCommits, if it was read before; nil for an absent one.
func (t *State) KnowCommits(record []byte) { t.commits, t.knowsCommits = record, true }

// takeCommits returns the space's record of TableCommits: the known one, once, or what the store has.
func (t *State) takeCommits(ctx context.Context) (record []byte, err error) {
	if t.knowsCommits {
		t.knowsCommits = false
		return t.commits, nil
	}
	return t.store.Record(ctx, TableCommits, t.space[:])
}

// CountCommit adds the increment of the space's commit count to the operation's batch. The caller holds the scope's
// write lock, so that no other commit of the space is counted in between; the same holds since KnowCommits.
//
// Errors: those of the store.
func (t *State) CountCommit(ctx context.Context) error {
	before, err := t.takeCommits(ctx)
	if err != nil {
		return err
	}
	count := uint64(0)
	if len(before) >= 8 {
		count = binary.BigEndian.Uint64(before)
	}
	record := binary.BigEndian.AppendUint64(make([]byte, 0, 16), count+1)
	record = record[:16]
	_, _ = rand.Read(record[8:]) // never fails
	t.Batch.PutRecord(TableCommits, t.space[:], record)
	return nil
}

// Changed reports whether the operation has changed the state of its space.
func (t *State) Changed() bool { return !t.clean() }

// Moment detects whether the reads of an operation without the scope's write lock saw a single commit of the space. A
// store answers each read separately, without a transaction over several reads. So the commit count is compared before
// the first read and after the last: with count 7 before the first read and 7 after the third, all three saw commit 7;
// with 8 after the third, they may have seen two commits.
//
// The zero value has no state: Begin sets it.
type Moment struct {
	state  *State
	recent *Recent
	// first is the record of TableCommits before the first read, if begun.
	first []byte
	begun bool
	// reads counts the reads of the store, recalls the answers of recent; checked is the value of reads when the counts
	// were last compared. answers are those of the reads.
	reads, recalls, checked int
	answers                 map[any]any
	answersBytes            int
	moved                   bool
}

// Begin starts over, for reads of state t. It may answer them with what recent has.
func (m *Moment) Begin(t *State, recent *Recent) {
	*m = Moment{state: t, recent: recent, answers: map[any]any{}}
	t.moment = m
}

// WillRead must be called before each read.
//
// Errors: those of the store.
func (m *Moment) WillRead(ctx context.Context) (err error) {
	if !m.begun {
		m.first, err = m.state.takeCommits(ctx)
		m.begun = err == nil
	}
	return err
}

// Moved reports whether a commit may have happened between two of the reads so far. Once true it stays true. It does
// not compare again for a single read, or for reads that were already compared. Before the first read it makes what
// KnowCommits gave count no more: a commit may happen during the call that the caller is about to send.
//
// Errors: those of the store.
func (m *Moment) Moved(ctx context.Context) (bool, error) {
	if !m.begun && m.state != nil {
		m.state.knowsCommits = false
	}
	if m.moved || m.checked == m.reads || m.reads+min(m.recalls, 1) < 2 {
		return m.moved, nil
	}
	now, err := m.state.store.Record(ctx, TableCommits, m.state.space[:])
	if err != nil {
		return false, err
	}
	m.checked, m.moved = m.reads, !bytes.Equal(now, m.first)
	if m.recent != nil && !m.moved {
		m.recent.add(m.state.space, m.first, m.answers)
	}
	return m.moved, nil
}
