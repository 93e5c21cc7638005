// Package outbox keeps events on disk until a slot has accepted them.
//
// The helper of an agent (a hook, a child process) puts each turn into a Box, which is quick and durable, and lets the
// Box deliver in the background: a slot that is down, slow or not there yet costs the agent nothing, and a killed
// process loses nothing that Add has stored.
//
// A Box is a folder with one file for each event, so several processes may share it. No process locks another out: each
// sends the oldest event of a scope first and continues when that one has arrived, and the slot's ledger answers a
// repeated event with its first receipt. So every event arrives once, and those of a scope in order, whichever process
// sends them. Processes that are started only to deliver take turns (DeliverAlone), because they would pile up while a
// slot hangs.
package outbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/wholefile"
)

// Slot is what a Box asks of a slot. A host.Contract is one.
type Slot interface {
	RecordEvent(ctx context.Context, event *abi.MemoryEvent) (*abi.WriteReceipt, error)
	Mode(ctx context.Context) (*abi.ModeReceipt, error)
}

// Options configure a Box. The zero value of a field means its default.
type Options struct {
	// Logger reports which events wait, were delivered late or were set aside. Default: no log.
	Logger hclog.Logger
	// Max is how many events may wait. The oldest are kept, and Add rejects further ones. Default: 10,000.
	Max int
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// After returns a channel that receives after a time, for the pauses between retries. Default: time.After.
	After func(time.Duration) <-chan time.Time
}

// Box is a folder of events that wait for a slot. Make one with Open. It is safe for concurrent use, also by several
// processes.
type Box struct {
	dir   string
	max   int
	log   hclog.Logger
	now   func() time.Time
	after func(time.Duration) <-chan time.Time
	wake  chan struct{}

	mu     sync.Mutex
	last   int64          // the newest name's number
	tries  map[string]int // of events whose receipts were uncertain, by file name
	outage bool           // it was logged that events wait
}

const (
	// suffix ends the name of a file that holds an event. Files are written under other names first.
	suffix = ".json"
	// setAsideFolder holds the events that no slot will accept, each with a text that says why.
	setAsideFolder = "aside"
	// reasonSuffix ends the name of that text.
	reasonSuffix = ".reason.txt"
	// maxFile bounds an event's file, in bytes. An event that a slot accepts is smaller.
	maxFile = 64 << 20
	// defaultMax is the default of Options.Max: some weeks of a person's turns.
	defaultMax = 10_000
)

// Open creates the folder if it is missing. What an earlier process left in it will be delivered.
//
// Errors: unavailable if the folder cannot be used.
func Open(dir string, o Options) (*Box, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Max <= 0 {
		o.Max = defaultMax
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	b := &Box{dir: dir, max: o.Max, log: o.Logger, now: o.Now, after: o.After, wake: make(chan struct{}, 1),
		tries: map[string]int{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, folderError(dir, err)
	}
	if _, err := b.names(); err != nil {
		return nil, err
	}
	return b, nil
}

// Dir returns the folder.
func (b *Box) Dir() string { return b.dir }

// Add puts an event into the box. When it returns without an error the event survives the end of the process and a
// power loss. An event that is already waiting is not added again.
//
// Errors: invalid_argument for an event that no slot would accept, too_large if the box is full, unavailable if it
// cannot be written.
func (b *Box) Add(event *abi.MemoryEvent) error {
	if err := event.Validate(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	names, err := b.names()
	if err != nil {
		return err
	}
	mark := "-" + digest(event) + suffix
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, mark) }) {
		return nil
	}
	if len(names) >= b.max {
		return abi.NewError(abi.CodeTooLarge, fmt.Sprintf("outbox %s: full, %d events wait for the slot and are kept",
			b.dir, len(names))).
			WithReason("outbox_full").WithHint("start the slot that they wait for: memhost run")
	}
	if len(names) > 0 {
		b.last = max(b.last, number(names[len(names)-1]))
	}
	b.last = max(b.last+1, b.now().UnixNano())
	if err := b.write(fmt.Sprintf("%020d%s", b.last, mark), append(abi.Marshal(event), '\n')); err != nil {
		return folderError(b.dir, err)
	}
	select {
	case b.wake <- struct{}{}:
	default:
	}
	return nil
}

