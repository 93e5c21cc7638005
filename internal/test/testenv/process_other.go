//go:build !linux

package testenv

import (
	"errors"
	"os"
	"syscall"
)

var errLinux = errors.New("the live backends run on Linux only: their stores are Linux packages")

func processAttributes(bool) (*syscall.SysProcAttr, error) { return nil, errLinux }

func accountIDs() (uid, gid int, err error) { return 0, 0, errLinux }

func (p *process) run(out *os.File, started chan<- error) {
	_ = out.Close()
	started <- errLinux
	close(p.done)
}

func killGroup(int) {}

func lock(*os.File) error { return errLinux }

func tryLock(file *os.File) error { return lock(file) }
