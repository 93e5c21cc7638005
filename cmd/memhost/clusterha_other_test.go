//go:build unix && !linux

package main

import "testing"

func startPatroni(t *testing.T, _ string) database {
	t.Fatal("Patroni is started on Linux only")
	return nil
}
