//go:build !unix

package hookcmd

import "os/exec"

// apart makes a command outlive the process that starts it. On this system nothing has to be done for that.
func apart(*exec.Cmd) {}
