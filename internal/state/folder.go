package state

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// DataFile is the store's file in the data folder.
const DataFile = "state.db"

// Schema is the version of the data file's content. Opening a file of an older schema upgrades it unless Options.Upgrade
// refuses. An older memhost rejects schemas that are newer than its own: since schema 2 the host's ledger stores
// sessions, and since schema 3 it stores receipts without what the key says and without empty fields.
const (
	Schema       = 3
	oldestSchema = 1
)

// Open opens the store in a data folder, which this process owns until Close. A folder that does not exist is created
// with mode 0700, its data file with 0600. The structure of a file that was not closed cleanly is checked first: this
// takes some 25 ms for 100 MB in the page cache. A slot.json that a killed owner left is removed.
//
// Errors: ErrOwned (another process has the folder; Error.Owner has its address), ErrSchema, ErrDamaged, ErrFolder, and
// ErrInvalid for the options. In these cases an existing data file is not changed.
func Open(dir string, opts Options) (*Bolt, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	// 1. the folder and its content
	path := filepath.Join(dir, DataFile)
	exists, err := prepareFolder(dir, path)
	if err != nil {
		return nil, err
	}
	// 2. the file, read-only and under bbolt's shared lock: bbolt trusts what it reads
	if !exists {
		if err := makeFile(path, opts.LockTimeout); err != nil {
			return nil, openError(dir, path, err)
		}
	} else if !closedCleanly(path) {
		if err := checkFile(dir, path, opts); err != nil {
			return nil, err
		}
	}
	// 3. lock and open the file
	db, file, err := openBolt(path, opts.LockTimeout, bbolt.Options{
		FreelistType: bbolt.FreelistMapType,
		NoSync:       opts.Durability == DurabilityProcess,
		MaxSize:      int(opts.MaxFileBytes),
		NoStatistics: true,
	})
	if err != nil {
		return nil, openError(dir, path, err)
	}
	s := &Bolt{opts: opts, path: path, db: db, file: file, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	// 4. the schema
	if err := s.openSchema(dir); err != nil {
		_ = guard(db.Close)
		return nil, err
	}
	// 5. the folder is ours now
	_ = os.Remove(path + cleanFile)
	_ = RemoveSlot(dir)
	removeUnfinished(path)
	go s.run()
	return s, nil
}

// prepareFolder creates the folder and reports whether it has a data file.
func prepareFolder(dir, path string) (exists bool, err error) {
	if dir == "" {
		return false, invalid("the data folder has an empty name")
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return false, &Error{Kind: ErrFolder, Message: fmt.Sprintf("data folder %s is a file, not a folder", dir),
			Hint: "use another --data folder"}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, openError(dir, path, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, openError(dir, path, err)
	case !info.Mode().IsRegular():
		return false, &Error{Kind: ErrFolder, Message: fmt.Sprintf("%s is not a regular file (%s)", path, info.Mode()),
			Hint: "move it away, or use another --data folder"}
	}
	return true, nil
}

// unfinished is the pattern of a data file's name while it is being created.
const unfinished = ".*.new"

// makeFile creates a data file without buckets, under a temporary name until it is complete. So a process that is
// killed here leaves no incomplete file, and another one that starts at the same time does not see it; the first of two
// wins.
func makeFile(path string, timeout time.Duration) error {
	f, err := os.CreateTemp(filepath.Dir(path), DataFile+unfinished)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err := f.Close(); err != nil {
		return err
	}
	db, _, err := openBolt(f.Name(), timeout, bbolt.Options{NoStatistics: true})
	if err != nil {
		return err
	}
	if err := guard(db.Close); err != nil {
		return err
	}
	linked := os.Link(f.Name(), path)
	if _, err := os.Stat(path); linked == nil || err == nil {
		return nil
	}
	return os.Rename(f.Name(), path) // if the file system has no hard links
}

// removeUnfinished removes files of processes that were killed in makeFile or while making a snapshot. A process that
// is in makeFile now will find the data file.
func removeUnfinished(path string) {
	entries, _ := os.ReadDir(filepath.Dir(path))
	for _, entry := range entries {
		if is, _ := filepath.Match(DataFile+unfinished, entry.Name()); is {
			_ = os.RemoveAll(filepath.Join(filepath.Dir(path), entry.Name()))
		}
	}
}

// openBolt is bbolt.Open, but releases the lock if it panics, and opens the file again if Compact replaced it while this
// waited for the lock.
func openBolt(path string, timeout time.Duration, o bbolt.Options) (db *bbolt.DB, file *os.File, err error) {
	o.Timeout = timeout
	o.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		var err error
		file, err = os.OpenFile(name, flag, mode)
		return file, err
	}
	err = guard(func() (err error) {
		db, err = bbolt.Open(path, 0o600, &o)
		return err
	})
	if isFault(err) && file != nil {
		_ = file.Close()
	}
	if err == nil && replaced(file, path) {
		if err := guard(db.Close); err != nil {
			return nil, nil, err
		}
		return openBolt(path, timeout, o)
	}
	return db, file, err
}

// replaced reports whether another file has the path of an open one now.
func replaced(file *os.File, path string) bool {
	open, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && !os.SameFile(open, named)
}

// cleanFile is next to a data file that was closed cleanly, and has the data file's size and modification time at that
// moment.
const cleanFile = ".clean"

// stamp is the content of cleanFile; "" if the data file cannot be accessed.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %d\n", info.Size(), info.ModTime().UnixNano())
}

