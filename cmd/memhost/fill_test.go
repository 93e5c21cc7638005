//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/server/wire"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testenv/llm"
)

// fillCase is one variant of TestAFillThatIsKilledArrivesOnce.
type fillCase struct {
	// memory is filled while serving serves.
	memory, serving string
	// yaml is the block that memory needs in the slot's configuration, indented by two.
	yaml string
	// place is where memory stores texts: a prefix of the names of keys, or of logs, in its state. Each event's name
	// occurs there once.
	place string
	// ordered means that names of keys, or numbers in logs, are in the order of recording, or in the opposite order.
	ordered bool
}

// fillings are the memories that need no server and store something.
var fillings = []fillCase{
	{memory: "full_history", serving: "bm25", place: "turn/", ordered: true},
	{memory: "bm25", serving: "full_history", place: "messages", ordered: true},
	{memory: "ledger_memory", serving: "full_history", place: "event/"},
	{memory: "rolling_summary", serving: "full_history", place: "messages/", ordered: true, yaml: nanobotYAML},
	{memory: "layered_memory", serving: "full_history", place: "messages/", ordered: true, yaml: nanobotYAML},
}

// nanobotYAML makes a memory consolidate while it is filled: a session causes several archives.
const nanobotYAML = "    %s: {llm: {base_url: %s/v1, model: stub}, profile: local, update_policy: window, " +
	"memory_window: 60}\n"

// fillSize is how many events are filled, how often a process is killed, for how many people the events are, and how
// many events per second are sent (0: no limit).
type fillSize struct {
	events, kills, people int
	rate                  float64
}

// fillSizeOf reads MEMHOST_FILL_EVENTS, MEMHOST_FILL_KILLS and MEMHOST_FILL_PEOPLE. By default a fill is small, and
// slow enough to be killed in the middle.
func fillSizeOf(t *testing.T) fillSize {
	t.Helper()
	size := fillSize{1200, 6, 12, 400}
	if brief.Tests() {
		size = fillSize{300, 2, 6, 200}
	}
	if os.Getenv("MEMHOST_FILL_EVENTS") != "" {
		size = fillSize{0, 20, 100, 0}
	}
	for name, n := range map[string]*int{"EVENTS": &size.events, "KILLS": &size.kills, "PEOPLE": &size.people} {
		if text := os.Getenv("MEMHOST_FILL_" + name); text != "" {
			var err error
			*n, err = strconv.Atoi(text)
			require.NoError(t, err)
		}
	}
	return size
}

// TestAFillThatIsKilledArrivesOnce fills each memory from an archive while another one serves and callers record. The
// slot's process is killed with -9 again and again: while it starts, while it fills, before the switch and after it. In
// the end each archived event and each event of a caller is in the memory's state once.
func TestAFillThatIsKilledArrivesOnce(t *testing.T) { fillEach(t, false) }

// fillEach fills each memory, from an archive or from a file.
func fillEach(t *testing.T, fromFile bool) {
	program, cache := plainProgram(t), cacheHome(t)
	if os.Getenv("MEMHOST_FILL_EVENTS") != "" { // for measurements: the program alone
		var err error
		program, err = builtProgram()
		require.NoError(t, err)
	}
	for i, f := range fillings {
		t.Run(f.memory, func(t *testing.T) {
			if only := os.Getenv("MEMHOST_FILL_MEMORY"); only != "" && only != f.memory {
				t.Skip("not asked for")
			}
			if i > 0 {
				brief.Skip(t)
			}
			if os.Getenv("MEMHOST_FILL_EVENTS") == "" {
				t.Parallel()
			}
			stub := httptest.NewServer(llm.New(llm.Options{}))
			t.Cleanup(stub.Close)
			if f.yaml != "" {
				f.yaml = fmt.Sprintf(f.yaml, f.memory, stub.URL)
			}
			m := memhost{t, t.TempDir(), cache, program}
			r := &fillRun{t: t, fillCase: f, size: fillSizeOf(t), m: m, fromFile: fromFile,
				request: wire.BackfillRequest{Condition: f.memory}}
			r.config(f.serving)
			r.run()
			r.config(f.memory)
			r.start()
			r.calls(3)
			r.process.stop()
			found, misplaced := stateMarks(t, filepath.Join(m.dir, "data"), f)
			r.judge(found)
			require.Zero(t, misplaced, "events that are not in their order")
			if f.serving == "full_history" {
				served, _ := stateMarks(t, filepath.Join(m.dir, "data"), fillings[0])
				require.Equal(t, []int{1}, slices.Compact(slices.Collect(maps.Values(served))),
					"what callers recorded is once at the memory that served, too")
			}
		})
	}
}

// fillRun is one fill.
type fillRun struct {
	fillCase
	t       *testing.T
	size    fillSize
	m       memhost
	request wire.BackfillRequest
	// fromFile means that it is filled by the command from a file, and no archive is kept.
	fromFile bool
	// killOther kills and restarts the backend, if there is one: every second time, instead of the slot.
	killOther func()

	process *slotProcess
	client  *client.Client
	began   time.Time     // of the present process
	took    time.Duration // of all processes, from serving to the kill
	memory  int64         // the maximum for a process of the slot, in bytes
	killed  map[string]int
	url     atomic.Pointer[string]
	said    int   // events of callers
	open    int64 // the maximum of events that were open at a time
	saying  sync.Mutex
}

