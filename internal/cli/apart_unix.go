//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// apart makes a command outlive the one who starts it: it gets a session of its own, which no signal to the starter's
// group reaches.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
