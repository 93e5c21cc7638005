//go:build linux || darwin

package registry

import (
	"os"
	"path/filepath"
	"syscall"
)

// alone waits until no other process changes the file, and keeps it so until the returned function is called. The
// folder is locked, since the file is replaced as a whole. Where it cannot be, the last one to write wins.
func alone(path string) (done func()) {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return func() {}
	}
	_ = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX)
	return func() { _ = folder.Close() }
}
