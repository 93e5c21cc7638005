package nanobot

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// Recorder stores the messages of events. What it costs does not depend on how much there is.
type Recorder struct {
	call     *sdk.Call
	provider string
	policy   string
	// due asks for work, by setting Want, where the policy says that it is time.
	due      func(*Session) error
	scope    scopeState
	sessions []*Session
}

// scopeState is the key scope.
type scopeState struct {
	last     string
	arrivals int64
	version  int64
}

func (s *scopeState) fields() []field {
	return []field{word("last_session_id", &s.last), number("arrivals", &s.arrivals)}
}

// LastSession is the session of the latest event, "" before the first.
func LastSession(c *sdk.Call) (string, error) {
	var s scopeState
	_, err := load(c, "scope", s.fields())
	return s.last, err
}

// NewRecorder opens a recording. due may be nil.
func NewRecorder(c *sdk.Call, provider, policy string, due func(*Session) error) (*Recorder, error) {
	r := &Recorder{call: c, provider: provider, policy: policy, due: due}
	var err error
	r.scope.version, err = load(c, "scope", r.scope.fields())
	return r, err
}

// index is the key event/<id>.
type index struct {
	session, digest string
	first, last     int64
}

func (x *index) fields() []field {
	return []field{word("session", &x.session), word("digest", &x.digest), number("first", &x.first), number("last", &x.last)}
}

func eventKey(id string) string {
	if len(id) > 400 {
		return "event#" + sdk.Digest256(id)
	}
	return "event/" + id
}

func (r *Recorder) session(id string) (*Session, error) {
	for _, s := range r.sessions {
		if s.ID == id {
			return s, nil
		}
	}
	s, err := FindSession(r.call, id)
	if err != nil {
		return nil, err
	}
	s.ID = id
	r.sessions = append(r.sessions, s)
	return s, nil
}

// Add stores the event's messages behind those of its session. The receipt has no status yet, unless the scope holds the event already.
//
// Errors: conflict when it holds the event with other content.
func (r *Recorder) Add(e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	receipt := &abi.WriteReceipt{EventID: e.EventID, NativeIDsKind: abi.NativeIDsFinal,
		Trace: &abi.Trace{BackendName: r.provider, NativeOperation: "state_append"}}
	digest := sdk.Digest256(string(abi.Marshal(e)))
	var known index
	version, err := load(r.call, eventKey(e.EventID), known.fields())
	if err != nil {
		return nil, err
	}
	if version != 0 {
		if known.digest != digest && known.digest != "" { // an event that was imported has none
			return nil, abi.NewError(abi.CodeConflict, "event_id: the scope holds this id with other content")
		}
		receipt.Status, receipt.Duplicate, receipt.StoredCount = abi.StatusCommitted, true, sdk.Ptr(int64(0))
		receipt.NativeIDs = nativeIDs(known)
		receipt.Warnings = []string{"duplicate_event: the scope holds this turn already; nothing was stored"}
		return receipt, nil
	}
	if r.policy == PolicySession && r.scope.last != "" && r.scope.last != e.SessionID {
		ended, err := r.session(r.scope.last)
		if err != nil {
			return nil, err
		}
		ended.Archive = ended.Messages
	}
	s, err := r.session(e.SessionID)
	if err != nil {
		return nil, err
	}
	at := index{session: s.key, digest: digest, first: s.Messages + 1}
	for i := range e.Messages {
		m := messageOf(e, &e.Messages[i])
		if _, err := r.call.Append("messages/"+s.key, m.Encode()); err != nil {
			return nil, err
		}
		s.Messages++
		if r.policy == PolicyTokens {
			s.Head.Tokens += m.Tokens(r.call)
		}
	}
	at.last = s.Messages
	if err := r.call.Put(eventKey(e.EventID), encodeFields(at.fields()), 0); err != nil {
		return nil, err
	}
	r.scope.arrivals++
	r.scope.last, s.Order, s.Updated, s.Arrived = e.SessionID, r.scope.arrivals, e.Timestamp, NowMS(r.call)
	if s.Created == "" {
		s.Created = e.Timestamp
	}
	receipt.StoredCount, receipt.NativeIDs = sdk.Ptr(int64(len(e.Messages))), nativeIDs(at)
	receipt.Trace.NativeIDs = receipt.NativeIDs
	return receipt, nil
}

// nativeIDs name the messages of an event: the session, and the first of them.
func nativeIDs(x index) []string {
	return []string{x.session[2:] + "#" + sdk.Itoa(x.first-1)}
}

// messageOf is one message of an event as it is stored. The time is the event's, in UTC where it can be said.
func messageOf(e *abi.MemoryEvent, m *abi.Message) *Message {
	stored := &Message{Role: string(m.Role), Timestamp: e.Timestamp, Name: m.Name, ToolCallID: m.ToolCallID, ToolCalls: m.ToolCalls, EventID: e.EventID, TurnID: e.TurnID}
	if m.Content != nil {
		stored.Content = *m.Content
	}
	return stored
}

// Tokens of a message: its content, calls and names by the host's tokenizer, and 4 for its frame.
func (m *Message) Tokens(c *sdk.Call) int64 {
	text := m.Content + m.Name + m.ToolCallID
	for _, call := range m.ToolCalls {
		text += call.ID + call.Name + call.Arguments
	}
	return c.CountTokens(text) + 4
}

