//go:build !unix

package cli

import "os/exec"

// apart makes a command outlive the one who starts it. Here nothing has to be done for that.
func apart(*exec.Cmd) {}
