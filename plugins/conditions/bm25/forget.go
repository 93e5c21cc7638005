package main

import (
	"encoding/binary"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// forget removes messages, their words in the index, and the keys of their events. It rewrites the whole log, so its
// cost grows with the log. Other messages keep their numbers.
func forget(c *sdk.Call, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	w, err := newWriter(c)
	if err != nil {
		return nil, err
	}
	removed := []string{}
	if doomed := w.selectMessages(r); len(doomed) > 0 {
		removed = w.rewrite(doomed, len(r.NativeIDs) > 0)
		w.close()
	}
	return &abi.ForgetReceipt{Status: abi.ForgetDone, Removed: map[string][]string{"message": removed},
		DerivedMayRemain: []string{}, Trace: &abi.Trace{BackendName: w.settings.config.Provider,
			NativeOperation: "state_delete"}}, w.Err()
}

// selectMessages returns the messages that a request selects. Events selected by id lose their keys.
func (w *writer) selectMessages(r *abi.ForgetRequest) map[int64]bool {
	doomed := map[int64]bool{}
	for _, id := range r.EventIDs {
		x := eventEntry{last: -1}
		if w.Load(eventKey(id), x.members()...) == 0 {
			continue
		}
		w.Remove(eventKey(id))
		for n := x.first; n <= x.last; n++ {
			doomed[n] = true
		}
	}
	if len(r.EventIDs) > 0 {
		return doomed
	}
	for entry := range w.Entries(messageLog, 1, w.stored.messages) {
		if m, held := w.decode(entry); held && (sdk.Forgets(r, m.sessionID, m.timestamp) ||
			slices.Contains(r.NativeIDs, nativeID(entry.Seq))) {
			doomed[entry.Seq] = true
		}
	}
	return doomed
}

// decode reads a message; false for a forgotten one.
func (w *writer) decode(entry sdk.Entry) (m message, held bool) {
	if object.Decode(entry.Data, m.members()...) != nil {
		w.Fail(state.Unreadable(nativeID(entry.Seq)))
	}
	return m, m.eventID != ""
}

// rewrite writes the log without the text of some messages and returns the native ids of those that existed. single:
// the messages were selected one by one, so their events stay, without the digest of their content.
func (w *writer) rewrite(doomed map[int64]bool, single bool) (removed []string) {
	var kept [][]byte
	for entry := range w.Entries(messageLog, 1, w.stored.messages) {
		data := append([]byte(nil), entry.Data...)
		if doomed[entry.Seq] {
			if m, held := w.decode(entry); held {
				w.unindex(entry.Seq, &m, single)
				removed = append(removed, nativeID(entry.Seq))
			}
			data = []byte("{}")
		}
		kept = append(kept, data)
	}
	w.Delete(messageLog)
	for _, data := range kept {
		w.Append(messageLog, data)
	}
	if w.settings.config.Provider != "bm25" {
		w.forgetVectors(doomed)
	}
	return removed
}

// unindex removes a message from the index and the counts.
func (w *writer) unindex(n int64, m *message, single bool) {
	w.changed = true
	w.stored.forgotten++
	if w.settings.recall {
		w.Remove(whenKey(m, n))
	}
	list := terms(m.document())
	w.stored.words -= int64(len(list))
	for _, term := range abi.SortedKeys(count(list)) {
		w.of(term).remove(w.State, term, n)
	}
	x, key := eventEntry{}, eventKey(m.eventID)
	switch version := w.Load(key, x.members()...); {
	case version == 0: // already removed with another message of the event, or by the event's id
	case single:
		x.digest = ""
		w.Store(key, version, x.members()...)
	default:
		w.Remove(key)
	}
}

// remove removes a message from a term's postings and writes the block that contained it.
func (p *postings) remove(s *state.State, term string, message int64) {
	p.with--
	if block, last, had := removeMessage(p.open, message); had {
		p.open, p.last = block, last
		return
	}
	for item := range s.Values(blockPrefix + term + "/") {
		if block, _, had := removeMessage(item.Value, message); had {
			s.Put(item.Key, block, sdk.AnyVersion)
			return
		}
	}
}

// removeMessage returns a block without one message, and the block's last message, 0 if it is empty.
func removeMessage(block []byte, message int64) (left []byte, last int64, had bool) {
	walk(block, func(n, times, words int64) {
		if n == message {
			had = true
			return
		}
		for _, number := range []int64{n - last, times, words} {
			left = binary.AppendUvarint(left, uint64(number))
		}
		last = n
	})
	return left, last, had
}
