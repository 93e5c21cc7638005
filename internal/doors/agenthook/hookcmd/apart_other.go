//go:build !unix

package hookcmd

import "os/exec"

// apart makes a command outlive the process that starts it. Here that needs nothing.
func apart(*exec.Cmd) {}
