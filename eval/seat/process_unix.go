//go:build unix

package seat

import (
	"os/exec"
	"syscall"
)

// ownGroup gives a program its own process group, so that it can be killed with its descendants.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a started program and what is left of its group.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// interrupt asks a program to end.
func interrupt(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGTERM) }
