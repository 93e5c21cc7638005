package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
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
	// inInbox and isDead stand in a source's key in place of the commit, isDead with the letter's number behind it.
	inInbox = "inbox"
	isDead  = "dead/"
	// maxAttempts is how often an event may be answered with what cannot be used. An endpoint that cannot be reached does not count: the event waits.
	maxAttempts = 5
	// mostWaiting is how many events one run of the work looks at.
	mostWaiting = 200
)

// letter is a recorded event that waits for extraction.
type letter struct {
	number   string
	attempts int64
	problem  string
	event    abi.MemoryEvent
}

func (m *letter) encode() []byte {
	b := jsontext.AppendInt([]byte(`{"attempts":`), m.attempts)
	b = appendOptional(b, ',', "problem", m.problem)
	return append(append(append(b, `,"event":`...), abi.Marshal(&m.event)...), '}')
}

func decodeLetter(number string, data []byte) (*letter, error) {
	m := &letter{number: number}
	err := readObject(data, func(d *jsontext.Decoder, key string) (err error) {
		switch key {
		case "attempts":
			m.attempts, err = d.Int64()
		case "problem":
			m.problem, err = d.Str()
		case "event":
			var raw jsontext.Raw
			if raw, err = d.Raw(); err == nil {
				err = abi.Unmarshal(append([]byte(nil), raw...), &m.event)
			}
		default:
			err = d.Skip()
		}
		return err
	})
	return m, err
}

// arrivals is the key of the same name.
type arrivals struct {
	count, version int64
	session        string
}

func (l *ledger) arrivals() (*arrivals, error) {
	a := new(arrivals)
	data, version, err := l.Get(arrivalsKey)
	if err != nil || version == 0 {
		return a, err
	}
	if a.version = version; nanobot.Decode(data, nanobot.Number("count", &a.count), nanobot.Word("session", &a.session)) != nil {
		return nil, damaged(arrivalsKey)
	}
	return a, nil
}

// queue stores an event for extraction. No model is asked here.
func (l *ledger) queue(e *abi.MemoryEvent, key, digest string, expected int64) (*abi.WriteReceipt, error) {
	a, err := l.arrivals()
	if err != nil {
		return nil, err
	}
	a.count++
	a.session = e.SessionID
	if err := l.Put(arrivalsKey, nanobot.Encode(nanobot.Number("count", &a.count), nanobot.Word("session", &a.session)), a.version); err != nil {
		return nil, err
	}
	m := &letter{event: *e}
	if err := l.Put(inboxPrefix+fixed(a.count), m.encode(), 0); err != nil {
		return nil, err
	}
	return l.pending(e), l.Put(key, []byte(digest+" "+inInbox), expected)
}

func (l *ledger) pending(e *abi.MemoryEvent) *abi.WriteReceipt {
	r := l.receipt(e, abi.StatusPending, "", nil)
	r.Trace.Consistency, r.StoredCount = "pending", sdk.Ptr(int64(len(e.Messages)))
	r.Markers = []string{e.EventID}
	return r
}

// letters lists the oldest of the inbox, in order.
func (l *ledger) letters(most int64) ([]*letter, error) {
	items, _, err := l.List(abi.StateListRequest{Prefix: inboxPrefix, Limit: most, Values: true})
	if err != nil {
		return nil, err
	}
	list := make([]*letter, len(items))
	for n, i := range items {
		if list[n], err = decodeLetter(strings.TrimPrefix(i.Key, inboxPrefix), i.Value); err != nil {
			return nil, damaged(i.Key)
		}
	}
	return list, nil
}

// work extracts what is due, in order, until one fails or the time is half over. ended leaves out the session that is under way.
func (l *ledger) work(ended bool) error {
	progress, err := nanobot.ReadProgress(l.Call, extractionKey)
	if err != nil || progress.RetryAt > nanobot.NowMS(l.Call) {
		return err
	}
	a, err := l.arrivals()
	if err != nil {
		return err
	}
	waiting, err := l.letters(mostWaiting)
	if err != nil {
		return err
	}
	var u nanobot.Usage
	began := l.Remaining()
	for _, m := range waiting {
		if ended && m.event.SessionID == a.session {
			continue
		}
		if l.Remaining() < began/2 {
			break
		}
		k, warnings, failed := l.extract(&m.event, &u)
		if failed != nil && !nanobot.OfModel(failed) {
			return failed
		}
		if failed != nil && abi.CodeOf(failed) == abi.CodeTimeout && l.Remaining() < 1000 {
			break // the caller's time is over, not the model's: nothing is known of it
		}
		if failed != nil {
			progress.Fail(l.Call, failed, l.s.llm.Retries)
			if err := l.failed(m, abi.AsError(failed)); err != nil {
				return err
			}
			break
		}
		progress.Failure = nanobot.Failure{}
		if err := l.extracted(m, k, warnings); err != nil {
			return err
		}
	}
	if err := u.Add(l.Call); err != nil || u.Calls == 0 {
		return err
	}
	return progress.Save(l.Call, extractionKey)
}

