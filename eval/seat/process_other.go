//go:build !unix

package seat

import "os/exec"

// ownGroup does nothing here: a program's descendants are not killed with it.
func ownGroup(*exec.Cmd) {}

// killGroup kills a started program.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// interrupt ends a program: there is no signal that asks.
func interrupt(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
