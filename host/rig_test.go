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
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testguest"
	"github.com/stretchr/testify/require"
)

// This is the rig of the tests of host, from outside the package and from inside. What begins with a capital letter and
// is no test is for those from outside.

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

// Open opens a host on a folder and closes it with the test.
func Open(t testing.TB, o Options) *Host {
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
	AddSlack(h)
	return h
}

// AddSlack gives each operation of a host another minute: the probe's limit is a second, which is short on a busy
// machine. What happens to a spinning guest is tested with an impatient host. Call Patient before opening a slot.
func AddSlack(h *Host) { h.slack = time.Minute }

func Impatient(h *Host) *Host {
	h.slack = 0
	return h
}

// HostOf returns the host of a slot.
func HostOf(s *Slot) *Host { return s.host }

// Stored returns what the host of a slot keeps in a table.
func Stored(t testing.TB, s *Slot, table state.Table) []state.KeyValue {
	t.Helper()
	records, err := s.host.store.Records(context.Background(), table, nil, nil, 0)
	require.NoError(t, err)
	return records
}

// BreakCassette makes every write to a slot's cassette fail.
func BreakCassette(t testing.TB, s *Slot) {
	t.Helper()
	require.NoError(t, s.host.tape.File().Close())
}

// Drained waits until the providers that a slot swapped out are closed.
func Drained(s *Slot) { s.drains.Wait() }

// OpenSlot opens a slot on a host and closes it before the host.
func OpenSlot(t testing.TB, h *Host, c ProviderConfig) *Slot {
	t.Helper()
	s, err := h.Open(context.Background(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

// ProbeModule is the guest that most tests use: TestAnExtismModuleKeepsEveryPromise replaces it.
var ProbeModule = testguest.Probe()

func ProbeConfig(block string) ProviderConfig {
	return ProviderConfig{Name: "probe", Module: ProbeModule, Source: "builtin", Block: abi.Raw(block)}
}

// ProbeSlot returns a slot with the probe, on its own host.
func ProbeSlot(t testing.TB, block string) *Slot {
	t.Helper()
	return OpenSlot(t, Open(t, Options{}), ProbeConfig(block))
}

var TestScope = abi.MemoryScope{RunID: "run", PersonaID: "persona"}

// Event is a turn of the test scope with one user message.
func Event(id, text string) *abi.MemoryEvent {
	return &abi.MemoryEvent{EventID: id, RunID: TestScope.RunID, UserID: TestScope.PersonaID, SessionID: "s1",
		TurnID:    id,
		Timestamp: "2026-01-02T03:04:05+01:00", Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}}
}

func Ask(query string) *abi.RetrieveRequest {
	return &abi.RetrieveRequest{Query: query, Scope: TestScope, SessionID: "s2"}
}

// RunCommands records commands and returns the result of each.
func RunCommands(t testing.TB, s *Slot, id, commands string) []string {
	t.Helper()
	r, err := s.RecordEvent(context.Background(), Event(id, commands))
	require.NoError(t, err, commands)
	return r.Markers
}

// Retrieved retrieves with commands and returns the result of each.
func Retrieved(t testing.TB, s *Slot, commands string) []string {
	t.Helper()
	r, err := s.Retrieve(context.Background(), Ask(commands))
	require.NoError(t, err, commands)
	said := make([]string, len(r.Raw.Calls))
	for i, c := range r.Raw.Calls {
		require.NoError(t, json.Unmarshal(c.Body, &said[i]))
	}
	return said
}

// RequireCode requires an error with a code whose text contains all parts.
func RequireCode(t testing.TB, err error, code abi.Code, parts ...string) *abi.Error {
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

// RequireUsable requires that the slot works as if nothing had happened.
func RequireUsable(t testing.TB, s *Slot, id string) {
	t.Helper()
	require.Equal(t, []string{"fine"}, RunCommands(t, s, id, "echo fine"))
	require.Equal(t, []string{"fine"}, Retrieved(t, s, "echo fine"))
}
