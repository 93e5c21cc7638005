package host_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/internal/archive"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/logs"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
)

func TestTheArchiveKeepsAcceptedEventsWordForWord(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	h := host.Open(t, host.Options{DataDir: dir, Archive: true})
	c := host.ProbeConfig(`{}`)
	c.TestSessions = []string{"test-*"}
	s := host.OpenSlot(t, h, c)
	first := host.Event("e1", "echo <b>Grüße</b> & \"quotes\"  ")
	first.Metadata = map[string]abi.Raw{"z": abi.Raw(`1.50`), "a": abi.Raw(`"<&>"`)}
	_, err := s.RecordEvent(ctx, first)
	require.NoError(t, err)
	_, err = s.RecordEvent(ctx, first) // a duplicate
	require.NoError(t, err)
	test := host.Event("e2", "echo x")
	test.SessionID = "test-1"
	_, err = s.RecordEvent(ctx, test)
	require.NoError(t, err)
	_, err = s.RecordEvent(ctx, host.Event("e3", "fail invalid_argument no"))
	require.Error(t, err)
	_, err = s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "r"})
	require.NoError(t, err)
	_, err = s.RecordEvent(ctx, host.Event("e4", "echo x"))
	require.NoError(t, err)

	all := host.AllArchived(t, h, 0)
	require.Len(t, all, 1, "no duplicate, test session, refused event, nor what met the wall")
	require.Equal(t, string(abi.Marshal(first)), string(abi.Marshal(&all[0])))
	for id, n := range map[string]int{"e1": 1, "e2": 0, "e": 0} {
		page, err := h.Archive().ArchivePage(ctx, &report.ArchiveRequest{Scope: &host.TestScope, EventID: id, Limit: 1})
		require.NoError(t, err)
		require.Len(t, page.Events, n, id)
	}
	odd := host.Event("e1 \"ü<é>\"", "echo x") // JSON may write it in several ways
	_, err = h.Archive().ArchiveAdd(ctx, &abi.EventBatch{Events: []abi.MemoryEvent{*odd}})
	require.NoError(t, err)
	found, err := h.Archive().ArchivePage(ctx, &report.ArchiveRequest{Scope: &host.TestScope, EventID: odd.EventID, Limit: 1})
	require.NoError(t, err)
	require.Len(t, found.Events, 1)
	for _, q := range []report.ArchiveRequest{{Scope: &host.TestScope}, {Scope: &host.TestScope, EventIDs: []string{"e1", odd.EventID, "e9"}},
		{Scope: &host.TestScope, After: 0, Limit: 2}} {
		found, err = h.Archive().ArchivePage(ctx, &q)
		require.NoError(t, err)
		require.Len(t, found.Events, 2, "%v", q)
		require.Equal(t, "e1", found.Events[0].EventID)
	}
	found, err = h.Archive().ArchivePage(ctx, &report.ArchiveRequest{Scope: &host.TestScope, After: found.Last})
	require.NoError(t, err)
	require.Empty(t, found.Events)
	require.False(t, found.More)
	other := abi.MemoryScope{RunID: "other", PersonaID: host.TestScope.PersonaID}
	page, err := h.Archive().ArchivePage(ctx, &report.ArchiveRequest{Scope: &other, EventID: "e1"})
	require.NoError(t, err)
	require.Empty(t, page.Events)
	_, err = h.Archive().ArchivePage(ctx, &report.ArchiveRequest{EventID: "e1"})
	host.RequireCode(t, err, abi.CodeInvalidArgument, "scope")
	m, err := s.Manifest(ctx)
	require.NoError(t, err)
	require.NotNil(t, m.Archive)
}

func TestWithoutTheOptionNothingIsArchived(t *testing.T) {
	h := host.Open(t, host.Options{})
	s := host.OpenSlot(t, h, host.ProbeConfig(`{}`))
	host.RunCommands(t, s, "e1", "echo x")
	stats, err := h.Archive().ArchiveStats(context.Background())
	require.NoError(t, err)
	require.Equal(t, &report.ArchiveStats{}, stats)
	_, err = h.Archive().ArchiveAdd(context.Background(), &abi.EventBatch{Events: []abi.MemoryEvent{*host.Event("e", "x")}})
	host.RequireCode(t, err, abi.CodeUnsupported, "keeps no archive", "memory.archive")
	m, err := s.Manifest(context.Background())
	require.NoError(t, err)
	require.Nil(t, m.Archive)
}

