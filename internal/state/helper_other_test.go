//go:build !linux

package state

import "fmt"

func runPlatformHelper(name, _ string) error { return fmt.Errorf("there is no helper %q", name) }
