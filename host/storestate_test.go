package host_test

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/logs"
)

func TestTheStoresStateTellsOfOpenEvents(t *testing.T) {
	s, b, clock := host.ScriptedSlot(t, host.Options{NoReadinessPolls: true})
	ctx := context.Background()
	state := func() (queued, pending, lost int64, oldest time.Duration) {
		t.Helper()
		is := host.HostOf(s).StoreState(ctx)
		require.NotNil(t, is.Open)
		require.NotNil(t, is.Open.Oldest)
		require.Positive(t, *is.Bytes)
		require.Nil(t, is.Connections, "it is a file")
		return is.Open.Queued, is.Open.Pending, is.Open.Lost, *is.Open.Oldest
	}
	is := func(wantQueued, wantPending, wantLost int64, wantOldest time.Duration) {
		t.Helper()
		queued, pending, lost, oldest := state()
		require.Equal(t, []any{wantQueued, wantPending, wantLost, wantOldest}, []any{queued, pending, lost, oldest.Round(time.Second)})
	}
	host.RunCommands(t, s, "at once", "echo x")
	is(0, 0, 0, 0)
	host.RunCommands(t, s, "1", "echo ask-1; status queued")
	clock.Add(90 * time.Second)
	host.RunCommands(t, s, "2", "echo ask-2; status pending")
	is(1, 1, 0, 90*time.Second)
	b.Set(func() { b.Ready = `{"status":"pending","event_ids":{"lost":["1"],"pending":["2"]},"method":"script"}` })
	_, err := s.Readiness(ctx, &abi.ReadinessRequest{Scope: host.TestScope})
	require.NoError(t, err)
	clock.Add(10 * time.Second)
	is(0, 1, 1, 10*time.Second)
}

// Decisions about memory are logged, with who made them and the result, but without any text.
func TestDecisionsLeaveALineInTheLog(t *testing.T) {
	var log logs.Buffer
	h := host.Open(t, host.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Info})})
	s := host.OpenSlot(t, h, host.ProbeConfig(`{}`))
	require.NotContains(t, log.String(), "decision", "a smoke test decides nothing")
	ctx := host.WithDoor(context.Background(), "http")
	_, err := s.RecordEvent(ctx, host.Event("e1", "echo Zorvex"))
	require.NoError(t, err)
	_, err = s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "the secret plan"})
	require.NoError(t, err)
	_, err = s.ResetScope(host.WithDoor(ctx, host.OriginPage), host.TestScope)
	require.Error(t, err)
	_, err = s.SetMode(context.Background(), &abi.AdapterMode{Reason: "over"})
	require.NoError(t, err)
	_, err = s.Forget(ctx, &abi.ForgetRequest{Scope: host.TestScope, EventIDs: []string{"e1"}, Reason: "Zorvex is private"})
	require.NoError(t, err)
	text := log.String()
	for _, line := range []string{
		"decision: operation=set_mode result=done door=http read_only=true",
		"decision: operation=reset_scope result=read_only door=page run_id=run persona_id=persona",
		"decision: operation=set_mode result=done door=program read_only=false",
		"decision: operation=forget result=done door=http run_id=run persona_id=persona",
	} {
		require.Contains(t, text, line)
	}
	require.NotContains(t, text, "Zorvex")
	require.NotContains(t, text, "secret plan")
}

func TestWhatTheWallSkippedIsObserved(t *testing.T) {
	var seen []host.Observation
	h := host.Open(t, host.Options{Observe: func(o host.Observation) { seen = append(seen, o) }})
	s := host.OpenSlot(t, h, host.ProbeConfig(`{}`))
	ctx := context.Background()
	_, err := s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	seen = nil
	_, err = s.RecordEvents(ctx, &abi.EventBatch{Events: []abi.MemoryEvent{*host.Event("e1", "echo x"), *host.Event("e2", "echo y")}})
	require.NoError(t, err)
	require.Len(t, seen, 1)
	require.Equal(t, 2, seen[0].Skipped)
}
