package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/extism"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testguest"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if work := os.Getenv(childEnv); work != "" {
		if err := writer(work); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if work := os.Getenv(forgetterEnv); work != "" {
		if err := forgetter(work); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testcache.Run(m)
}

// open opens a host on a folder and closes it with the test.
func open(t testing.TB, o Options) *Host {
	t.Helper()
	if o.DataDir == "" {
		o.DataDir = t.TempDir()
	}
	if o.CacheDir == "" {
		o.CacheDir = testcache.Dir()
	}
	if o.Durability == "" {
		o.Durability = "process" // no test switches the power off
	}
	o.Engines = []Engine{extism.Engine()}
	h, err := New(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close(context.Background())) })
	patient(h)
	return h
}

// patient gives each operation of a host another minute: the probe's limit is a second, which is short on a busy
// machine. What happens to a spinning guest is tested with an impatient host. Call patient before opening a slot.
func patient(h *Host) { h.slack = time.Minute }

func impatient(h *Host) *Host {
	h.slack = 0
	return h
}

// openSlot opens a slot on a host and closes it before the host.
func openSlot(t testing.TB, h *Host, c ProviderConfig) *Slot {
	t.Helper()
	s, err := h.Open(context.Background(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

// probeModule is the guest that most tests use: TestAnExtismModuleKeepsEveryPromise replaces it.
var probeModule = testguest.Probe()

func probeConfig(block string) ProviderConfig {
	return ProviderConfig{Name: "probe", Module: probeModule, Source: "builtin", Block: abi.Raw(block)}
}

// probeSlot returns a slot with the probe, on its own host.
func probeSlot(t testing.TB, block string) *Slot {
	t.Helper()
	return openSlot(t, open(t, Options{}), probeConfig(block))
}

var testScope = abi.MemoryScope{RunID: "run", PersonaID: "persona"}

// event is a turn of the test scope with one user message.
func event(id, text string) *abi.MemoryEvent {
	return &abi.MemoryEvent{EventID: id, RunID: testScope.RunID, UserID: testScope.PersonaID, SessionID: "s1",
		TurnID:    id,
		Timestamp: "2026-01-02T03:04:05+01:00", Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}}
}

func ask(query string) *abi.RetrieveRequest {
	return &abi.RetrieveRequest{Query: query, Scope: testScope, SessionID: "s2"}
}

// told records commands and returns the result of each.
func told(t testing.TB, s *Slot, id, commands string) []string {
	t.Helper()
	r, err := s.RecordEvent(context.Background(), event(id, commands))
	require.NoError(t, err, commands)
	return r.Markers
}

// retrieved retrieves with commands and returns the result of each.
func retrieved(t testing.TB, s *Slot, commands string) []string {
	t.Helper()
	r, err := s.Retrieve(context.Background(), ask(commands))
	require.NoError(t, err, commands)
	said := make([]string, len(r.Raw.Calls))
	for i, c := range r.Raw.Calls {
		require.NoError(t, json.Unmarshal(c.Body, &said[i]))
	}
	return said
}

// requireCode requires an error with a code whose text contains all parts.
func requireCode(t testing.TB, err error, code abi.Code, parts ...string) *abi.Error {
	t.Helper()
	require.Error(t, err)
	var e *abi.Error
	require.True(t, errors.As(err, &e), "every error that crosses the slot is an *abi.Error, got %T", err)
	require.Equal(t, code, e.Code, "%v", e)
	for _, p := range parts {
		require.Contains(t, e.Message+" "+e.Hint, p)
	}
	return e
}

// requireUsable requires that the slot works as if nothing had happened.
func requireUsable(t testing.TB, s *Slot, id string) {
	t.Helper()
	require.Equal(t, []string{"fine"}, told(t, s, id, "echo fine"))
	require.Equal(t, []string{"fine"}, retrieved(t, s, "echo fine"))
}
