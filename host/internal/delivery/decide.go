package delivery

import (
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
)

// An Action is what happens to an event that is recorded.
type Action string

const (
	// SkipTest answers skipped_read_only: the session is read-only by the configuration.
	SkipTest Action = "skip"
	// RefuseForgotten answers a conflict: the event was forgotten on request.
	RefuseForgotten Action = "refuse"
	// RefuseContent answers a conflict: the event is in the ledger with other content.
	RefuseContent Action = "conflict"
	// Repeat answers the first receipt with its present status.
	Repeat Action = "repeat"
	// Adopt records in the ledger that the backend has the event, and answers like Repeat.
	Adopt Action = "adopt"
	// Settle asks the backend how much of an earlier attempt has arrived, and then repeats, sends, or sends what is
	// missing.
	Settle Action = "settle"
	// Send sends the event.
	Send Action = "send"
	// SendMissing sends the parts of the event that the backend lacks.
	SendMissing Action = "send missing"
	// SendWarned sends the event with the warning that it may be stored twice.
	SendWarned Action = "send, warn"
	// SendAgain resends an event of which the backend kept nothing.
	SendAgain Action = "send again"
	// OneByOne releases the write lock and records the events of the batch one at a time.
	OneByOne Action = "one by one"
)

// Facts are what is known about an event before any of it is sent.
type Facts struct {
	TestSession, Forgotten bool
	Hash                   Hash
	// Known is the event's ledger entry; nil if there is none.
	Known *Entry
	// Retry is set if the backend kept nothing of the event, and it should be sent again.
	Retry bool
	// Gap says why an event that was recorded may have no ledger entry. CanFind reports whether the provider can look
	// events up.
	Gap     Gap
	CanFind bool
	// Lookup is the backend's answer about an event that the ledger does not know, if the gap is ScopeExisted. It is nil
	// if the backend was not asked, and NotAsked is why.
	Lookup   *abi.FindEventAnswer
	NotAsked string
}

// Decide is the contract of delivery: what happens to an event. Rows are tried from the top.
//
//	the event                                  alone         in a batch
//	-----------------------------------------  ------------  ----------
//	is of a test session                       skip          skip
//	was forgotten                              refuse        refuse
//	is in the ledger with other content        conflict      conflict
//	is in the ledger and arrived               repeat        repeat
//	is in the ledger, nothing was kept of it   repeat        repeat
//	  and it is to be sent again               send again    one by one
//	is in the ledger as lost                   send          send
//	is in the ledger as failed                 send          send
//	is in the ledger as sent, no receipt       settle        one by one
//	is in the ledger, receipt undecided        settle        one by one
//	is in the ledger, a part has arrived       settle        one by one
//	is new                                     send          send
//	may have been swept from the ledger        settle        one by one
//	  and the provider cannot look it up       send          send
//	may be in a backend that had the scope
//	  and is not looked up                     send, warn    send, warn
//	  and the backend has it                   adopt         adopt
//	  and the backend has a part of it         send missing  one by one
//	  and the backend does not have it         send          send
//	  and the backend cannot tell              send, warn    send, warn
//
// So nothing is sent twice as long as the ledger or the backend can tell that it arrived. An event that this host never
// sent, and about which neither can tell, is sent: a doubled event is better than a lost one.
func Decide(f *Facts, batch bool) Action {
	alone := func(a Action) Action {
		if batch {
			return OneByOne
		}
		return a
	}
	switch {
	case f.TestSession:
		return SkipTest
	case f.Forgotten:
		return RefuseForgotten
	case f.Known != nil && f.Known.Hash != f.Hash:
		return RefuseContent
	case f.Known != nil && (f.Known.State == Lost || f.Known.State == Failed):
		return Send
	case f.Retry:
		return alone(SendAgain)
	case f.Known != nil && f.Known.Uncertain():
		return alone(Settle)
	case f.Known != nil:
		return Repeat
	case f.Gap == Swept && f.CanFind:
		return alone(Settle)
	case f.Gap != ScopeExisted:
		return Send
	case f.Lookup == nil:
		return SendWarned
	}
	switch f.Lookup.Found {
	case answercheck.FoundPresent:
		return Adopt
	case answercheck.FoundPartial:
		return alone(SendMissing)
	case answercheck.FoundUnknown:
		return SendWarned
	}
	return Send
}

// PerhapsSent is the entry of an event that may have been sent at any time in the past.
func (f *Facts) PerhapsSent(e *abi.MemoryEvent) *Entry {
	return &Entry{Hash: f.Hash, State: Sent, SentAt: time.UnixMilli(0), Session: e.SessionID}
}