// closedCleanly reports whether a data file is unchanged since Close.
func closedCleanly(path string) bool {
	text, err := os.ReadFile(path + cleanFile)
	return err == nil && string(text) == stamp(path)
}

// checkFile checks an existing data file before it is opened for writing.
func checkFile(dir, path string, opts Options) error {
	db, file, err := openBolt(path, opts.LockTimeout, bbolt.Options{ReadOnly: true, NoStatistics: true})
	if err != nil {
		if info, statErr := os.Stat(path); statErr == nil && info.Size() == 0 && !errors.Is(err, berrors.ErrTimeout) {
			return &Error{Kind: ErrDamaged, Message: fmt.Sprintf("data file %s is empty: it was cut off, or its "+
				"making was interrupted", path),
				Hint: "restore it from a copy, or remove it when nothing was stored yet"}
		}
		return openError(dir, path, err)
	}
	defer func() { _ = guard(db.Close) }()
	if err := guard(func() error { return checkStructure(file) }); err != nil {
		return openError(dir, path, err)
	}
	return nil
}

// oldCopy is the suffix of the copy of a data file that is made before an upgrade: state.db.schema2.
const oldCopy = ".schema"

// keepOld copies a data file of an older schema, unless an earlier attempt did, and returns the copy's name; "" if the
// file is new or has the present schema.
func (s *Bolt) keepOld(dir string) (from int, backup string, err error) {
	tx, err := s.begin(false)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = tx.Rollback() }() // a read transaction has nothing to lose
	err = guard(func() error {
		if k, _ := tx.Cursor().First(); k == nil {
			return nil
		}
		from, err = readSchema(dir, tx)
		if err != nil || from == Schema {
			return err
		}
		if s.opts.Upgrade == UpgradeRefused {
			return &Error{Kind: ErrSchema, Message: fmt.Sprintf("data folder %s was made by an older memhost (schema %d, "+
				"this one writes %d)", dir, from, Schema), Hint: "upgrade it first: memhost upgrade (memhost run does it, too)"}
		}
		backup = s.path + oldCopy + strconv.Itoa(from)
		if _, err := os.Stat(backup); err == nil {
			return nil
		}
		return copyTo(tx, backup)
	})
	return from, backup, err
}

