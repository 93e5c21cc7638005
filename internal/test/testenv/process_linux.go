package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"runtime"
	"strconv"
	"syscall"
)

// processAttributes puts a process into a group of its own and lets it die with this one. With serverAccount, and when
// this process is root's, it runs as the account postgres, or as the account nobody if postgres does not exist.
func processAttributes(serverAccount bool) (*syscall.SysProcAttr, error) {
	attributes := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if serverAccount && os.Geteuid() == 0 {
		uid, gid, err := accountIDs()
		if err != nil {
			return nil, err
		}
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return attributes, nil
}

// accountIDs of the account for servers that refuse root.
func accountIDs() (uid, gid int, err error) {
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.Atoi(account.Uid)
		gid, err2 := strconv.Atoi(account.Gid)
		return uid, gid, errors.Join(err1, err2)
	}
	return 0, 0, fmt.Errorf("PostgreSQL refuses to run as root, and there is neither an account postgres nor nobody " +
		"here")
}

// run starts the process and waits for it, on one thread: the signal on a parent's death comes when that thread ends,
// not the program.
func (p *process) run(out *os.File, started chan<- error) {
	runtime.LockOSThread()
	err := p.cmd.Start()
	started <- err
	if err == nil {
		_ = p.cmd.Wait() // ProcessState has how it ended
	}
	_ = out.Close()
	close(p.done)
}

// killGroup kills what is left of a process's group.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// tryLock takes the file's lock, or fails at once if another process has it.
func tryLock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// lock takes the file's lock, waiting for another run that installs the same.
func lock(file *os.File) error { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX) }
