package nanobot

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/sdk"
)

// forgottenLine replaces a forgotten message, so that the others keep their numbers.
const forgottenLine = `{"role":"system","content":"","_hidden_history":true}`

// Forgetting is one request to forget, as the memory applies it to what it has derived from messages.
type Forgetting struct {
	*Base
	Receipt *abi.ForgetReceipt
	request *abi.ForgetRequest
	events  []string
	// Read: a model has read a forgotten message.
	Read bool
}

// Forget removes messages, and what the memory derived from these messages alone. What a model derived from them
// together with others stays, and the receipt names it. Forget reads all messages of the scope.
func (p *Plugin) Forget(c *sdk.Call, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	return serve(p, c, func(m Memory, b *Base) *abi.ForgetReceipt {
		f := &Forgetting{Base: b, request: r, events: slices.Clone(r.EventIDs),
			Receipt: &abi.ForgetReceipt{Status: abi.ForgetDone, Removed: map[string][]string{}, DerivedMayRemain: []string{},
				Trace: b.Trace("state_delete")}}
		for _, s := range Sessions(b.State) {
			f.forgetIn(s)
		}
		for _, id := range f.events {
			b.Remove(eventKey(id))
		}
		m.Forget(f)
		return f.Receipt
	})
}

// forgetIn forgets messages of a session. All messages of an event are forgotten together.
func (f *Forgetting) forgetIn(s *Session) {
	lines := f.lines(s.log())
	messages, _ := s.Read(f.State, 0, int64(len(lines)))
	gone, read := int64(0), false
	for _, last := range []bool{false, true} { // first find all events, because their messages are forgotten together
		for i := range messages {
			m, id := &messages[i], s.NativeID()+"#"+sdk.Itoa(int64(i))
			doomed := slices.Contains(f.events, m.EventID) || sdk.Forgets(f.request, s.ID, m.Timestamp) || f.Names(id)
			if !doomed || string(lines[i]) == forgottenLine {
				continue
			}
			if !last {
				if m.EventID != "" {
					f.events = append(f.events, m.EventID)
				}
				continue
			}
			lines[i] = []byte(forgottenLine)
			f.addRemoved("message", id)
			gone++
			tokens := int64(0)
			if f.Policy == model.PolicyTokens {
				tokens = m.tokens(f.Call) - 4 // events of the current line
			}
			s.Head.Tokens -= tokens
			if int64(i) < s.Pointer {
				read = true
				s.Mark.Tokens -= tokens
			}
		}
	}
	if gone == 0 {
		return
	}
	f.rewrite(s, lines)
	s.Forgotten += gone
	f.Store("head/"+s.key, sdk.AnyVersion, s.Head.members()...)
	if read {
		f.Read = true
		s.Summary, s.Summarised = "", ""
	}
	s.Failure = model.Failure{} // it may quote the model
	s.Save(f.State)
}

func (f *Forgetting) addRemoved(kind, id string) {
	f.Receipt.Removed[kind] = append(f.Receipt.Removed[kind], id)
}

// lines returns the entries of a log.
func (f *Forgetting) lines(log string) (lines [][]byte) {
	last, _ := f.Last(log)
	for entry := range f.Entries(log, 1, last) {
		lines = append(lines, append([]byte(nil), entry.Data...))
	}
	return lines
}

// rewrite rewrites the log of a session, and the logs whose names begin with its name, because deleting it deletes them
// too.
func (f *Forgetting) rewrite(s *Session, lines [][]byte) {
	logs, all := []string{s.log()}, [][][]byte{lines}
	for _, other := range Sessions(f.State) {
		if other.key != s.key && strings.HasPrefix(other.key, s.key) {
			logs, all = append(logs, other.log()), append(all, f.lines(other.log()))
		}
	}
	f.Delete(s.log())
	for i, log := range logs {
		f.write(log, all[i])
	}
}

func (f *Forgetting) write(log string, lines [][]byte) {
	for _, line := range lines {
		f.Append(log, line)
	}
}

// Names reports whether the request names an item of the memory by its native id.
func (f *Forgetting) Names(id string) bool { return slices.Contains(f.request.NativeIDs, id) }

// Of returns how many of the events behind an item are forgotten.
func (f *Forgetting) Of(events []string) (n int) {
	for _, id := range events {
		if slices.Contains(f.events, id) {
			n++
		}
	}
	return n
}

// RemoveWhole removes a file or an entry that the request names by its native id.
func (f *Forgetting) RemoveWhole(kind, id string) bool {
	if f.Names(id) {
		f.addRemoved(kind, id)
		return true
	}
	return false
}

// History rewrites a history log without the forgotten entries: those that the request names, and those made from
// forgotten events alone. blank replaces such an entry; if it is nil the entry is removed. of returns an entry's native
// id and the events that it was made from.
func (f *Forgetting) History(log string, blank []byte, of func(seq int64, entry []byte) (id string, events []string)) {
	lines := f.lines(log)
	var kept [][]byte
	mixed, before := false, len(f.Receipt.Removed["history"])
	for i, line := range lines {
		id, events := of(int64(i+1), line)
		switch n := f.Of(events); {
		case n > 0 && n == len(events):
			f.addRemoved("history", id)
			line = blank
		case f.RemoveWhole("history", id):
			line = blank
		case n > 0:
			mixed = true
		}
		if line != nil {
			kept = append(kept, line)
		}
	}
	if mixed {
		f.Remains("history: entries that a model wrote from these events and others")
	}
	if len(f.Receipt.Removed["history"]) > before {
		f.Delete(log)
		f.write(log, kept)
	}
}

// Remains adds to the receipt what remains, and why.
func (f *Forgetting) Remains(what string) {
	f.Receipt.DerivedMayRemain = append(f.Receipt.DerivedMayRemain, what)
}