func TestAnArchiveThatCannotBeSealedDoesNotTryAtEveryWrite(t *testing.T) {
	dir := t.TempDir()
	var log logs.Buffer
	h := host.Open(t, host.Options{DataDir: dir, Archive: true, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "archive"), nil, 0o600)) // at the path of the segments' folder
	host.Fill(t, h, 0, 100)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "cannot be sealed") }, 10*time.Second,
		time.Millisecond)
	for i := range 10 {
		host.Fill(t, h, 100+10*i, 110+10*i)
		time.Sleep(10 * time.Millisecond) // for the goroutine, which would retry
	}
	require.Equal(t, 1, strings.Count(log.String(), "cannot be sealed"))
	require.Len(t, host.AllArchived(t, h, 0), 200)
}

func TestTheArchiveIsSealedAndSurvivesARestart(t *testing.T) {
	const events = 1_000 // about 5 MiB, over 20 segments before they are merged
	ctx := context.Background()
	dir := t.TempDir()
	h, err := host.New(ctx, host.Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true})
	require.NoError(t, err)
	host.Fill(t, h, 0, events)
	host.Tend(t, h)
	stats, err := h.Archive().ArchiveStats(ctx)
	require.NoError(t, err)
	require.Less(t, stats.Segments, int64(3+16), "small segments are merged")
	require.EqualValues(t, events, stats.Events)
	require.Less(t, stats.OpenBytes, int64(archive.SealBytes))
	require.Less(t, stats.SegmentBytes, stats.TextBytes/10)
	require.NoError(t, h.Close(ctx))

	// A crash left a file behind.
	stray := filepath.Join(dir, "archive", "00000000000000099999-abcdef012345.zst")
	require.NoError(t, os.WriteFile(stray, []byte("half"), 0o600))
	h = host.Open(t, host.Options{DataDir: dir, Archive: true})
	require.NoFileExists(t, stray)
	for _, limit := range []int64{0, 77} {
		all := host.AllArchived(t, h, limit)
		require.Len(t, all, events)
		for i := range all {
			require.Equal(t, fmt.Sprint("e", i), all[i].EventID)
		}
	}
	check, err := h.Archive().ArchiveCheck(ctx)
	require.NoError(t, err)
	require.Equal(t, &report.ArchiveCheck{Segments: stats.Segments, Events: events, Problems: []string{}}, check)
	again, err := h.Archive().ArchiveAdd(ctx, &abi.EventBatch{Events: []abi.MemoryEvent{
		host.AllArchived(t, h, 0)[5], *host.Event("new", "x"), *host.Event("new", "x")}})
	require.NoError(t, err)
	require.Equal(t, &report.ArchiveReceipt{Added: 1, Present: 2}, again)
}