// config writes the slot's configuration.
func (r *fillRun) config(serving string) {
	word := "condition"
	if r.request.Backend == serving {
		word = "backend"
	}
	yaml := fmt.Sprintf("memory:\n  %s: %s\n  archive: %t\n", word, serving, !r.fromFile)
	if r.yaml != "" && !strings.Contains(r.yaml, "backends:") {
		yaml += "  conditions:\n"
	}
	yaml += r.yaml
	require.NoError(r.t, os.WriteFile(filepath.Join(r.m.dir, "memhost.yaml"), []byte(yaml), 0o600))
}

// archivedMark is the name by which an event is found. It occurs in the event's text once.
func archivedMark(n int) string { return fmt.Sprintf("Zorvex%07d", n) }
func calledMark(n int) string   { return fmt.Sprintf("Zorvex9%06d", n) }

var marks = regexp.MustCompile(`Zorvex\d{7}`)

// fillEvent is the nth event of a person: a fact and the agent's answer.
func fillEvent(mark, person string, n int) *abi.MemoryEvent {
	text, answer := fmt.Sprintf("My cat number %d is called %s.", n, mark), "I will remember that."
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second).Format(time.RFC3339)
	return &abi.MemoryEvent{EventID: "e" + strings.TrimPrefix(mark, "Zorvex"), RunID: "r", UserID: person,
		SessionID: fmt.Sprint("s", n/50), TurnID: fmt.Sprint("t", n), Timestamp: at,
		Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}, {Role: abi.RoleAssistant, Content: &answer}}}
}

// file is the file with the events.
func (r *fillRun) file() string { return filepath.Join(r.m.dir, "events.jsonl") }

// archive writes the events, and adds them to the archive if there is one.
func (r *fillRun) archive() {
	out, err := os.Create(r.file())
	require.NoError(r.t, err)
	w := bufio.NewWriter(out)
	for n := range r.size.events {
		event := fillEvent(archivedMark(n), fmt.Sprintf("p%04d", n%r.size.people), n/r.size.people)
		_, err := w.Write(append(abi.Marshal(event), '\n'))
		require.NoError(r.t, err)
	}
	require.NoError(r.t, w.Flush())
	require.NoError(r.t, out.Close())
	if !r.fromFile {
		said, code := r.m.run("archive", "import", r.file())
		require.Zero(r.t, code, said)
	}
}

// start starts the slot and resumes the backfill.
func (r *fillRun) start() {
	r.process = r.m.serve()
	r.began = time.Now()
	r.url.Store(&r.process.url)
	var err error
	r.client, err = client.New(r.process.url, "")
	require.NoError(r.t, err)
}

// kill kills the slot's process.
func (r *fillRun) kill(when string) {
	r.measure()
	r.took += time.Since(r.began)
	r.process.kill()
	r.client.Close()
	r.killed[when]++
}

// measure records how much memory the process used at most. It only works on Linux.
func (r *fillRun) measure() {
	if runtime.GOOS != "linux" {
		return
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.process.Process.Pid))
	require.NoError(r.t, err)
	for line := range strings.Lines(string(status)) {
		var kb int64
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &kb); err == nil {
			r.memory = max(r.memory, kb<<10)
		}
	}
}

// serves reports whether the memory that is being filled already serves.
func (r *fillRun) serves() bool {
	manifest, err := r.client.Manifest(r.t.Context())
	require.NoError(r.t, err)
	return manifest.Provider == r.fillCase.memory
}

// status returns the progress of the fill. If no fill is known, it starts one: a kill right after the switch leaves
// none, and the configuration still has the old memory.
func (r *fillRun) status() *report.Backfill {
	b, err := r.client.BackfillStatus(r.t.Context())
	require.NoError(r.t, err)
	if (b.State == report.FollowerNone || b.State == report.FollowerStopped) && !r.serves() {
		if r.fromFile {
			return r.beginFromFile()
		}
		r.request.EventsPerSecond = r.size.rate
		b, err = r.client.Backfill(r.t.Context(), r.request)
		require.NoError(r.t, err)
	}
	r.open = max(r.open, b.Progress.Open)
	return b
}

