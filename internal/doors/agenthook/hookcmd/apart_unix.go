//go:build unix

package hookcmd

import (
	"os/exec"
	"syscall"
)

// apart makes a command outlive the process that starts it: it gets a session of its own, so a signal to the starter's
// group does not reach it.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
