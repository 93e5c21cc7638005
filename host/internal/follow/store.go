package follow

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
)

// Tables of followers.
const (
	tableFollow  state.Table = "follow"         // Key -> Record, JSON
	tableOpen    state.Table = "follow_open"    // Key, number of the archived event(8) -> report.OpenEvent, JSON
	tableAnswers state.Table = "shadow_answers" // time(8), Key -> report.ShadowAnswer (answers.go)
)

// Tables returns the tables of followers.
func Tables() []state.Table { return []state.Table{tableFollow, tableOpen, tableAnswers} }

// Key identifies the memory that a follower fills: provider, origin and namespace.
type Key [16]byte

// Record is what the data folder holds about a follower.
type Record struct {
	Role     string `json:"role"`
	Provider string `json:"provider"`
	Word     string `json:"word"`
	Source   string `json:"source"`
	// Block is the config block, if the request had one; otherwise it is in the configuration.
	Block  json.RawMessage `json:"block,omitempty"`
	Module string          `json:"module"` // sha256
	Since  string          `json:"since"`
	// Rate is the maximum number of events per second; 0 means no limit.
	Rate float64 `json:"rate,omitempty"`
	// Stopped is when it was stopped; InPage is how many events beyond Position had been handled then.
	Stopped string `json:"stopped,omitempty"`
	InPage  int64  `json:"in_page,omitempty"`
	// From is the number after which it started, FillTo the last number at that time.
	From   int64 `json:"from,omitempty"`
	FillTo int64 `json:"fill_to"`
	// Given means that it is filled from given events instead of the archive (given.go). Resets up to GivenErased are
	// older than these events.
	Given       bool  `json:"given,omitempty"`
	GivenErased int64 `json:"given_erased,omitempty"`
	// Position is the number up to which every event has been handled, Erased the number of the last reset that was
	// repeated here.
	Position int64 `json:"position"`
	Erased   int64 `json:"erased"`
	// Done counts delivered events, LeftOut events that were skipped on purpose.
	Done    int64 `json:"done"`
	LeftOut int64 `json:"left_out"`
	// Held has the scopes whose events are held back. The list is replaced, never modified.
	Held []heldScope `json:"held,omitempty"`
	// Dropped counts events that were removed from the queue before the follower had them (queue.go).
	Dropped int64 `json:"dropped,omitempty"`
}

// Options configure a Store. All fields are required.
type Options struct {
	State   state.Store
	Commit  func(ctx context.Context, b *state.Batch) error
	Archive *archive.Archive
	// Given holds the events that were given for a backfill.
	Given  *archive.Archive
	Logger hclog.Logger
	Now    func() time.Time
	// QueueBytes bounds the queue for followers if no archive is kept.
	QueueBytes int64
}

// Store is what a data folder holds about followers: how far each is, what is open, and what shadows answered.
type Store struct {
	Options

	// answersMu is held for writing while stored answers are removed. forgotAt is when something about a person was
	// last forgotten.
	answersMu sync.RWMutex
	forgotAt  map[person]time.Time

	// running are the followers that have been started.
	runningMu sync.Mutex
	running   map[Key]*Follower

	causes causes
}

// NewStore creates a Store.
func NewStore(o Options) *Store {
	return &Store{Options: o, forgotAt: map[person]time.Time{}, running: map[Key]*Follower{}}
}

func (s *Store) each(ctx context.Context, table state.Table, prefix []byte, visit func(state.KeyValue) error) error {
	return state.EachRecord(ctx, s.State, table, prefix, visit)
}

func (s *Store) stamp() string { return s.Now().UTC().Format(time.RFC3339Nano) }

// Record reads the record of a follower; nil if there is none.
func (s *Store) Record(ctx context.Context, key Key) (*Record, error) {
	stored, err := s.State.Record(ctx, tableFollow, key[:])
	if err != nil || stored == nil {
		return nil, state.ContractError(err)
	}
	return decodeRecord(stored)
}

