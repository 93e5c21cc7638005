//go:build linux || darwin

package alone

import (
	"errors"
	"os"
	"syscall"
)

// Wait waits until no other process has the folder, and keeps it until done is called. A folder that cannot be locked
// is everybody's.
func Wait(folder string) (done func()) {
	done, _ = lock(folder, syscall.LOCK_EX)
	return done
}

// Try is Wait for a caller that does not wait: ok is false, and done nil, if another process has the folder.
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
