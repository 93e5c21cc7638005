package run

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/simulate/simulatetest"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// synthetic builds a small pack of made-up people.
func synthetic(t *testing.T) (string, *pack.Pack) {
	t.Helper()
	return simulatetest.Synth(t, map[string]string{"personas": "2", "sessions": "3", "turns": "2"})
}

func labOf(t *testing.T, text string) *lab.Lab {
	t.Helper()
	l, err := lab.Parse([]byte("lab: 1\npack: synth.pack\ntokenizer: bytes4\n" + text))
	require.NoError(t, err)
	return l
}

func TestMain(m *testing.M) { testcache.Run(m) }

// options resolve providers to built-in modules by name.
func options(t *testing.T, p *pack.Pack) Options {
	t.Helper()
	return Options{Now: time.Now, Logger: hclog.NewNullLogger(),
		Host: host.Options{CacheDir: testcache.Dir(), Version: "test"},
		Provider: func(entry *lab.Provider) (host.ProviderConfig, error) {
			m, ok := plugins.Find(entry.Name())
			require.True(t, ok, entry.Name())
			block := p.Conditions[entry.Name()]
			if block == nil {
				block = json.RawMessage("{}")
			}
			return host.ProviderConfig{Name: entry.Name(), Module: m.Wasm, Source: "builtin", Block: abi.Raw(block)},
				nil
		}}
}

// lines lists a cell's journal without anything that depends on time.
func lines(t *testing.T, run string, c *rundir.Cell) []journal.Line {
	t.Helper()
	var list []journal.Line
	for e, err := range journal.Read(filepath.Join(c.Folder(run), journal.Name)) {
		require.NoError(t, err)
		list = append(list, e.Line)
	}
	return list
}

func TestAnEvaluationNeverSendsAnEmptyEventAgain(t *testing.T) {
	path, p := synthetic(t)
	for retry, refused := range map[string]bool{"": false, host.RetryNever: false, host.RetryOnce: true} {
		run := filepath.Join(t.TempDir(), "run")
		o := options(t, p)
		provider := o.Provider
		o.Provider = func(entry *lab.Provider) (host.ProviderConfig, error) {
			config, err := provider(entry)
			config.RetryEmpty = retry
			return config, err
		}
		r, err := Begin(run, labOf(t, "providers: [no_memory]"), path, p, o)
		require.NoError(t, err)
		if err = Go(t.Context(), run, r, p, o); refused {
			require.ErrorContains(t, err, "memory.retry_empty")
		} else {
			require.NoError(t, err)
		}
	}
}

func TestASlotThatIsFedFromElsewhereIsNotEvaluated(t *testing.T) {
	path, p := synthetic(t)
	run := filepath.Join(t.TempDir(), "run")
	r, err := Begin(run, labOf(t, "providers: [no_memory]"), path, p, options(t, p))
	require.NoError(t, err)
	o := options(t, p)
	o.Host.Archive = true
	err = Go(t.Context(), run, r, p, o)
	require.ErrorContains(t, err, "keeps an archive")
	require.Equal(t, "fed", abi.AsError(err).Reason)

	followed := &report.RunManifest{Followers: []report.RunFollower{{Role: report.RoleShadow, Provider: "mem0"}}}
	require.ErrorContains(t, refuseFed(followed), "mem0 as a shadow")
	filled := &report.RunManifest{Steps: []report.RunStep{{Name: host.StepBackfill}}}
	require.ErrorContains(t, refuseFed(filled), "filled by a backfill")
	require.NoError(t, refuseFed(new(report.RunManifest)))
}

func TestACellIsWalkedAsTheProtocolSays(t *testing.T) {
	path, p := synthetic(t)
	run := filepath.Join(t.TempDir(), "run")
	r, err := Begin(run, labOf(t, "providers: [full_history, no_memory]\nbudgets: [200, 0]"), path, p, options(t, p))
	require.NoError(t, err)
	o := options(t, p)
	var last Progress
	o.Progress = func(p Progress) { last = p }
	require.NoError(t, Go(t.Context(), run, r, p, o))
	assert.Equal(t, last.Total, last.Done)
	r, err = rundir.Open(run)
	require.NoError(t, err)
	require.Len(t, r.Cells, 2)
	for _, c := range r.Cells {
		assert.Equal(t, rundir.Complete, c.State)
		assert.True(t, c.Alone)
		n, err := journal.Verify(filepath.Join(c.Folder(run), journal.Name), c.Head)
		require.NoError(t, err)
		assert.Positive(t, n)
	}
	var kinds []string
	for _, l := range lines(t, run, r.Cells[0]) {
		if l.PersonaID != "synth-01" || l.Session > 2 {
			continue
		}
		kind := string(l.Kind)
		if len(kinds) == 0 || kinds[len(kinds)-1] != kind {
			kinds = append(kinds, kind)
		}
		switch l.Kind {
		case journal.KindCanary:
			assert.Equal(t, abi.StatusSkippedReadOnly, l.Canary.Status)
		case journal.KindCanaryCheck:
			assert.False(t, l.CanaryCheck.Found)
		case journal.KindClosed:
			assert.Equal(t, "clean", l.Closed.Wall, l.Closed.Detail)
		case journal.KindProbe:
			require.Nil(t, l.Probe.Error)
			text, err := rundir.Contexts(run).Text(l.Probe.ContextSHA256)
			require.NoError(t, err)
			assert.Contains(t, string(text), "<memory-context")
		}
	}
	session := []string{"readiness", "inventory", "wall", "probe", "canary", "wall", "inventory", "closed"}
	second := append([]string{"record", "readiness", "canary_check"}, session[1:]...)
	assert.Equal(t, append(append([]string{"record"}, session...), second...), kinds)
}