// A data folder that was moved without its archive serves, and reports what is missing.
func TestAMissingArchiveIsToldAtTheStartAndInHealth(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	h, err := host.New(ctx, host.Options{DataDir: dir, CacheDir: testcache.Dir(), Archive: true})
	require.NoError(t, err)
	host.Fill(t, h, 0, 200)
	host.Tend(t, h)
	require.NoError(t, h.Close(ctx))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "archive")))
	var log logs.Buffer
	h = host.Open(t, host.Options{DataDir: dir, Archive: true, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	const want = "archive_missing: "
	require.Contains(t, log.String(), want)
	health, err := host.OpenSlot(t, h, host.ProbeConfig(`{}`)).Health(ctx)
	require.NoError(t, err)
	require.Contains(t, strings.Join(health.Warnings, "\n"), want)
	require.Contains(t, strings.Join(health.Warnings, "\n"), "files in "+filepath.Join(dir, "archive")+" are missing, with ")
}

func TestAnArchivedEventWithOtherContentIsAConflict(t *testing.T) {
	ctx := context.Background()
	h := host.Open(t, host.Options{DataDir: t.TempDir(), Archive: true})
	s := host.OpenSlot(t, h, host.ProbeConfig(`{}`))
	changed := func(id string, change func(*abi.MemoryEvent)) abi.MemoryEvent {
		e := host.Event(id, "echo "+id)
		change(e)
		return *e
	}
	same := func(*abi.MemoryEvent) {}
	add := func(events ...abi.MemoryEvent) (*report.ArchiveReceipt, error) {
		return h.Archive().ArchiveAdd(ctx, &abi.EventBatch{Events: events})
	}
	_, err := s.RecordEvent(ctx, host.Event("recorded", "echo recorded"))
	require.NoError(t, err)
	receipt, err := add(changed("added", same))
	require.NoError(t, err)
	require.Equal(t, &report.ArchiveReceipt{Added: 1}, receipt)
	_, err = s.RecordEvent(ctx, host.Event("later", "echo later")) // after an import has read the archive
	require.NoError(t, err)
	for _, id := range []string{"recorded", "added", "later"} {
		for name, change := range map[string]func(*abi.MemoryEvent){
			"text":     func(e *abi.MemoryEvent) { e.Messages[0].Content = new("other") },
			"time":     func(e *abi.MemoryEvent) { e.Timestamp = "2020-01-01T00:00:00Z" },
			"session":  func(e *abi.MemoryEvent) { e.SessionID += "x" },
			"metadata": func(e *abi.MemoryEvent) { e.Metadata = map[string]abi.Raw{"k": abi.Raw("1")} },
		} {
			t.Run(id+", other "+name, func(t *testing.T) {
				before := host.AllArchived(t, h, 0)
				_, err := add(changed("new", same), changed(id, change))
				e := host.RequireCode(t, err, abi.CodeConflict, "events[1].event_id: \""+id+"\"", "none of these events was added")
				require.Equal(t, "event_content", e.Reason)
				require.Equal(t, before, host.AllArchived(t, h, 0), "nothing is lost, and nothing added")
			})
		}
		receipt, err = add(changed(id, same))
		require.NoError(t, err)
		require.Equal(t, &report.ArchiveReceipt{Present: 1}, receipt)
	}
	_, err = add(changed("new", same), changed("new", func(e *abi.MemoryEvent) { e.Messages[0].Content = new("other") }))
	host.RequireCode(t, err, abi.CodeConflict, "events[1].event_id")
	receipt, err = add(changed("new", same), changed("recorded", func(e *abi.MemoryEvent) { e.UserID = "somebody else" }))
	require.NoError(t, err)
	require.Equal(t, &report.ArchiveReceipt{Added: 2}, receipt, "another scope, another event")
}

func TestADamagedArchiveIsSaidAndMemoryServesOn(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	h := host.Open(t, host.Options{DataDir: dir, Archive: true})
	host.Fill(t, h, 0, 300)
	host.Tend(t, h)
	list := host.Sealed(t, h)
	require.Greater(t, len(list), 2)
	path := filepath.Join(dir, "archive", list[0].Name())
	packed, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, packed[:len(packed)/2], 0o600))

	check, err := h.Archive().ArchiveCheck(ctx)
	require.NoError(t, err)
	require.Len(t, check.Problems, 1)
	require.Contains(t, check.Problems[0], "were sealed")
	require.Contains(t, check.Problems[0], "events are lost")
	_, err = h.Archive().ArchivePage(ctx, &report.ArchiveRequest{})
	host.RequireCode(t, err, abi.CodeUnavailable, "were sealed", "memory itself is not touched")
	page, err := h.Archive().ArchivePage(ctx, &report.ArchiveRequest{After: list[0].Last})
	require.NoError(t, err, "the rest can be read")
	require.NotEmpty(t, page.Events)
	host.RequireUsable(t, host.OpenSlot(t, h, host.ProbeConfig(`{}`)), "e1")
}

func TestRetentionLetsTheArchiveGoByAge(t *testing.T) {
	clock := new(host.FakeClock)
	h := host.Open(t, host.Options{Archive: true, ArchiveRetention: 24 * time.Hour, Now: clock.Now})
	host.Fill(t, h, 0, 60) // a segment and a few more events
	host.Tend(t, h)
	clock.Add(20 * time.Hour)
	host.Fill(t, h, 60, 80)
	clock.Add(5 * time.Hour)
	host.Tend(t, h)
	all := host.AllArchived(t, h, 0)
	require.Len(t, all, 20)
	require.Equal(t, "e60", all[0].EventID)
	require.Empty(t, host.SegmentFiles(t, h), "the file is gone")
}

