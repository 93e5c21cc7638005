package run

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/simulate/simulatetest"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/fakes/graphiti"
	"github.com/memhost/memhost/plugins"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// looks is a slot that answers Readiness with one answer after another, and then repeats the last.
type looks struct {
	slot
	list []*abi.BackendReadiness
	next int
}

func (s *looks) Readiness(context.Context, *abi.ReadinessRequest) (*abi.BackendReadiness, error) {
	now := s.list[min(s.next, len(s.list)-1)]
	s.next++
	return now, nil
}

func TestAWaitLastsUntilNoEventIsOutstanding(t *testing.T) {
	ready := &abi.BackendReadiness{Status: abi.ReadinessReady}
	unknown := &abi.BackendReadiness{Status: abi.ReadinessUnknown}
	failing := &abi.BackendReadiness{Status: abi.ReadinessFailed, EventIDs: abi.ReadinessEventIDs{Failed: []string{"a"},
		Pending: []string{"b"}}}
	failed := &abi.BackendReadiness{Status: abi.ReadinessFailed, EventIDs: abi.ReadinessEventIDs{Failed: []string{"a", "b"}}}
	stalled := &abi.BackendReadiness{Status: abi.ReadinessDegraded, EventIDs: abi.ReadinessEventIDs{Pending: []string{"b"}}}
	for name, c := range map[string]struct {
		lab         string
		answers     []*abi.BackendReadiness
		asked       int
		outstanding bool
	}{
		"ready at once":                  {"", []*abi.BackendReadiness{ready}, 1, false},
		"unknown, then ready":            {"", []*abi.BackendReadiness{unknown, ready}, 2, false},
		"one failed, the other pending":  {"", []*abi.BackendReadiness{failing, failed}, 2, false},
		"stalled, then ready":            {"", []*abi.BackendReadiness{stalled, ready}, 2, false},
		"unknown to the end":             {"", []*abi.BackendReadiness{unknown}, 3, true},
		"stalled to the end":             {"", []*abi.BackendReadiness{stalled}, 3, true},
		"a cassette has one answer only": {"cassettes: true\n", []*abi.BackendReadiness{unknown, ready}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &looks{list: c.answers}
			p := &persona{cell: &cell{runner: &runner{}, slot: s}}
			p.Run = &rundir.Run{Lab: labOf(t, c.lab+"readiness: {timeout_ms: 1500}\nproviders: [no_memory]\n")}
			r := new(journal.Readiness)
			require.NoError(t, (&testSession{persona: p}).await(t.Context(), r))
			assert.Equal(t, c.asked, s.next)
			assert.Equal(t, c.outstanding, r.Outstanding())
		})
	}
}

// A model's broken answer ends the worker of Graphiti's REST service, which still accepts events. A slow one looks the
// same from outside, so readiness is unknown after stall_s.
func TestAWorkerThatMayBeDeadIsWaitedForAndFlagged(t *testing.T) {
	path, p := simulatetest.Synth(t, map[string]string{"personas": "1", "sessions": "1", "turns": "1"})
	for name, c := range map[string]struct {
		breaks  func(*graphiti.Server)
		limit   string
		pending bool
	}{
		"dead": {func(s *graphiti.Server) { s.FailExtraction(1) }, "2500", true},
		"slow": {func(s *graphiti.Server) {
			s.Hold(true)
			time.AfterFunc(2500*time.Millisecond, func() { s.Hold(false) })
		}, "60000", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend := graphiti.New(graphiti.Options{})
			server := httptest.NewServer(backend.REST())
			defer server.Close()
			o := options(t, p)
			o.Provider = func(*lab.Provider) (host.ProviderConfig, error) {
				m, ok := plugins.Find("graphiti")
				require.True(t, ok)
				return host.ProviderConfig{Name: "graphiti", Module: m.Wasm, Source: "builtin",
					Block: abi.Raw(`{"surface":"rest","stall_s":1,"url":"` + server.URL + `"}`)}, nil
			}
			o.Progress = func(now Progress) {
				if now.Done == 1 {
					c.breaks(backend)
				}
			}
			folder := filepath.Join(t.TempDir(), "run")
			r, err := Begin(folder, labOf(t, "readiness: {timeout_ms: "+c.limit+"}\nproviders: [graphiti]\nbudgets: [200]"),
				path, p, o)
			require.NoError(t, err)
			require.NoError(t, Go(t.Context(), folder, r, p, o))
			waits := 0
			for _, l := range lines(t, folder, r.Cells[0]) {
				if l.Kind == journal.KindRecord {
					assert.Equal(t, abi.StatusQueued, l.Record.Status, "nothing is called stored before it is")
				}
				if l.Kind == journal.KindReadiness && l.Readiness.Purpose == "test_session" {
					waits++
					assert.Equal(t, c.pending, l.Readiness.TimedOut)
					assert.Equal(t, c.pending, len(l.Readiness.Events.Unknown) > 0)
				}
				if l.Kind == journal.KindClosed {
					assert.Equal(t, c.pending, l.Closed.Pending)
				}
			}
			assert.Equal(t, 1, waits)
		})
	}
}
