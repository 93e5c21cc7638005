package host

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/delivery"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/state"
)

// Each of the hosts that share a store notes the events that it acknowledged in a file of its own data folder. If the
// store has lost commits (state.ErrLoss), the file shows whose receipts are gone. Nothing else depends on the file: it
// is not synced, and only the latest receipts are kept.

// receiptsFile has one line per acknowledged event, oldest first; oldReceipts has the older ones.
const (
	receiptsFile = "receipts.jsonl"
	oldReceipts  = "receipts.1.jsonl"
	// maxReceipts is the size in bytes at which receiptsFile is renamed to oldReceipts: some 50,000 events.
	maxReceipts = 8 << 20
)

// receiptLine is a line of receiptsFile.
type receiptLine struct {
	report.LostEvent
	Space string `json:"space"` // of the scope's generation, in hexadecimal
}

// receiptLog appends to receiptsFile. The zero value discards everything.
type receiptLog struct {
	dir string // empty: discard

	mu   sync.Mutex
	file *os.File
	size int64
}

// add appends acknowledged events.
func (l *receiptLog) add(lines []receiptLine) error {
	if l.dir == "" || len(lines) == 0 {
		return nil
	}
	var text bytes.Buffer
	for i := range lines {
		line, err := json.Marshal(&lines[i])
		if err != nil {
			return err
		}
		text.Write(append(line, '\n'))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(); err != nil {
		return err
	}
	n, err := l.file.Write(text.Bytes())
	l.size += int64(n)
	return err
}

// open opens the file, or starts a new one if it is full.
func (l *receiptLog) open() error {
	path := filepath.Join(l.dir, receiptsFile)
	if l.file != nil && l.size < maxReceipts {
		return nil
	}
	if l.file != nil {
		if err := errors.Join(l.file.Close(), os.Rename(path, filepath.Join(l.dir, oldReceipts))); err != nil {
			return err
		}
		l.file = nil
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	l.file, l.size = file, info.Size()
	return nil
}

func (l *receiptLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// noteReceipts logs the events of a committed write.
func (w *write) noteReceipts(received []abi.ReceiptOrError) {
	log := &w.slot.host.receipts
	if log.dir == "" {
		return
	}
	space, scope, at := w.state.Space(), w.memoryScope(), w.slot.host.stamp()
	var lines []receiptLine
	for i, one := range w.sending {
		if received[i].Receipt != nil {
			lines = append(lines, receiptLine{report.LostEvent{At: at, RunID: scope.RunID, Persona: scope.PersonaID,
				EventID: one.event.EventID}, hex.EncodeToString(space[:])})
		}
	}
	if err := log.add(lines); err != nil {
		w.provider.logger.Warn("receipts are not noted in the data folder", "error", err)
	}
}

// LostReceipts calls visit for each event that a host acknowledged, according to the files in its data folder, but that
// the store does not have; oldest first.
func LostReceipts(ctx context.Context, store state.Store, dir string, visit func(report.LostEvent) error) error {
	for _, name := range []string{oldReceipts, receiptsFile} {
		if err := lostReceipts(ctx, store, filepath.Join(dir, name), visit); err != nil {
			return err
		}
	}
	return nil
}

func lostReceipts(ctx context.Context, store state.Store, path string, visit func(report.LostEvent) error) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l receiptLine
		err := json.Unmarshal(lines.Bytes(), &l)
		space, hexErr := hex.DecodeString(l.Space)
		if err != nil || hexErr != nil || len(space) != len(state.Space{}) || l.EventID == "" {
			continue // the host was killed while it wrote the line
		}
		have, err := store.Record(ctx, delivery.TableEntries, delivery.Key(state.Space(space), l.EventID))
		if err != nil {
			return stateError(err)
		}
		if have != nil {
			continue
		}
		if err := visit(l.LostEvent); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// DoubtScopes makes every write look in the backend for an event that the ledger does not know: the store has lost
// commits, and with them receipts of events that backends have. It returns the number of scopes.
func DoubtScopes(ctx context.Context, store state.Store) (scopes int, err error) {
	const batch = 500
	var b state.Batch
	flush := func() error {
		_, err := store.Commit(ctx, &b)
		b = state.Batch{}
		return stateError(err)
	}
	err = state.EachRecord(ctx, store, tableScopes, nil, func(r state.KeyValue) error {
		record, err := parseScope(r.Value)
		if err != nil || len(r.Key) != len(scopeKey{}) {
			return err
		}
		scopes++
		space := generationSpace(scopeKey(r.Key), record.Generation)
		delivery.PutGap(&b, space, delivery.ScopeExisted)
		if b.Len() < batch {
			return nil
		}
		return flush()
	})
	if err != nil {
		return scopes, stateError(err)
	}
	return scopes, flush()
}
