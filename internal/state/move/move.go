// Package move moves the content of one store to another: from a data folder to a database, or back.
//
// An interrupted move can be resumed. At the end, the new store is read and compared with the old one, and the old one
// is marked as moved. No host serves from it any more ([Check]), because two stores of one slot would each send events
// that only the other one knows to have been sent.
package move

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"time"

	"github.com/memhost/memhost/internal/state"
)

// tableMove holds a note about the move, in both stores.
const tableMove state.Table = "move"

var (
	keyFrom = []byte("from") // -> progress, in the new store
	keyTo   = []byte("to")   // -> moved, in the old one
)

// progress is how far the new store has been filled.
type progress struct {
	From string `json:"from"`
	// Operations is the number of copied operations; Digest is over them.
	Operations int64  `json:"operations"`
	Digest     string `json:"digest"`
	Done       bool   `json:"done"`
}

// moveTarget is where a store's content is now.
type moveTarget struct {
	To string `json:"to"`
	At string `json:"at"`
}

// Side is a store and its name for messages.
type Side struct {
	Store state.Enumerator
	Name  string
}

// Options configure a move.
type Options struct {
	// Leave reports which tables stay in the old store.
	Leave func(state.Table) bool
	// Progress is called regularly with the number of records, keys and entries that were copied.
	Progress func(operations int64)
}

// Result describes what was moved.
type Result struct {
	Operations int64
	Bytes      int64
	Digest     string
	// Resumed means that an earlier attempt had done a part.
	Resumed bool
}

// A batch ends when it has this many operations or bytes.
const (
	batchOps   = 500
	batchBytes = 1 << 20
)

// Move copies from one store to another, which must be empty, compares the two, closes the old one for hosts, and then
// opens the new one. So at no moment can both serve, and the new one only serves after the comparison.
//
// Errors: state.ErrInvalid if the new store is not empty, or the old one has changed since an interrupted attempt;
// state.ErrDamaged if the new store does not hold what was written; those of the stores.
func Move(ctx context.Context, from, to Side, o Options) (r Result, err error) {
	leave := func(t state.Table) bool { return t == tableMove || o.Leave(t) }
	closed := Check(ctx, from.Store)
	had, err := readProgress(ctx, to, leave)
	if closed != nil && (err != nil || had.From != from.Name || !closedFor(ctx, from.Store, to.Name)) {
		return r, closed // otherwise an attempt ended between the two notes
	}
	if err != nil {
		return r, err
	}
	r.Resumed = had.Operations > 0
	sum := sha256.New()
	var b state.Batch
	flush := func(done bool) error {
		r.Digest = hex.EncodeToString(sum.Sum(nil))
		note, err := json.Marshal(&progress{From: from.Name, Operations: r.Operations, Digest: r.Digest, Done: done})
		if err != nil {
			return err
		}
		b.PutRecord(tableMove, keyFrom, note)
		_, err = to.Store.Commit(ctx, &b)
		b = state.Batch{}
		o.Progress(r.Operations)
		return err
	}
	err = state.Walk(ctx, from.Store, leave, func(op state.Op) error {
		add(sum, op)
		r.Operations++
		r.Bytes += int64(len(op.Name) + len(op.Value))
		switch {
		case r.Operations < had.Operations:
			return nil
		case r.Operations == had.Operations:
			if hex.EncodeToString(sum.Sum(nil)) != had.Digest {
				return changed(from, to)
			}
			return nil
		}
		switch op.Kind {
		case state.OpPut:
			b.Put(op.Space, op.Name, op.Value, 0)
		case state.OpAppend:
			b.Append(op.Space, op.Name, op.Value)
		default:
			b.PutRecord(op.Table, []byte(op.Name), op.Value)
		}
		if b.Len() < batchOps && b.Bytes() < batchBytes {
			return nil
		}
		return flush(false)
	})
	if err != nil {
		return r, err
	}
	if r.Operations < had.Operations {
		return r, changed(from, to)
	}
	if err := flush(false); err != nil {
		return r, err
	}
	if err := compare(ctx, to, leave, r.Digest); err != nil {
		return r, err
	}
	if err := leaveNote(ctx, from, to); err != nil {
		return r, err
	}
	return r, flush(true)
}

