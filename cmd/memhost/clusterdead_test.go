//go:build unix

package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/pgserver"
)

// TestADeadHostsScopeIsUsableAgain: a host is killed while it writes to a scope. Another host can write to the scope at
// most a second after the dead host's session ends. The event that had been sent may have to wait longer.
func TestADeadHostsScopeIsUsableAgain(t *testing.T) {
	brief.Skip(t)
	rounds := 1
	if os.Getenv("MEMHOST_CLUSTER_TIME") != "" {
		rounds = 5
	}
	c := startCluster(t, 2, plainDatabase{pgserver.Start(t)})
	other, err := client.New(c.url(1), "")
	require.NoError(t, err)
	defer other.Close()
	write := func(slot *client.Client, id string) (*abi.WriteReceipt, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		text := "deliver a b"
		return slot.RecordEvent(ctx, &abi.MemoryEvent{EventID: id, RunID: "r", UserID: scopeOf(id), SessionID: "s",
			TurnID: id, Timestamp: "2026-01-01T09:00:00Z", Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}})
	}
	until := func(id string) time.Time {
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			if r, err := write(other, id); err == nil && r.Status == abi.StatusCommitted {
				return time.Now()
			}
		}
		t.Fatalf("event %s was not recorded within a minute", id)
		return time.Time{}
	}
	for round := range rounds {
		sent, next := eventID(0, 2*round), eventID(0, 2*round+1)
		came, release := c.keeper.hold(sent)
		go func(url string) {
			if slot, err := client.New(url, ""); err == nil {
				defer slot.Close()
				_, _ = write(slot, sent) // its host dies
			}
		}(c.url(0))
		select {
		case <-came:
		case <-time.After(30 * time.Second):
			t.Fatal("nothing came to the backend")
		}
		require.NoError(t, c.process(0).Kill())
		killed := time.Now()
		state, err := other.Cluster(t.Context())
		require.NoError(t, err)
		var ends time.Time
		for _, h := range state.Hosts {
			if !h.Self {
				ends = time.Now().Add(time.Duration(*h.LeftMS) * time.Millisecond)
			}
		}
		require.False(t, ends.IsZero(), "the dead host's session has not ended")
		close(release)
		usable := until(next)
		settled := until(sent)
		t.Logf("killed; its session ended after %s, the scope was written %s later, the event that had been sent %s later",
			ends.Sub(killed).Round(time.Millisecond), usable.Sub(ends).Round(time.Millisecond),
			settled.Sub(ends).Round(time.Millisecond))
		require.Less(t, usable.Sub(ends), time.Second)
		c.restart(0)
	}
}
