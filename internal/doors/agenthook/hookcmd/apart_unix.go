//go:build unix

package hookcmd

import (
	"os/exec"
	"syscall"
)

// ownSession makes a command outlive the process that starts it: it gets its own session, so a signal to the starter's
// process group does not reach it.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
