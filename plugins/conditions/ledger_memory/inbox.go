package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// With a model, a recorded event is stored first and extracted later, in wait_until_ready:
//
//	inbox/<number>   {"attempts", "problem", "event"}, in the order of arrival
//	dead/<number>    one that extraction has given up; nothing is ever dropped
//	arrivals         the number of the latest, and its session
//	extraction       how extraction failed last, and when it is due again
const (
	inboxPrefix   = "inbox/"
	deadPrefix    = "dead/"
	arrivalsKey   = "arrivals"
	extractionKey = "extraction"
	// inInbox and isDead take the place of the commit in a source's key; isDead is followed by the letter's number.
	inInbox = "inbox"
	isDead  = "dead/"
	// maxAttempts is how often extraction of an event may be rejected or give an unusable answer. An unreachable
	// endpoint does not count: the event waits.
	maxAttempts = 5
	// maxWaiting is the maximum number of events that one run of the work looks at.
	maxWaiting = 200
)

// letter is a recorded event that waits for extraction.
type letter struct {
	number   string
	attempts int64
	problem  string
	event    abi.MemoryEvent
}

func (m *letter) members(event *abi.Raw) []object.Member {
	return []object.Member{object.Always("attempts", &m.attempts), object.OrNull("problem", &m.problem),
		object.Always("event", event)}
}

func (m *letter) encode() []byte {
	event := abi.Raw(abi.Marshal(&m.event))
	return object.Encode(m.members(&event)...)
}

func decodeLetter(number string, data []byte) (*letter, error) {
	m, event := &letter{number: number}, abi.Raw{}
	err := object.DecodeStrictly(data, m.members(&event)...)
	if err == nil {
		err = abi.Unmarshal(event, &m.event)
	}
	return m, err
}

// arrivals is the value of the key of the same name.
type arrivals struct {
	count, version int64
	session        string
}

func (a *arrivals) members() []object.Member {
	return []object.Member{object.Optional("count", &a.count), object.Optional("session", &a.session)}
}

func (l *ledger) arrivals() (a arrivals) {
	a.version = l.Load(arrivalsKey, a.members()...)
	return a
}

// queue stores an event for extraction. It does not call the model.
func (l *ledger) queue(e *abi.MemoryEvent, key, digest string, expected int64) *abi.WriteReceipt {
	a := l.arrivals()
	a.count++
	a.session = e.SessionID
	l.Store(arrivalsKey, a.version, a.members()...)
	m := &letter{event: *e}
	l.Put(inboxPrefix+hex12(a.count), m.encode(), 0)
	l.Put(key, []byte(digest+" "+inInbox), expected)
	return l.pending(e)
}

func (l *ledger) pending(e *abi.MemoryEvent) *abi.WriteReceipt {
	r := l.receipt(e, abi.StatusPending, nil)
	r.Trace.Consistency, r.StoredCount = "pending", sdk.Ptr(int64(len(e.Messages)))
	r.Markers = []string{e.EventID}
	return r
}

// letters returns the oldest letters of the inbox, in order.
func (l *ledger) letters(most int64) []*letter {
	items, _ := l.List(abi.StateListRequest{Prefix: inboxPrefix, Limit: most, Values: true})
	list := make([]*letter, len(items))
	for n, i := range items {
		m, err := decodeLetter(strings.TrimPrefix(i.Key, inboxPrefix), i.Value)
		if err != nil {
			l.Fail(damagedError(i.Key))
		}
		list[n] = m
	}
	return list
}

// work extracts what is due, in order, until one fails or half of the time is used. ended leaves out the session in
// progress. It reports whether it called the model.
func (l *ledger) work(ended bool) (asked bool) {
	progress := model.ReadProgress(l.State, extractionKey)
	if progress.RetryAt > l.NowMS() {
		return false
	}
	current := l.arrivals().session
	var u model.Usage
	began := l.Remaining()
	for _, m := range l.letters(maxWaiting) {
		if ended && m.event.SessionID == current {
			continue
		}
		if !l.OK() || l.Remaining() < began/2 {
			break
		}
		l.letter = m.number
		k, warnings, failed := l.extract(&m.event, &u)
		l.letter = ""
		if failed != nil {
			if !model.OutOfTime(l.Call, failed) {
				progress.Note(l.State, failed, l.s.llm.Retries, 0) // its event is given up instead
				l.failLetter(m, abi.AsError(failed))
			}
			break
		}
		progress.Failure = model.Failure{}
		l.finishLetter(m, k, warnings)
	}
	l.dropSettled()
	u.Add(l.State)
	if u.Calls > 0 {
		progress.Save(l.State, extractionKey)
	}
	return u.Calls > 0
}

