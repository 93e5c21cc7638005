package testenv

import (
	"context"
	"os"
	"testing"
)

// Mem0Server starts mem0 for a test and ends it afterwards.
func Mem0Server(t testing.TB) *Mem0 {
	t.Helper()
	m, err := newForTest(t).StartMem0(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// newForTest makes an Env whose progress goes to standard error and that ends with the test. What a failed test left in
// the logs stays, and its path is shown.
func newForTest(t testing.TB) *Env {
	t.Helper()
	e, err := New(Options{Out: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			e.keep = true
			t.Logf("logs of the servers: %s", e.Logs())
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// ForTest starts a backend by name for a test and ends it afterwards.
func ForTest(t testing.TB, name string) *Backend {
	t.Helper()
	b, err := Start(context.Background(), newForTest(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