// journalLines returns the lines of a journal as scoring sees them: without times, latencies and what a resumption
// adds.
func journalLines(t *testing.T, run string, c *rundir.Cell) []string {
	t.Helper()
	var list []string
	for _, l := range lines(t, run, c) {
		l.N, l.Prev, l.At = 0, "", ""
		switch l.Kind {
		case journal.KindDropped, journal.KindBegin, journal.KindWall:
			continue
		case journal.KindRecord:
			l.Record.LatencyMS, l.Record.IO, l.Record.Duplicate, l.Record.Warnings = 0, nil, false, nil
		case journal.KindReadiness:
			l.Readiness.WaitedMS = 0
		case journal.KindInventory:
			if l.Inventory.When == journal.Resumed {
				continue
			}
			if l.Inventory.Inventory != nil {
				l.Inventory.Inventory.Trace = nil
			}
		case journal.KindProbe:
			l.Probe.LatencyMS, l.Probe.Trace = 0, nil
		}
		text, err := json.Marshal(l)
		require.NoError(t, err)
		list = append(list, string(text))
	}
	return list
}

// TestAPoisonousEventDoesNotHoldUpACell: an event that a provider rejects, and one that fails on every attempt, are
// given up and journaled; the others are recorded as usual, and a resumption does not retry.
func TestAPoisonousEventDoesNotHoldUpACell(t *testing.T) {
	path, p := synthetic(t)
	run := filepath.Join(t.TempDir(), "run")
	tries := map[string]int{}
	o := options(t, p)
	wait := int64(1)
	o.Host.InterceptGuest = func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
		var event abi.MemoryEvent
		if e.Op != abi.OpRecordEvent || json.Unmarshal(e.Body, &event) != nil {
			return enter(e)
		}
		switch {
		case strings.HasSuffix(event.EventID, "-1-1"):
			tries[event.EventID]++
			return abi.Marshal(abi.NewError(abi.CodeInvalidArgument, "no such text")), true, nil
		case strings.HasSuffix(event.EventID, "-2-1"):
			tries[event.EventID]++
			failed := abi.NewError(abi.CodeTimeout, "too slow")
			failed.Retryable, failed.RetryAfterMS, failed.NothingStored = true, &wait, true
			return abi.Marshal(failed), true, nil
		}
		return enter(e)
	}
	r, err := Begin(run, labOf(t, "providers: [full_history]\nbudgets: [0]"), path, p, o)
	require.NoError(t, err)
	require.NoError(t, Go(t.Context(), run, r, p, o))
	assert.Equal(t, rundir.Complete, r.Cells[0].State)
	failed, recorded := map[string]bool{}, 0
	for _, l := range lines(t, run, r.Cells[0]) {
		if l.Kind == journal.KindRecord {
			assert.Equal(t, l.Record.Error != nil, l.Record.Failed, l.Record.EventID)
			if l.Record.Failed {
				failed[l.Record.EventID] = true
			} else {
				recorded++
			}
		}
	}
	assert.Equal(t, p.Manifest.Counts.Events, recorded+len(failed))
	for id := range failed {
		if strings.HasSuffix(id, "-1-1") {
			assert.Equal(t, 1, tries[id], "refused for good: %s", id)
		} else {
			assert.Equal(t, 1+retries, tries[id], "%s", id)
		}
	}
	assert.Len(t, failed, len(tries))
	assert.NotEmpty(t, failed)

	before := maps.Clone(tries)
	r.Cells[0].State = rundir.Waiting // as after kill -9 at the very end
	require.NoError(t, Go(t.Context(), run, r, p, o))
	assert.Equal(t, before, tries)
}