func decodeRecord(stored []byte) (*Record, error) {
	r := new(Record)
	if json.Unmarshal(stored, r) != nil || r.Provider == "" {
		return nil, abi.NewError(abi.CodeUnavailable, "state: the record of a follower is damaged").WithReason("state")
	}
	return r, nil
}

// Records lists the records of all followers.
func (s *Store) Records(ctx context.Context) (list map[Key]Record, err error) {
	list = map[Key]Record{}
	err = s.each(ctx, tableFollow, nil, func(kv state.KeyValue) error {
		record, err := decodeRecord(kv.Value)
		if err == nil && len(kv.Key) == len(Key{}) {
			list[Key(kv.Key)] = *record
		}
		return err
	})
	return list, err
}

// Resume makes the archive assign numbers beyond those that followers have handled, even if all its entries have been
// removed since.
func (s *Store) Resume(records map[Key]Record) {
	for _, r := range records {
		s.Archive.GoOnAfter(max(r.archived(), r.FillTo))
	}
}

// Begin completes the record of a new follower, which starts at the beginning or the end of the archive. If it has
// given events, it starts with these, and continues at the end of the archive.
func (s *Store) Begin(ctx context.Context, r Record, atEnd bool) (*Record, error) {
	erasures, err := s.Archive.Erasures(ctx)
	if err != nil {
		return nil, err
	}
	r.Since, r.FillTo = s.stamp(), s.Archive.Settled()
	if len(erasures) > 0 { // erased events are left out, and the memory has none of them
		r.Erased = erasures[len(erasures)-1].Number
	}
	if atEnd || r.Given {
		r.From, r.Position = r.FillTo, r.FillTo
	}
	if r.Given {
		r.Position, r.GivenErased = givenBase, r.Erased
	}
	return &r, nil
}

// Stopped describes a follower whose memory is not loaded.
func (s *Store) Stopped(ctx context.Context, key Key, r *Record) (p report.FollowerProgress, err error) {
	behind, err := s.countAfter(ctx, r)
	if err != nil {
		return p, err
	}
	_, listed, err := s.openEvents(ctx, key)
	p = report.FollowerProgress{Done: r.Done + r.InPage, LeftOut: r.LeftOut, Held: r.heldEvents(), Dropped: r.Dropped,
		Open: int64(len(listed)), OpenEvents: listed[:min(len(listed), maxOpenEvents)]}
	waiting, _ := r.waitingEvents()
	p.Events = p.Done + p.LeftOut + p.Held + p.Dropped + p.Open + waiting + max(0, behind-r.InPage)
	return p, err
}

// put stores a follower's record.
func (s *Store) put(ctx context.Context, key Key, r *Record) error {
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var b state.Batch
	b.PutRecord(tableFollow, key[:], value)
	return s.Commit(ctx, &b)
}

// Drop removes everything that is stored about a follower that is not running.
func (s *Store) Drop(ctx context.Context, key Key) error {
	var b state.Batch
	b.DeleteRecord(tableFollow, key[:])
	err := s.each(ctx, tableOpen, key[:], func(kv state.KeyValue) error {
		b.DeleteRecord(tableOpen, kv.Key)
		return nil
	})
	if err != nil {
		return err
	}
	return s.Commit(ctx, &b)
}

// maxOpenEvents is the most open events that an answer lists.
const maxOpenEvents = 100

// openEvents returns the open events of a follower and their numbers in the archive.
func (s *Store) openEvents(ctx context.Context, key Key) (numbers []int64, listed []report.OpenEvent, err error) {
	err = s.each(ctx, tableOpen, key[:], func(kv state.KeyValue) error {
		var open report.OpenEvent
		if abi.Unmarshal(kv.Value, &open) != nil || len(kv.Key) != len(key)+8 {
			return abi.NewError(abi.CodeUnavailable, "state: the record of an open event is damaged").WithReason("state")
		}
		numbers = append(numbers, int64(binary.BigEndian.Uint64(kv.Key[len(key):])))
		listed = append(listed, open)
		return nil
	})
	return numbers, listed, err
}

// openKey is the key of an open event.
func openKey(key Key, number int64) []byte {
	return binary.BigEndian.AppendUint64(key[:], uint64(number))
}