// finishLetter logs the warnings of a letter's extraction, and closes the letter. k is nil if there was nothing to
// remember.
func (l *ledger) finishLetter(m *letter, k *commit, warnings []string) {
	for _, w := range warnings {
		l.Log(abi.LogWarn, "event "+strconv.Quote(m.event.EventID)+": "+w)
	}
	id := ""
	if k != nil {
		id = k.ID
	}
	l.closeLetter(m, id)
}

// closeLetter removes a letter from the inbox and records in its source where it went.
func (l *ledger) closeLetter(m *letter, to string) {
	l.Delete(inboxPrefix + m.number)
	key := sourceKey(m.event.EventID)
	known, _ := l.Get(key)
	digest, _, _ := strings.Cut(string(known), " ")
	l.Put(key, []byte(digest+" "+to), sdk.AnyVersion)
}

// failLetter records what was wrong with a letter, and moves it to the dead letters after too many unusable answers.
func (l *ledger) failLetter(m *letter, e *abi.Error) {
	m.problem = e.Reason + ": " + oneLine(e.Message, 200)
	if e.Reason == model.ReasonBadOutput || e.Reason == model.ReasonRefused {
		m.attempts++
	}
	key := inboxPrefix + m.number
	if m.attempts > maxAttempts {
		l.closeLetter(m, isDead+m.number)
		key = deadPrefix + m.number
	}
	l.Put(key, m.encode(), sdk.AnyVersion)
}

// readiness judges markers, which are event ids, by where their events are.
func readiness(c *sdk.Call, r *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	return withLedger(c, func(l *ledger) *abi.BackendReadiness { return l.ready(r.Markers) })
}

func (l *ledger) ready(markers []string) *abi.BackendReadiness {
	answer := &abi.BackendReadiness{Status: abi.ReadinessReady, Method: "stored with the receipt"}
	if l.s.llm == nil {
		return answer
	}
	answer.Method = "the inbox of the scope"
	if first := l.letters(1); len(first) > 0 {
		answer.Status, answer.OldestPendingAt = abi.ReadinessPending, first[0].event.Timestamp
		progress := model.ReadProgress(l.State, extractionKey)
		if progress.RetryAt > l.NowMS() {
			answer.Status = abi.ReadinessFailed
			answer.Warnings = append(answer.Warnings,
				progress.Reason+": "+progress.Story(0))
		}
		waits := "llm_work_waits: events wait for the model"
		if l.s.manual {
			waits = "llm_work_waits: events wait for the native mutation memory_consolidate: update_policy is manual"
		}
		answer.Warnings = append(answer.Warnings, waits)
	}
	if dead, _ := l.List(abi.StateListRequest{Prefix: deadPrefix, Limit: 1, Values: true}); len(dead) > 0 {
		answer.Status = abi.ReadinessFailed
		m, err := decodeLetter(strings.TrimPrefix(dead[0].Key, deadPrefix), dead[0].Value)
		if err != nil {
			l.Fail(damagedError(dead[0].Key))
		}
		answer.Warnings = append(answer.Warnings,
			"dead_letter: events are stored, but the model refuses them, or its answers cannot be used ("+m.problem+
				"); recorded again they are tried again")
	}
	for _, id := range markers {
		l.locate(id, &answer.EventIDs)
	}
	return answer
}

// locate adds an event to the list for its state; an event in the ledger is in no list.
func (l *ledger) locate(id string, lists *abi.ReadinessEventIDs) {
	known, version := l.Get(sourceKey(id))
	_, at, _ := strings.Cut(string(known), " ")
	switch {
	case version == 0:
		lists.Unknown = append(lists.Unknown, id)
	case at == inInbox:
		lists.Pending = append(lists.Pending, id)
	case at == "":
		lists.Empty = append(lists.Empty, id)
	case strings.HasPrefix(at, isDead):
		lists.Failed = append(lists.Failed, id)
	}
}

// waitUntilReady extracts what waits, until nothing waits, one fails, or half of the time is used. In the background,
// if the policy extracts at the end of a session, the session in progress is left alone; then what is due by the clock
// is tidied.
func waitUntilReady(c *sdk.Call, r *abi.WaitRequest) (*abi.BackendReadiness, error) {
	return withLedger(c, func(l *ledger) *abi.BackendReadiness {
		asked := l.s.llm != nil && !l.s.manual && l.work(r.Background && l.s.perSession)
		// The branches may have advanced during a model call: what is due then waits for the next call.
		if r.Background && !asked {
			l.tidy()
		}
		return l.ready(nil)
	})
}