func TestWhatIsRecordedAtTheSameTimeIsArchivedOnceInOrderOfItsScope(t *testing.T) {
	const scopes, each = 4, 80
	h := host.Open(t, host.Options{Archive: true, Durability: "process"})
	m, _ := plugins.Find("full_history")
	s := host.OpenSlot(t, h, host.ProviderConfig{Name: "full_history", Module: m.Wasm, Source: "builtin", Block: abi.Raw(`{}`)})
	var wait sync.WaitGroup
	done := make(chan struct{})
	for n := range scopes {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := range each {
				e := host.Event(fmt.Sprint(i), "echo "+strings.Repeat("long ", 1000))
				e.UserID = fmt.Sprint("p", n)
				if _, err := s.RecordEvent(context.Background(), e); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	read := make(chan []abi.MemoryEvent)
	go func() { // reads concurrently
		var all []abi.MemoryEvent
		request := new(report.ArchiveRequest)
		for ended := false; ; {
			page, err := h.Archive().ArchivePage(context.Background(), request)
			if err != nil {
				t.Error(err)
				break
			}
			all, request.After = append(all, page.Events...), page.Last
			if !page.More && ended {
				break
			}
			select {
			case <-done:
				ended = true
			default:
			}
		}
		read <- all
	}()
	wait.Wait()
	close(done)
	next := map[string]int{}
	for _, e := range <-read {
		require.Equal(t, fmt.Sprint(next[e.UserID]), e.EventID, "a reader that reads along misses and doubles nothing")
		next[e.UserID]++
	}
	require.Len(t, next, scopes)
	for _, n := range next {
		require.Equal(t, each, n)
	}
}

func TestAnEventWhoseOutcomeIsNotKnownIsArchived(t *testing.T) {
	s, backend, _ := host.ScriptedSlot(t, host.Options{Archive: true})
	backend.Set(func() { backend.Post = func(string) int { return 0 } })
	_, err := s.RecordEvent(context.Background(), host.Event("e1", "deliver a"))
	require.Error(t, err)
	all := host.AllArchived(t, host.HostOf(s), 0)
	require.Len(t, all, 1)
}

// BenchmarkRecordWithArchive compares the median times of a record with and without an archive, alternating between
// calls, at durability process. Each event has a text of 300 bytes, from one of 50 people.
func BenchmarkRecordWithArchive(b *testing.B) {
	ctx := context.Background()
	ledger := host.History(b, "")
	m, _ := plugins.Find("ledger_memory")
	ledger.Name, ledger.Module = m.Name, m.Wasm
	recall := host.History(b, "")
	m, _ = plugins.Find("bm25")
	recall.Name, recall.Module = "recall", m.Wasm
	text := "append turns " + strings.Repeat("My cat is called Zorvex. ", 12)
	for _, c := range []host.ProviderConfig{host.ProbeConfig(`{}`), host.History(b, ""), recall, ledger} {
		b.Run(c.Name, func(b *testing.B) {
			var slots [2]*host.Slot
			for i := range slots {
				slots[i] = host.OpenSlot(b, host.Open(b, host.Options{Archive: i == 1, Durability: "process"}), c)
			}
			var took [2][]time.Duration
			n := 0
			for b.Loop() {
				e := host.Event(fmt.Sprint(n), text)
				e.UserID = fmt.Sprint("p", n%50)
				for k := range slots {
					at := (n + k) % 2 // alternate which one is first
					began := time.Now()
					_, err := slots[at].RecordEvent(ctx, e)
					took[at] = append(took[at], time.Since(began))
					require.NoError(b, err)
				}
				n++
			}
			for i, name := range []string{"without", "with"} {
				slices.Sort(took[i])
				b.ReportMetric(millis(took[i][len(took[i])/2]), "p50-ms-"+name)
				b.ReportMetric(millis(took[i][len(took[i])*99/100]), "p99-ms-"+name)
			}
			b.ReportMetric(millis(took[1][len(took[1])/2])/millis(took[0][len(took[0])/2]), "p50-ratio")
		})
	}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