// Waiting counts the events that no slot has accepted yet, without those set aside.
//
// Errors: unavailable if the folder cannot be read.
func (b *Box) Waiting() (int, error) {
	names, err := b.names()
	return len(names), err
}

// Count counts the events of all boxes in a folder and its subfolders: those that wait, and those set aside. A folder
// that is missing, or is removed by another process while it is read, counts as empty.
func Count(folder string) (waiting, aside int) {
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || entry.IsDir() || !isEvent(entry.Name()):
		case filepath.Base(filepath.Dir(path)) == setAsideFolder:
			aside++
		default:
			waiting++
		}
		return nil
	})
	return waiting, aside
}

// isEvent reports whether a file's name is that of an event.
func isEvent(name string) bool { return strings.HasSuffix(name, suffix) && number(name) > 0 }

// digest identifies an event by scope and id, as a slot's ledger does.
func digest(event *abi.MemoryEvent) string {
	return Digest(event.RunID, event.UserID, event.AgentID, event.EventID)
}

// Digest returns 32 hexadecimal digits that identify a list of texts. It gives a turn without an id an event_id that is
// the same whenever the turn is reported.
func Digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// number returns the time in a file's name, 0 if there is none.
func number(name string) int64 {
	digits, _, _ := strings.Cut(name, "-")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// names lists the waiting events, oldest first.
func (b *Box) names() ([]string, error) {
	entries, err := os.ReadDir(b.dir) // sorted by name
	if err != nil {
		return nil, folderError(b.dir, err)
	}
	var names []string
	for _, e := range entries {
		if name := e.Name(); isEvent(name) && e.Type().IsRegular() {
			names = append(names, name)
		}
	}
	return names, nil
}

// write writes a file of the folder durably.
func (b *Box) write(name string, text []byte) error {
	return wholefile.WriteDurable(filepath.Join(b.dir, name), text, 0o600)
}

// errGone: another process has delivered the event.
var errGone = errors.New("gone")

// read reads a waiting event.
//
// Errors: errGone; invalid_argument for a file without a valid event; unavailable if it cannot be read.
func (b *Box) read(name string) (*abi.MemoryEvent, error) {
	path := filepath.Join(b.dir, name)
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxFile {
		return nil, abi.NewError(abi.CodeInvalidArgument, name+": too large for an event")
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errGone
	case err != nil:
		return nil, folderError(path, err)
	}
	event := new(abi.MemoryEvent)
	if err := abi.UnmarshalStrict(bytes.TrimSpace(text), event); err != nil {
		return nil, err
	}
	return event, event.Validate()
}

// remove removes an event. It is not an error if another process has already removed it.
func (b *Box) remove(name string) error {
	if err := os.Remove(filepath.Join(b.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return folderError(b.dir, err)
	}
	b.mu.Lock()
	delete(b.tries, name)
	b.mu.Unlock()
	return nil
}

// putAside moves an event that no slot will accept out of the way of the others, with the reason.
func (b *Box) putAside(name string, reason error) error {
	dir := filepath.Join(b.dir, setAsideFolder)
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, strings.TrimSuffix(name, suffix)+reasonSuffix),
			[]byte(reason.Error()+"\n"), 0o600)
	}
	if err == nil {
		err = os.Rename(filepath.Join(b.dir, name), filepath.Join(dir, name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process was faster
	}
	if err != nil {
		return folderError(dir, err)
	}
	b.log.Warn("an event was put aside: no slot takes it as it is", "why", reason, "file", filepath.Join(dir, name),
		"hint", "memhost record FILE tries it again")
	return nil
}

func folderError(path string, err error) error {
	return abi.WrapError(abi.CodeUnavailable, fmt.Sprintf("outbox %s: %v", path, err), err).WithReason("outbox")
}