// Close asks for work where it is due and writes what was recorded. receipts get their status: pending where work waits that their messages are a
// part of, committed otherwise.
func (r *Recorder) Close(receipts ...*abi.WriteReceipt) error {
	if len(r.sessions) == 0 {
		return nil
	}
	for _, s := range r.sessions {
		if r.due != nil {
			if err := r.due(s); err != nil {
				return err
			}
		}
		if err := r.call.Put("head/"+s.key, encodeFields(s.Head.fields()), sdk.AnyVersion); err != nil {
			return err
		}
	}
	if err := r.call.Put("scope", encodeFields(r.scope.fields()), r.scope.version); err != nil {
		return err
	}
	for _, receipt := range receipts {
		if receipt == nil || receipt.Duplicate {
			continue
		}
		receipt.Status, receipt.Trace.Consistency = abi.StatusCommitted, "committed"
		if r.waits(receipt) {
			receipt.Status, receipt.Trace.Consistency = abi.StatusPending, "pending"
			receipt.Markers = []string{receipt.EventID}
		}
	}
	return nil
}

func (r *Recorder) waits(receipt *abi.WriteReceipt) bool {
	id := receipt.NativeIDs[0]
	for _, s := range r.sessions {
		if s.key[2:] == id[:strings.LastIndexByte(id, '#')] {
			return s.Outstanding(r.policy == PolicySession)
		}
	}
	return false
}

// FindEvent looks an event up by its id: exact, since messages and receipt are committed together.
func FindEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	var at index
	version, err := load(c, eventKey(r.EventID), at.fields())
	if err != nil {
		return nil, err
	}
	if version == 0 {
		return &abi.FindEventAnswer{Found: "absent"}, nil
	}
	return &abi.FindEventAnswer{Found: "present", NativeIDs: nativeIDs(at), Markers: []string{r.EventID}}, nil
}

// Readiness judges markers, which are event ids, by how far the work on their sessions has come: ready when no work waits, failed while the last try
// failed and the next is not due yet, otherwise pending. all counts what the end of a session would bring.
func Readiness(c *sdk.Call, markers []string, all bool) (*abi.BackendReadiness, error) {
	sessions, err := Sessions(c)
	if err != nil {
		return nil, err
	}
	answer := &abi.BackendReadiness{Status: abi.ReadinessReady, Method: "work on sessions"}
	now, byKey, waiting := NowMS(c), map[string]*Session{}, int64(0)
	for _, s := range sessions {
		byKey[s.key] = s
		if !s.Outstanding(all) {
			continue
		}
		waiting += s.Open()
		if answer.OldestPendingAt == "" || s.Created < answer.OldestPendingAt {
			answer.OldestPendingAt = s.Created
		}
		if answer.Status == abi.ReadinessReady {
			answer.Status = abi.ReadinessPending
		}
		if s.RetryAt > now {
			answer.Status = abi.ReadinessFailed
			answer.Warnings = append(answer.Warnings, or(s.Reason, "llm_failed")+": session "+sdk.OneLine(s.ID)+", "+sdk.Itoa(s.Failures)+
				" failures, nothing is lost: "+s.Said)
		}
	}
	if waiting > 0 {
		answer.Warnings = append(answer.Warnings, "llm_work_waits: "+sdk.Itoa(waiting)+" messages wait for the model")
	}
	for _, id := range markers {
		var at index
		version, err := load(c, eventKey(id), at.fields())
		if err != nil {
			return nil, err
		}
		if s := byKey[at.session]; version != 0 && s != nil && s.Outstanding(all) && at.last > s.Pointer {
			answer.EventIDs.Pending = append(answer.EventIDs.Pending, id)
		}
	}
	return answer, nil
}

// Work lets run do the work of each session that waits and is due, the one whose last event came first in front, until one fails or the time is half
// over. run changes the session and returns the error of a failed try, which is noted; what a state or the host answers ends all.
func Work(c *sdk.Call, r *abi.WaitRequest, all bool, l LLM, run func(*Session, *Usage) error) (*abi.BackendReadiness, error) {
	sessions, err := Sessions(c)
	if err != nil {
		return nil, err
	}
	var u Usage
	began, now := c.Remaining(), NowMS(c)
	for _, s := range sessions {
		if !s.Outstanding(all && !r.Background) {
			continue
		}
		if s.RetryAt > now || c.Remaining() < began/2 {
			break
		}
		failed := run(s, &u)
		if failed != nil {
			if !OfModel(failed) {
				return nil, failed
			}
			if OutOfTime(c, failed) {
				break
			}
			s.Fail(c, failed, l.Retries)
		}
		if err := s.Save(c); err != nil {
			return nil, err
		}
		if failed != nil {
			break
		}
	}
	if err := u.Add(c); err != nil {
		return nil, err
	}
	return Readiness(c, nil, all)
}

// OutOfTime tells whether an error says that the caller's time is over, and not the model's: then nothing is known of the model, and nothing has failed.
func OutOfTime(c *sdk.Call, err error) bool {
	return abi.CodeOf(err) == abi.CodeTimeout && c.Remaining() < 1000
}

// OfModel tells whether an error is of the endpoint or of what the model said, and not of the state or the host.
func OfModel(err error) bool { return abi.AsError(err).Route == Route }

// AddAll is Add for each event, in order, and Close. An event that is wrong gets its error and stops no other.
func (r *Recorder) AddAll(batch *abi.EventBatch) (*abi.BatchReceipts, error) {
	answer := &abi.BatchReceipts{Receipts: make([]abi.ReceiptOrError, len(batch.Events))}
	receipts := make([]*abi.WriteReceipt, len(batch.Events))
	for i := range batch.Events {
		receipt, err := r.Add(&batch.Events[i])
		if abi.CodeOf(err) == abi.CodeConflict {
			answer.Receipts[i] = abi.ReceiptOrError{EventID: batch.Events[i].EventID, Error: abi.AsError(err)}
			continue
		}
		if err != nil {
			return nil, err
		}
		answer.Receipts[i].Receipt, receipts[i] = receipt, receipt
	}
	return answer, r.Close(receipts...)
}
