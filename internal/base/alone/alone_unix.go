//go:build linux || darwin

package alone

import (
	"errors"
	"os"
	"syscall"
)

// Wait waits until no other process has locked the folder, and holds the lock until done is called. A folder that
// cannot be locked is treated as free.
func Wait(folder string) (done func()) {
	done, _ = lock(folder, syscall.LOCK_EX)
	return done
}

// Try is Wait without waiting: ok is false, and done nil, if another process holds the lock.
func Try(folder string) (done func(), ok bool) {
	done, err := lock(folder, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		done()
		return nil, false
	}
	return done, true
}

func lock(folder string, how int) (done func(), err error) {
	f, err := os.Open(folder)
	if err != nil {
		return func() {}, err
	}
	return func() { _ = f.Close() }, syscall.Flock(int(f.Fd()), how)
}
