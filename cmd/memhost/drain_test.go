//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/client"
	"github.com/memhost/memhost/internal/testguest"
)

// slowBackend answers when it is let. arrived is closed when the first call has come in.
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

// serveProbe starts a slot whose provider asks the backend, and a call that is under way when it returns.
func serveProbe(t *testing.T, cache string, b *slowBackend) (slot *exec.Cmd, called <-chan error, folder string) {
	m := newMemhost(t, cache)
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "probe.wasm"), testguest.Probe(), 0o600))
	yaml := fmt.Sprintf("memory:\n  condition: probe\n  plugin: ./probe.wasm\n  conditions:\n    probe: {url: %s}\n", b.URL)
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "memhost.yaml"), []byte(yaml), 0o600))
	slot = m.command("run", "--listen", "127.0.0.1:0", "--json")
	out, err := slot.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, slot.Start())
	t.Cleanup(func() { _ = slot.Process.Kill() })
	var serving struct{ URL string }
	require.NoError(t, json.NewDecoder(out).Decode(&serving))
	c, err := client.New(serving.URL, "")
	require.NoError(t, err)
	answer := make(chan error, 1)
	go func() {
		_, err := c.Retrieve(context.Background(), &abi.RetrieveRequest{Query: "http get", Scope: abi.MemoryScope{RunID: "r", PersonaID: "u"}, SessionID: "s"})
		answer <- err
	}()
	<-b.arrived
	return slot, answer, filepath.Join(m.dir, "data")
}

func testDrain(t *testing.T, cache string) {
	b := newSlowBackend(t)
	slot, called, folder := serveProbe(t, cache, b)
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

func testSecondSignal(t *testing.T, cache string) {
	b := newSlowBackend(t)
	slot, called, folder := serveProbe(t, cache, b)
	ended := make(chan struct{})
	go func() {
		_ = slot.Wait()
		close(ended)
	}()
	for { // as people do: again until it ends. Signals that come too fast are one.
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
