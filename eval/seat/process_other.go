//go:build !unix

package seat

import "os/exec"

// ownGroup does nothing on this system: a program's descendants are not killed with it.
func ownGroup(*exec.Cmd) {}

// killGroup kills a started program.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// interrupt kills a program: this system has no signal that asks it to end.
func interrupt(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
