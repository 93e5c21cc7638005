package run

import (
	"context"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/internal/telemetry"
	"github.com/memhost/memhost/internal/test/collector"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
)

// spansOf returns the spans of one process that runs a run, and is interrupted after a number of steps (0: never).
func spansOf(t *testing.T, o Options, stopAfter int, process func(context.Context, Options) error) []collector.Span {
	t.Helper()
	c := collector.New(t)
	tracer := telemetry.New(telemetry.Options{Endpoint: c.URL, SamplePercent: 100, Every: time.Millisecond})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	o.Host.Tracer = tracer
	o.Progress = func(now Progress) {
		if stopAfter > 0 && now.Done == stopAfter {
			stop()
		}
	}
	err := process(ctx, o)
	if stopAfter == 0 {
		require.NoError(t, err)
	} else {
		require.ErrorIs(t, err, context.Canceled)
	}
	tracer.Close(10 * time.Second)
	_, lost := tracer.Counts()
	require.Zero(t, lost)
	return c.Spans()
}

// TestARunIsOneTrace: run, cell, session, probe, and the native calls below; earlier work is not reported again.
func TestARunIsOneTrace(t *testing.T) {
	path, p := synthetic(t)
	server := httptest.NewServer(mem0.New(mem0.Options{}))
	t.Cleanup(server.Close)
	o := options(t, p)
	o.Provider = mem0At(t, server.URL)
	run := filepath.Join(t.TempDir(), "run")
	r, err := Begin(run, labOf(t, "providers: [mem0]\nbudgets: [200]"), path, p, o)
	require.NoError(t, err)
	work := func(ctx context.Context, o Options) error { return Go(ctx, run, r, p, o) }
	first := spansOf(t, o, (p.Manifest.Counts.Events+p.Manifest.Counts.Probes)/2, work)
	spans := spansOf(t, o, 0, work)

	assert.Equal(t, "interrupted", collector.One(t, first, spanRun).Failure)
	assert.Equal(t, "interrupted", collector.One(t, first, spanCell).Failure)
	root := collector.One(t, spans, spanRun)
	assert.Empty(t, root.Parent)
	assert.Equal(t, r.LabSHA256, root.Attributes["memhost.eval.lab_sha256"])
	cell := collector.One(t, spans, spanCell)
	assert.Equal(t, root.ID, cell.Parent)
	assert.Equal(t, "mem0", cell.Attributes["memhost.eval.label"])
	by := map[string]collector.Span{}
	for _, s := range spans {
		by[s.ID] = s
	}
	calls := 0
	for _, call := range collector.Named(spans, "POST /search") {
		var names []string
		for s := call; s.Parent != ""; s = by[s.Parent] {
			names = append(names, by[s.Parent].Name)
		}
		if len(names) > 2 && names[2] == spanProbe {
			assert.Equal(t, []string{"plugin", abi.OpRetrieve, spanProbe, spanSession, spanCell, spanRun}, names)
			calls++
		}
	}
	probes := func(spans []collector.Span) (n int) {
		for _, s := range collector.Named(spans, spanProbe) {
			if s.Failure == "" {
				n++
			}
		}
		return n
	}
	assert.Equal(t, probes(spans), calls, "each probe has its native call")
	assert.Equal(t, p.Manifest.Counts.Probes, probes(first)+probes(spans), "no probe is told twice")
	assert.Less(t, len(collector.Named(spans, spanSession)), p.Manifest.Counts.Sessions)
	for _, s := range append(first, spans...) {
		for i := range p.Manifest.Personas {
			assert.NotContains(t, fmt.Sprint(s.Name, s.Attributes), p.Manifest.Personas[i].PersonaID)
		}
	}
}

// muteAgent is an agent that never answers.
type muteAgent struct{}

func (muteAgent) Answer(context.Context, *pack.Probe, string, func([]byte) (string, error)) (*journal.Answer, error) {
	return nil, abi.NewError(abi.CodeInvalidArgument, "no word")
}

// TestAnAgentsAnswerIsASpan next to the probe that it answers.
func TestAnAgentsAnswerIsASpan(t *testing.T) {
	path, p := synthetic(t)
	o := options(t, p)
	o.Agent = muteAgent{}
	run := filepath.Join(t.TempDir(), "run")
	r, err := Begin(run, labOf(t, "providers: [full_history]\nbudgets: [200]"), path, p, o)
	require.NoError(t, err)
	spans := spansOf(t, o, 0, func(ctx context.Context, o Options) error { return Go(ctx, run, r, p, o) })
	answers := collector.Named(spans, spanAnswer)
	assert.Len(t, answers, p.Manifest.Counts.Probes)
	for _, s := range answers {
		assert.Equal(t, "invalid_argument", s.Failure)
	}
}