// extracted notes what became of a letter.
func (l *ledger) extracted(m *letter, k *commit, warnings []string) error {
	for _, w := range warnings {
		l.Log(abi.LogWarn, "event "+strconv.Quote(m.event.EventID)+": "+w)
	}
	id := ""
	if k != nil {
		id = k.ID
	}
	return l.closeLetter(m, id)
}

// closeLetter takes a letter out of the inbox and notes in its source where it has gone.
func (l *ledger) closeLetter(m *letter, to string) error {
	if _, err := l.Delete(inboxPrefix + m.number); err != nil {
		return err
	}
	key := sourceKey(m.event.EventID)
	known, _, err := l.Get(key)
	if err != nil {
		return err
	}
	digest, _, _ := strings.Cut(string(known), " ")
	return l.Put(key, []byte(digest+" "+to), sdk.AnyVersion)
}

// failed keeps a letter with what was wrong, after too many unusable answers among the dead.
func (l *ledger) failed(m *letter, e *abi.Error) error {
	m.problem = e.Reason + ": " + oneLine(e.Message, 200)
	if e.Reason == nanobot.ReasonBadOutput {
		m.attempts++
	}
	if m.attempts <= maxAttempts {
		return l.Put(inboxPrefix+m.number, m.encode(), sdk.AnyVersion)
	}
	if err := l.closeLetter(m, isDead+m.number); err != nil {
		return err
	}
	return l.Put(deadPrefix+m.number, m.encode(), sdk.AnyVersion)
}

// readiness judges markers, which are event ids, by where their events stand.
func readiness(c *sdk.Call, r *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	l, err := open(c)
	if err != nil {
		return nil, err
	}
	return l.ready(r.Markers)
}

func (l *ledger) ready(markers []string) (*abi.BackendReadiness, error) {
	answer := &abi.BackendReadiness{Status: abi.ReadinessReady, Method: "stored with the receipt"}
	if l.s.llm == nil {
		return answer, nil
	}
	answer.Method = "the inbox of the scope"
	first, err := l.letters(1)
	if err != nil {
		return nil, err
	}
	if len(first) > 0 {
		answer.Status, answer.OldestPendingAt = abi.ReadinessPending, first[0].event.Timestamp
		progress, err := nanobot.ReadProgress(l.Call, extractionKey)
		if err != nil {
			return nil, err
		}
		if progress.RetryAt > nanobot.NowMS(l.Call) {
			answer.Status = abi.ReadinessFailed
			answer.Warnings = append(answer.Warnings, progress.Reason+": "+sdk.Itoa(progress.Failures)+" failures, nothing is lost: "+progress.Said)
		}
		waits := "llm_work_waits: events wait for the model"
		if l.s.manual {
			waits = "llm_work_waits: events wait for the native mutation memory_consolidate: update_policy is manual"
		}
		answer.Warnings = append(answer.Warnings, waits)
	}
	dead, _, err := l.List(abi.StateListRequest{Prefix: deadPrefix, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(dead) > 0 {
		answer.Status = abi.ReadinessFailed
		answer.Warnings = append(answer.Warnings, "dead_letter: events are stored, but the model's answers to them cannot be used; recorded again they are tried again")
	}
	for _, id := range markers {
		if err := l.place(id, &answer.EventIDs); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// place adds an event to the list of where it stands; one that is in the ledger is in none.
func (l *ledger) place(id string, lists *abi.ReadinessEventIDs) error {
	known, version, err := l.Get(sourceKey(id))
	if err != nil {
		return err
	}
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
	return nil
}

// waitUntilReady extracts what waits, until it is done, one fails, or the time is half over. In the background, where the policy is to wait for the end of
// a session, the one under way is left.
func waitUntilReady(c *sdk.Call, r *abi.WaitRequest) (*abi.BackendReadiness, error) {
	l, err := open(c)
	if err != nil {
		return nil, err
	}
	if l.s.llm != nil && !l.s.manual {
		if err := l.work(r.Background && l.s.perSession); err != nil {
			return nil, err
		}
	}
	return l.ready(nil)
}
