package nanobot

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/sdk"
)

// forgottenLine takes the place of a forgotten message, so that the others keep their numbers.
const forgottenLine = `{"role":"system","content":"","_hidden_history":true}`

// Forgetting is one request to forget, for what a memory has made of messages.
type Forgetting struct {
	*Base
	Receipt *abi.ForgetReceipt
	request *abi.ForgetRequest
	events  map[string]bool
	// Read: a model has read a message that was forgotten.
	Read bool
}

// Forget removes messages, and what the memory made of nothing else. What a model wrote from them and from others stays,
// and the receipt names it.
func (p *Plugin) Forget(c *sdk.Call, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	return serve(p, c, func(m Memory, b *Base) *abi.ForgetReceipt {
		f := &Forgetting{Base: b, request: r, events: map[string]bool{},
			Receipt: &abi.ForgetReceipt{Status: abi.ForgetDone, Removed: map[string][]string{"message": {}},
				DerivedMayRemain: []string{}, Trace: b.Trace("state_delete")}}
		for _, s := range f.sessions() {
			f.forgetIn(s)
		}
		for _, id := range abi.SortedKeys(f.events) {
			b.Remove(eventKey(id))
		}
		m.Forget(f)
		return f.Receipt
	})
}

// sessions are those that a request may be about. Events that it names are noted.
func (f *Forgetting) sessions() (list []*Session) {
	r := f.request
	add := func(key string) {
		if !slices.ContainsFunc(list, func(s *Session) bool { return s.key == key }) {
			list = append(list, sessionAt(f.State, key))
		}
	}
	for _, id := range r.EventIDs {
		f.events[id] = true
		var at index
		if f.Load(eventKey(id), at.members()...) != 0 {
			add(at.session)
		}
	}
	for _, id := range r.NativeIDs {
		if at := strings.LastIndexByte(id, '#'); at > 0 {
			add("s/" + id[:at])
			add("h/" + id[:at])
		}
	}
	if r.SessionID != "" {
		add(keyOf(r.SessionID))
	}
	if r.From != "" {
		list = Sessions(f.State)
	}
	return list
}

// forgetIn forgets messages of a session. All messages of an event go together.
func (f *Forgetting) forgetIn(s *Session) {
	messages, _ := s.Read(f.State, 0, s.Messages)
	doomed := func(i int) bool {
		return sdk.Forgets(f.request, s.ID, messages[i].Timestamp) ||
			slices.Contains(f.request.NativeIDs, s.NativeID()+"#"+sdk.Itoa(int64(i)))
	}
	for i := range messages {
		if id := messages[i].EventID; id != "" && doomed(i) {
			f.events[id] = true
		}
	}
	lines := f.lines(s.log())
	var gone, read []Message
	for i := range lines {
		if !doomed(i) && !f.events[messages[i].EventID] || string(lines[i]) == forgottenLine {
			continue
		}
		lines[i] = []byte(forgottenLine)
		f.Receipt.Removed["message"] = append(f.Receipt.Removed["message"], s.NativeID()+"#"+sdk.Itoa(int64(i)))
		gone = append(gone, messages[i])
		if int64(i) < s.Pointer {
			read = append(read, messages[i])
		}
	}
	if len(gone) == 0 {
		return
	}
	f.rewrite(s, lines)
	s.Forgotten += int64(len(gone))
	s.Head.Tokens -= f.TokensOf(gone) - f.TokensOf(make([]Message, len(gone)))
	s.Mark.Tokens -= f.TokensOf(read) - f.TokensOf(make([]Message, len(read)))
	f.Store("head/"+s.key, sdk.AnyVersion, s.Head.members()...)
	if len(read) > 0 {
		f.Read = true
		s.Summary, s.Summarised = "", ""
	}
	s.Failure = model.Failure{} // it may quote what the model said
	s.Save(f.State)
}

// lines are the entries of a log.
func (f *Forgetting) lines(log string) (lines [][]byte) {
	last, _ := f.Last(log)
	for entry := range f.Entries(log, 1, last) {
		lines = append(lines, append([]byte(nil), entry.Data...))
	}
	return lines
}

// rewrite writes the log of a session anew, and the logs whose names begin with its name: they are deleted with it.
func (f *Forgetting) rewrite(s *Session, lines [][]byte) {
	logs := map[string][][]byte{}
	for item := range f.Items(abi.StateListRequest{Prefix: "head/" + s.key}) {
		log := "messages/" + strings.TrimPrefix(item.Key, "head/")
		logs[log] = f.lines(log)
	}
	logs[s.log()] = lines
	f.Delete(s.log())
	for _, log := range abi.SortedKeys(logs) {
		for _, line := range logs[log] {
			f.Append(log, line)
		}
	}
}

// Names tells whether the request names an item of the memory by its native id.
func (f *Forgetting) Names(id string) bool { return slices.Contains(f.request.NativeIDs, id) }

// Of tells how many of the events that something was made from are forgotten.
func (f *Forgetting) Of(events []string) (n int) {
	for _, id := range events {
		if f.events[id] {
			n++
		}
	}
	return n
}

// Forgotten tells whether something is to go: it is named, or was made from forgotten events alone. What was made from
// others too is counted in mixed.
func (f *Forgetting) Forgotten(id string, events []string, mixed *int) bool {
	n := f.Of(events)
	if f.Names(id) || n > 0 && n == len(events) {
		return true
	}
	if n > 0 {
		*mixed++
	}
	return false
}

// History writes a log of a history anew. of is an entry's native id and the events that it was made from. A forgotten
// one becomes blank, or goes where blank is nil. The others of the log stay as they are.
func (f *Forgetting) History(log string, blank []byte, of func(seq int64, entry []byte) (id string, events []string)) {
	var kept [][]byte
	removed, mixed := []string{}, 0
	for i, line := range f.lines(log) {
		id, events := of(int64(i+1), line)
		if f.Forgotten(id, events, &mixed) {
			removed = append(removed, id)
			line = blank
		}
		if line != nil {
			kept = append(kept, line)
		}
	}
	if mixed > 0 {
		f.Remains("history: a model wrote entries from these events and others: " + sdk.Itoa(mixed))
	}
	if len(removed) == 0 {
		return
	}
	f.Receipt.Removed["history"] = removed
	f.Delete(log)
	for _, line := range kept {
		f.Append(log, line)
	}
}

// Remains adds to the receipt what stays, and why.
func (f *Forgetting) Remains(what string) {
	f.Receipt.DerivedMayRemain = append(f.Receipt.DerivedMayRemain, what)
}
