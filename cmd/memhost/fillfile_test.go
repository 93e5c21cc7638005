//go:build unix

package main

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/brief"
)

// TestAFillFromAFileThatIsKilledArrivesOnce is TestAFillThatIsKilledArrivesOnce with `memhost swap MEMORY --backfill
// FILE` and without an archive: what callers record is queued for the memory. The slot is also killed while it receives
// the file's events, and the command is killed as soon as the fill has started.
func TestAFillFromAFileThatIsKilledArrivesOnce(t *testing.T) {
	brief.Leave(t)
	fillEach(t, true)
}

// killGiving kills the slot after it has received a part of the events. These differ from those in the file: none of
// them may arrive.
func (r *fillRun) killGiving() {
	part := &report.BackfillEvents{First: true}
	for n := range 50 {
		part.Events = append(part.Events, *fillEvent(fmt.Sprintf("Zorvex8%06d", n), "p0000", n))
	}
	_, err := r.client.BackfillEvents(r.t.Context(), part)
	require.NoError(r.t, err)
	r.kill("given a part")
	r.start()
}

// beginFromFile runs the command until the fill has started, and kills it: the fill continues without it.
func (r *fillRun) beginFromFile() *report.Backfill {
	cmd := r.m.command("swap", r.fillCase.memory, "--backfill", r.file(), "--rate", fmt.Sprint(r.size.rate))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(r.t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		_ = cmd.Process.Kill()
		<-ended
	}()
	for {
		b, err := r.client.BackfillStatus(r.t.Context())
		require.NoError(r.t, err)
		if b.State != report.FollowerNone || r.serves() {
			return b
		}
		select {
		case err := <-ended:
			ended <- err
			require.True(r.t, err == nil && r.serves(), "the command ended before the fill began: %v\n%s", err, &said)
		case <-time.After(r.pause()):
		}
	}
}
