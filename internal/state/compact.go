package state

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"go.etcd.io/bbolt"
)

// compactBytes is the size of the transactions that write the new file.
const compactBytes = 16 << 20

// Compact writes the data file in a folder anew, with full pages and without free ones, and replaces the old one. It
// returns the file's size before and after. No slot may use the folder at the same time. The new file is complete and on
// disk before it gets its name, so after a crash there is the old file or the new one; the next Open removes what else
// is left. The disk needs room for both.
//
// Errors: those of Open; ErrSchema also for a file of an older schema; ErrUnavailable if the new file cannot be
// written. In these cases the old file stays.
func Compact(dir string) (before, after int64, err error) {
	s, err := Open(dir, Options{Upgrade: UpgradeRefused})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	before, after, err = s.compact()
	return before, after, s.fail("compact", err)
}

func (s *Bolt) compact() (before, after int64, err error) {
	old, err := s.file.Stat()
	if err != nil {
		return 0, 0, err
	}
	f, err := os.CreateTemp(filepath.Dir(s.path), DataFile+unfinished)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	if err := errors.Join(f.Close(), s.copyCompact(f.Name())); err != nil {
		return 0, 0, err
	}
	compacted, err := os.Stat(f.Name())
	if err != nil {
		return 0, 0, err
	}
	if runtime.GOOS == "windows" { // which does not replace an open file, nor one that another process opens at that moment
		if err := s.Close(); err != nil {
			return 0, 0, err
		}
	}
	if err := os.Rename(f.Name(), s.path); err != nil {
		return 0, 0, err
	}
	if folder, err := os.Open(filepath.Dir(s.path)); err == nil { // as in wholefile.WriteDurable
		_ = folder.Sync()
		_ = folder.Close()
	}
	return old.Size(), compacted.Size(), nil
}

// copyCompact writes everything that the store holds to an empty file, and checks that file's structure.
func (s *Bolt) copyCompact(path string) (err error) {
	db, file, err := openBolt(path, s.opts.LockTimeout, bbolt.Options{NoSync: true, NoStatistics: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, guard(db.Close)) }()
	if err := guard(func() error { return bbolt.Compact(db, s.db, compactBytes) }); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return guard(func() error { return checkStructure(file) })
}