// copyTo writes a transaction's view of the data file to a new file, atomically.
func copyTo(tx *bbolt.Tx, path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), DataFile+unfinished)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = tx.WriteTo(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// removeOld removes the copy that keepOld made.
func (s *Bolt) removeOld() {
	if s.opts.Upgrade != UpgradeAndServe {
		return
	}
	for n := oldestSchema; n < Schema; n++ {
		_ = os.Remove(s.path + oldCopy + strconv.Itoa(n))
	}
}

// openSchema reads the schema of the file, and creates the buckets of a new one.
func (s *Bolt) openSchema(dir string) error {
	from, backup, err := s.keepOld(dir)
	if err != nil {
		return openError(dir, s.path, err)
	}
	tx, err := s.begin(true)
	if err != nil {
		return openError(dir, s.path, err)
	}
	changed := false
	err = guard(func() error {
		if k, _ := tx.Cursor().First(); k == nil {
			changed = true
			return createBuckets(tx)
		}
		n, err := readSchema(dir, tx)
		if err != nil || n == Schema {
			return err
		}
		changed = true
		return putSchema(tx)
	})
	if err == nil && changed {
		err = guard(tx.Commit)
	} else {
		s.rollback(tx)
	}
	if err != nil {
		return openError(dir, s.path, err)
	}
	if backup != "" && s.opts.OnUpgrade != nil {
		s.opts.OnUpgrade(from, backup)
	}
	return nil
}

func createBuckets(tx *bbolt.Tx) error {
	for _, name := range []string{bucketKV, bucketLogs, bucketNames, bucketUsage, bucketTables, bucketMeta} {
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return err
		}
	}
	return putSchema(tx)
}

func putSchema(tx *bbolt.Tx) error {
	return tx.Bucket([]byte(bucketMeta)).Put([]byte(keySchema), []byte(strconv.Itoa(Schema)))
}

// readSchema returns the schema of the file.
//
// Errors: ErrSchema for one that cannot be read, ErrDamaged.
func readSchema(dir string, tx *bbolt.Tx) (int, error) {
	var text string
	if meta := tx.Bucket([]byte(bucketMeta)); meta != nil {
		text = string(meta.Get([]byte(keySchema)))
	}
	n, err := strconv.Atoi(text)
	switch {
	case text == "":
		n = 0
	case err != nil || n < 0:
		return 0, damaged("its schema is %q, want a number", text)
	}
	switch {
	case n > Schema:
		return 0, &Error{Kind: ErrSchema, Message: fmt.Sprintf("data folder %s was made by a newer memhost (schema %d, "+
			"this one reads %d)", dir, n, Schema),
			Hint: "use that version or another --data folder"}
	case n < oldestSchema:
		return 0, &Error{Kind: ErrSchema, Message: fmt.Sprintf("data folder %s was made by an older memhost (schema %d, "+
			"this one reads %d), and there is no migration from it", dir, n, Schema),
			Hint: "use that version or another --data folder"}
	}
	return n, nil
}

// openError explains why the data folder could not be opened.
func openError(dir, path string, err error) error {
	var e *Error
	switch {
	case errors.As(err, &e):
		if e.Kind == ErrDamaged {
			return &Error{Kind: ErrDamaged, Message: fmt.Sprintf("data file %s is damaged: %s", path, e.Message),
				Hint: damageHint, Cause: e.Cause}
		}
		return err
	case errors.Is(err, berrors.ErrTimeout):
		return ownedError(dir, err)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum),
		errors.Is(err, berrors.ErrVersionMismatch),
		strings.Contains(err.Error(), "file size too small"): // bbolt has no error variable for this one
		return &Error{Kind: ErrDamaged, Message: fmt.Sprintf("data file %s is not a database of memhost, or its "+
			"beginning is damaged: %s", path, err), Hint: damageHint, Cause: err}
	default:
		return &Error{Kind: ErrFolder, Message: fmt.Sprintf("data folder %s cannot be used: %s", dir, err),
			Hint: cmp.Or(hintFor(err), "use another --data folder"), Cause: err}
	}
}

func ownedError(dir string, cause error) error {
	e := &Error{Kind: ErrOwned, Message: fmt.Sprintf("data folder %s belongs to another process", dir),
		Hint:  "if that is a slot that is starting, try again; otherwise wait until it ends, or use another --data folder",
		Cause: cause}
	if info, err := ReadSlot(dir); err == nil {
		e.Owner, e.Hint = &info, "talk to that slot (--server), stop it, or use another --data folder"
		e.Message += fmt.Sprintf(": pid %d, a slot at %s, says its %s", info.PID, info.Address, SlotFile)
	}
	return e
}