// run imports, fills, kills, and waits for the switch.
func (r *fillRun) run() {
	r.killed = map[string]int{}
	r.archive()
	wall := time.Now()
	r.start()
	if r.fromFile {
		r.killGiving()
	}
	r.status() // starts it
	live, stop := context.WithCancel(r.t.Context())
	var callers sync.WaitGroup
	callers.Go(func() {
		for live.Err() == nil {
			r.calls(3)
			time.Sleep(1500 * time.Millisecond) // a fill gives way to callers, so leave it time
		}
	})
	for k := range r.size.kills {
		switch {
		case r.killOther != nil && k%2 == 1:
			r.awaitDone(r.size.events * (k + 1) / (r.size.kills + 1))
			r.killOther()
			r.killed["backend"]++
			continue
		case k%4 == 2:
			time.Sleep(rand.N(400 * time.Millisecond))
			r.kill("at the start")
		case k == r.size.kills-1:
			r.awaitDone(r.size.events)
			r.killAtTheTurn()
			continue
		default:
			r.awaitDone(r.size.events * (k + 1) / (r.size.kills + 1))
			time.Sleep(rand.N(2 * r.pause()))
			r.kill("filling")
		}
		r.start()
	}
	r.awaitDone(r.size.events)
	delivered := time.Since(r.began) + r.took
	for !r.serves() {
		r.status()
		time.Sleep(r.pause())
	}
	ready := time.Since(r.began) + r.took
	stop()
	callers.Wait()
	r.kill("after the turn")
	r.t.Logf("%s: %d events of %d people archived, %d recorded meanwhile; killed %v; delivered in %.1f s of serving "+
		"(%.0f events a second), ready in %.1f s, %.1f s with all starts; %d open at most; the host at most %.0f MB",
		r.fillCase.memory,
		r.size.events, r.size.people, r.said, r.killed, delivered.Seconds(),
		float64(r.size.events)/delivered.Seconds(), ready.Seconds(), time.Since(wall).Seconds(), r.open,
		float64(r.memory)/1e6)
}

// killAtTheTurn kills the slot at about the time when the memory starts to serve. If it has served, the configuration
// still has the old one, and the fill starts again. If it is filled from a file, the memory then gets what is recorded
// since, so nothing is recorded in between.
func (r *fillRun) killAtTheTurn() {
	if r.fromFile {
		r.saying.Lock()
		defer r.saying.Unlock()
	}
	r.kill("at the turn")
	r.start()
	r.status()
}

// awaitDone waits until a number of events have been handled, or the memory serves.
func (r *fillRun) awaitDone(events int) {
	for {
		b := r.status()
		if b.State == report.FollowerNone || b.Progress.Done >= int64(events) {
			return
		}
		time.Sleep(r.pause())
	}
}

// pause is the time between two checks. Checking a large fill reads some of it.
func (r *fillRun) pause() time.Duration {
	if r.size.rate == 0 {
		return 250 * time.Millisecond
	}
	return 20 * time.Millisecond
}

// calls records events like a caller, each until it is acknowledged.
func (r *fillRun) calls(n int) {
	r.saying.Lock()
	defer r.saying.Unlock()
	for range n {
		event := fillEvent(calledMark(r.said), "caller", r.said)
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			status, err := recordAt(*r.url.Load(), event)
			if err == nil && status == abi.StatusCommitted {
				break
			}
			if time.Now().After(end) {
				r.t.Errorf("a caller's event did not come to its end: %s %v", status, err)
				return
			}
		}
		r.said++
	}
}

// recordAt records an event once, at a slot that may be killed at the same time.
func recordAt(url string, event *abi.MemoryEvent) (abi.WriteStatus, error) {
	slot, err := client.New(url, "")
	if err != nil {
		return "", err
	}
	defer slot.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	receipt, err := slot.RecordEvent(ctx, event)
	if err != nil {
		return "", err
	}
	return receipt.Status, nil
}

// judge requires that each event is found once.
func (r *fillRun) judge(found map[string]int) {
	r.t.Helper()
	var lost, doubled []string
	look := func(mark string) {
		switch n := found[mark]; {
		case n == 0:
			lost = append(lost, mark)
		case n > 1:
			doubled = append(doubled, mark)
		}
		delete(found, mark)
	}
	for n := range r.size.events {
		look(archivedMark(n))
	}
	for n := range r.said {
		look(calledMark(n))
	}
	r.t.Logf("%s: %d events, lost %d, doubled %d", r.fillCase.memory, r.size.events+r.said, len(lost), len(doubled))
	require.Empty(r.t, lost[:min(len(lost), 20)])
	require.Empty(r.t, doubled[:min(len(doubled), 20)])
	require.Empty(r.t, found)
}

// stateMarks counts the events in a memory's state. misplaced counts those that are not in the order of recording.
func stateMarks(t *testing.T, folder string, f fillCase) (found map[string]int, misplaced int) {
	t.Helper()
	store, err := state.Open(folder, state.Options{})
	require.NoError(t, err)
	found = map[string]int{}
	scopes := map[string][]string{}
	err = state.Walk(t.Context(), store, func(state.Table) bool { return true }, func(o state.Op) error {
		if !strings.HasPrefix(o.Name, f.place) {
			return nil
		}
		for _, mark := range marks.FindAll(o.Value, -1) {
			found[string(mark)]++
			where := o.Space.String()
			if o.Kind == state.OpAppend {
				where += o.Name
			}
			scopes[where] = append(scopes[where], string(bytes.Clone(mark)))
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, store.Close())
	for _, list := range scopes {
		reversed := slices.Clone(list)
		slices.Reverse(reversed)
		if f.ordered && !slices.IsSorted(list) && !slices.IsSorted(reversed) {
			misplaced++
		}
	}
	return found, misplaced
}
