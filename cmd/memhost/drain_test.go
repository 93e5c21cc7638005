//go:build unix

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/client"
)

// slowBackend answers when it is released. arrived is closed when the first call has arrived.
type slowBackend struct {
	*httptest.Server
	arrived, release chan struct{}
	once             sync.Once
}

func newSlowBackend(t *testing.T) *slowBackend {
	b := &slowBackend{arrived: make(chan struct{}), release: make(chan struct{})}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.once.Do(func() { close(b.arrived) })
		select {
		case <-b.release:
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte(`{"late": true}`))
	}))
	t.Cleanup(b.Close)
	return b
}

// serveProbe starts a slot whose provider calls the backend, and a call that is in progress when it returns.
func serveProbe(m memhost, b *slowBackend) (slot *slotProcess, called <-chan error, folder string) {
	m.probe(b.URL)
	slot = m.serve()
	c, err := client.New(slot.url, "")
	require.NoError(m.t, err)
	answer := make(chan error, 1)
	go func() {
		_, err := c.Retrieve(context.Background(),
			&abi.RetrieveRequest{Query: "http get", Scope: abi.MemoryScope{RunID: "r", PersonaID: "u"}, SessionID: "s"})
		answer <- err
	}()
	<-b.arrived
	return slot, answer, filepath.Join(m.dir, "data")
}

func testDrain(t *testing.T, m memhost) {
	b := newSlowBackend(t)
	slot, called, folder := serveProbe(m, b)
	require.NoError(t, slot.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-called:
		t.Fatalf("the call ended early: %v", err)
	default:
	}
	close(b.release)
	require.NoError(t, <-called)
	require.NoError(t, slot.Wait())
	require.NoFileExists(t, filepath.Join(folder, "slot.json"))
}

func testSecondSignal(t *testing.T, m memhost) {
	b := newSlowBackend(t)
	slot, called, folder := serveProbe(m, b)
	ended := make(chan struct{})
	go func() {
		_ = slot.Wait()
		close(ended)
	}()
	for { // repeat until it ends, as people do; signals that follow too quickly are merged
		_ = slot.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		default:
			continue
		}
		break
	}
	require.Equal(t, 130, slot.ProcessState.ExitCode())
	require.Error(t, <-called)
	require.NoFileExists(t, filepath.Join(folder, "slot.json"))
}