// readProgress returns how far an earlier attempt got. Without one the store must be empty.
func readProgress(ctx context.Context, to Side, leave func(state.Table) bool) (p progress, err error) {
	stored, err := to.Store.Record(ctx, tableMove, keyFrom)
	if err != nil {
		return p, err
	}
	if stored != nil {
		if err := json.Unmarshal(stored, &p); err != nil || p.Done {
			return p, notEmpty(to)
		}
		return p, nil
	}
	empty := true
	err = state.Walk(ctx, to.Store, leave, func(state.Op) error {
		empty = false
		return errEnough
	})
	if !empty {
		return p, notEmpty(to)
	}
	return p, err
}

var errEnough = fmt.Errorf("enough")

func notEmpty(to Side) error {
	return &state.Error{Kind: state.ErrInvalid, Message: to.Name + " is not empty", Hint: "name an empty one: another " +
		"schema, or another folder"}
}

func changed(from, to Side) error {
	return &state.Error{Kind: state.ErrInvalid, Message: fmt.Sprintf("%s has changed since its content began to be moved "+
		"to %s", from.Name, to.Name), Hint: "empty " + to.Name + " and move again"}
}

// compare reads the new store and compares its digest.
func compare(ctx context.Context, to Side, leave func(state.Table) bool, want string) error {
	sum := sha256.New()
	err := state.Walk(ctx, to.Store, leave, func(op state.Op) error {
		add(sum, op)
		return nil
	})
	if err != nil {
		return err
	}
	if have := hex.EncodeToString(sum.Sum(nil)); have != want {
		return &state.Error{Kind: state.ErrDamaged, Message: fmt.Sprintf("%s does not hold what was written: digest %.12s, "+
			"want %.12s", to.Name, have, want), Hint: "empty it and move again"}
	}
	return nil
}

func leaveNote(ctx context.Context, from, to Side) error {
	note, err := json.Marshal(&moveTarget{To: to.Name, At: time.Now().UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	var b state.Batch
	b.PutRecord(tableMove, keyTo, note)
	_, err = from.Store.Commit(ctx, &b)
	return err
}

// add adds an operation to a digest. Each part is preceded by its length.
func add(sum hash.Hash, op state.Op) {
	part := func(p []byte) {
		_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p)))) // never fails
		_, _ = sum.Write(p)
	}
	part([]byte{byte(op.Kind)})
	part(op.Space[:])
	part([]byte(op.Table))
	part([]byte(op.Name))
	part(op.Value)
}

// closedFor reports whether a store's content was moved to the store with a name.
func closedFor(ctx context.Context, s state.Store, name string) bool {
	var m moveTarget
	note, err := s.Record(ctx, tableMove, keyTo)
	return err == nil && json.Unmarshal(note, &m) == nil && m.To == name
}

// Check returns state.ErrMoved if no host may serve from a store, because its content is elsewhere or not yet complete.
func Check(ctx context.Context, s state.Store) error {
	to, err := s.Record(ctx, tableMove, keyTo)
	if err != nil {
		return err
	}
	if to != nil {
		var m moveTarget
		_ = json.Unmarshal(to, &m) // it was moved, wherever to
		return &state.Error{Kind: state.ErrMoved, Message: fmt.Sprintf("its content was moved to %s at %s", m.To, m.At),
			Hint: "serve from there; memhost cluster import and export move it on, into an empty schema or folder"}
	}
	from, err := s.Record(ctx, tableMove, keyFrom)
	if err != nil || from == nil {
		return err
	}
	var p progress
	if json.Unmarshal(from, &p) != nil || !p.Done {
		return &state.Error{Kind: state.ErrMoved, Message: "it does not have all of the content of " + p.From + " yet",
			Hint: "run the same memhost cluster import or export again: it goes on where it ended"}
	}
	return nil
}
