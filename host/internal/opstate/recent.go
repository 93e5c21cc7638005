package opstate

import (
	"bytes"
	"sync"

	"github.com/memhost/memhost/internal/state"
)

// Recent keeps what operations that only read have read of a store that hosts share, where each read is a round trip. A
// nil Recent keeps nothing.
//
// What it returns is never outdated, without a clock and without a message between hosts: an operation reads the
// space's record of TableCommits before it reads its state, every commit that changes the state changes the record in
// the same transaction, and a record never returns. So as long as the record is the one that an answer was read at, so
// is the state. An answer is kept only after a Moment has compared the record once more, after the read.
type Recent struct {
	mu     sync.Mutex
	spaces map[state.Space]*recentSpace
	bytes  int // of all spaces
}

// recentSpace is what was read of a space at a commit count. The queries are keys (string), state.ListQuery and
// state.LogQuery, the answers state.Value, state.Page and state.Entries, which callers must not change.
type recentSpace struct {
	count   []byte
	answers map[any]any
	bytes   int
}

// recentBytes bounds what a Recent keeps, about, in bytes. One operation may add as much.
const recentBytes = 16 << 20

// answer returns what a query was answered at a commit count.
func (r *Recent) answer(space state.Space, count []byte, query any) (answer any, known bool) {
	if r == nil {
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.spaces[space]
	if s == nil || !bytes.Equal(s.count, count) {
		return nil, false
	}
	answer, known = s.answers[query]
	return answer, known
}

// add keeps answers that were all read at a commit count. Those of an earlier count make room, and then those of
// arbitrary spaces.
func (r *Recent) add(space state.Space, count []byte, answers map[any]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.spaces[space]; s != nil && !bytes.Equal(s.count, count) {
		if bytes.Compare(s.count, count) > 0 {
			return
		}
		r.drop(space)
	}
	s := r.spaces[space]
	if s == nil {
		s = &recentSpace{count: count, answers: map[any]any{}}
		if r.spaces == nil {
			r.spaces = map[state.Space]*recentSpace{}
		}
		r.spaces[space] = s
	}
	for query, answer := range answers {
		if _, known := s.answers[query]; known {
			continue
		}
		s.answers[query] = answer
		size := sizeOf(query, answer)
		s.bytes += size
		r.bytes += size
	}
	for other := range r.spaces {
		if r.bytes <= recentBytes {
			return
		}
		r.drop(other)
	}
}

// drop forgets a space. The caller holds mu.
func (r *Recent) drop(space state.Space) {
	r.bytes -= r.spaces[space].bytes
	delete(r.spaces, space)
}

// sizeOf is about what an answer takes in memory, in bytes.
func sizeOf(query, answer any) int {
	const each = 200 // besides texts
	size := each
	switch q := query.(type) {
	case string:
		size += len(q)
	case state.ListQuery:
		size += len(q.Prefix) + len(q.After)
	case state.LogQuery:
		size += len(q.Log)
	}
	switch a := answer.(type) {
	case state.Value:
		size += len(a.Data)
	case state.Page:
		for _, i := range a.Items {
			size += each + len(i.Key) + len(i.Data)
		}
	case state.Entries:
		for _, e := range a.Items {
			size += each + len(e.Data)
		}
	}
	return size
}

// cachedRead answers a query of a reading operation: from what is known at the operation's commit count, or else by
// read, which asks the store. m is nil for an operation that has the lock, or writes.
func cachedRead[A any](m *Moment, query any, read func() (A, error)) (A, error) {
	if m == nil {
		return read()
	}
	if answer, known := m.answers[query]; known {
		return answer.(A), nil
	}
	if answer, known := m.recent.answer(m.state.space, m.first, query); known {
		m.recalls++
		return answer.(A), nil
	}
	m.reads++
	answer, err := read()
	if err == nil && m.recent != nil {
		if size := sizeOf(query, answer); m.answersBytes+size <= recentBytes {
			m.answersBytes += size
			m.answers[query] = answer
		}
	}
	return answer, err
}