func TestARunThatIsEndedAtAnyMomentGoesOn(t *testing.T) {
	path, p := synthetic(t)
	const block = "providers: [full_history]\nbudgets: [200]\nstability: 0.2"
	whole := filepath.Join(t.TempDir(), "whole")
	r, err := Begin(whole, labOf(t, block), path, p, options(t, p))
	require.NoError(t, err)
	require.NoError(t, Go(t.Context(), whole, r, p, options(t, p)))
	want := journalLines(t, whole, r.Cells[0])

	random := rand.New(rand.NewPCG(1, 2))
	for try := range 6 {
		run := filepath.Join(t.TempDir(), "run")
		r, err := Begin(run, labOf(t, block), path, p, options(t, p))
		require.NoError(t, err)
		for interrupted := 0; ; interrupted++ {
			require.Less(t, interrupted, 100)
			ctx, stop := context.WithCancel(t.Context())
			left, o := 3+random.IntN(15), options(t, p)
			o.Progress = func(Progress) {
				if left--; left == 0 {
					stop()
				}
			}
			err = Go(ctx, run, r, p, o)
			stop()
			if err == nil {
				assert.Positive(t, interrupted, "it was interrupted at all")
				break
			}
			require.ErrorIs(t, err, context.Canceled)
			if random.IntN(2) == 0 { // the last line may be incomplete
				file := filepath.Join(r.Cells[0].Folder(run), journal.Name)
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				if len(text) > 100 {
					at := strings.LastIndexByte(string(text[:len(text)-1]), '\n') + 1
					require.NoError(t, os.WriteFile(file, text[:at+random.IntN(len(text)-at)], 0o600))
				}
			}
			r, err = rundir.Open(run)
			require.NoError(t, err)
		}
		assert.Equal(t, want, journalLines(t, run, r.Cells[0]), "try %d", try)
	}
}

func TestARunIsResumedWithWhatItBeganWith(t *testing.T) {
	path, p := synthetic(t)
	run := filepath.Join(t.TempDir(), "run")
	r, err := Begin(run, labOf(t, "providers: [full_history]\nbudgets: [200]"), path, p, options(t, p))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	o, steps := options(t, p), 0
	o.Progress = func(Progress) {
		if steps++; steps == 12 {
			stop()
		}
	}
	require.ErrorIs(t, Go(ctx, run, r, p, o), context.Canceled)

	_, err = Begin(run, r.Lab, path, p, options(t, p))
	assert.ErrorContains(t, err, "is not empty")

	other := *p
	other.Manifest.ContentSHA256 = strings.Repeat("0", 64)
	assert.ErrorContains(t, Go(t.Context(), run, r, &other, options(t, p)), "the run began with")

	changed := options(t, p)
	inner := changed.Provider
	changed.Provider = func(entry *lab.Provider) (host.ProviderConfig, error) {
		c, err := inner(entry)
		c.Block = abi.Raw(`{"max_tokens":50}`)
		return c, err
	}
	err = Go(t.Context(), run, r, p, changed)
	require.Error(t, err)
	t.Log(err)
	require.NoError(t, Go(t.Context(), run, r, p, options(t, p)), "it still goes on with the first")

	manifest := filepath.Join(r.Cells[0].Folder(run), "manifest.json")
	_, err = os.Stat(manifest)
	require.NoError(t, err)
}

func TestFreshnessIsMeasuredInScopesOfItsOwn(t *testing.T) {
	path, p := synthetic(t)
	run := filepath.Join(t.TempDir(), "run")
	o := options(t, p)
	r, err := Begin(run, labOf(t, "providers: [full_history, no_memory]\nbudgets: [200]\nfreshness: 2"), path, p, o)
	require.NoError(t, err)
	require.NoError(t, Go(t.Context(), run, r, p, o))
	for _, c := range r.Cells {
		n := 0
		for _, l := range lines(t, run, c) {
			if l.Kind != journal.KindFreshness {
				continue
			}
			n++
			require.Nil(t, l.Freshness.Error)
			assert.Equal(t, c.Label == "full_history", l.Freshness.Found, c.Label)
			if c.Label == "no_memory" {
				assert.Equal(t, 2, l.Freshness.Reads, "once more after it was ready, and not until the time is over")
			}
		}
		assert.Equal(t, 2, n)
	}
	paid, local := &lab.Provider{Label: "paid"}, &lab.Provider{Label: "local"}
	assert.Zero(t, FreshnessOf(r.Lab, paid, false)-2, "the lab asks for it")
	r.Lab.Freshness = nil
	assert.Zero(t, FreshnessOf(r.Lab, paid, false), "a read may cost money")
	assert.Equal(t, 3, FreshnessOf(r.Lab, local, true))
}
