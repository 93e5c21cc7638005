package alone

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// lockFile is the file to lock: Windows cannot lock a folder.
const lockFile = ".lock"

// Wait waits until no other process has locked the folder, and holds the lock until done is called. A folder that
// cannot be locked is treated as free.
func Wait(folder string) (done func()) {
	done, _ = lock(folder, windows.LOCKFILE_EXCLUSIVE_LOCK)
	return done
}

// Try is Wait without waiting: ok is false, and done nil, if another process holds the lock.
func Try(folder string) (done func(), ok bool) {
	done, err := lock(folder, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		done()
		return nil, false
	}
	return done, true
}

func lock(folder string, how uint32) (done func(), err error) {
	f, err := os.OpenFile(filepath.Join(folder, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return func() {}, err
	}
	return func() { _ = f.Close() }, windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, new(windows.Overlapped))
}
