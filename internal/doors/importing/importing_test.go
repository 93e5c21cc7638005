package importing

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/examples/demo"
	"github.com/memhost/memhost/internal/doors/resend"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// export is ChatGPT's: one talk of two turns, the second with a tool call.
const export = `[{"id": "c1", "conversation_id": "c1", "title": "Move", "create_time": 1772442000, "update_time": 1772442120,
 "current_node": "n4", "mapping": {
 "n0": {"id": "n0", "children": ["n1"]},
 "n1": {"id": "n1", "parent": "n0", "children": ["n2"], "message": {"id": "n1", "author": {"role": "user"}, "create_time": 1772442000,
  "content": {"content_type": "text", "parts": ["I moved to Lyon."]}}},
 "n2": {"id": "n2", "parent": "n1", "children": ["n3"], "message": {"id": "n2", "author": {"role": "assistant"}, "create_time": 1772442010,
  "content": {"content_type": "text", "parts": ["Noted."]}, "recipient": "all"}},
 "n3": {"id": "n3", "parent": "n2", "children": ["n4"], "message": {"id": "n3", "author": {"role": "user"}, "create_time": 1772442100,
  "content": {"content_type": "text", "parts": ["And I like the market."]}}},
 "n4": {"id": "n4", "parent": "n3", "children": [], "message": {"id": "n4", "author": {"role": "assistant"}, "create_time": 1772442120,
  "content": {"content_type": "text", "parts": ["Good."]}, "recipient": "all"}}}}]`

func zipped(t *testing.T, name, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create(name)
	require.NoError(t, err)
	_, err = f.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func demoEvents(t *testing.T) []byte {
	t.Helper()
	f, err := demo.Events()
	require.NoError(t, err)
	var b bytes.Buffer
	_, err = b.ReadFrom(f)
	require.NoError(t, err)
	return b.Bytes()
}

// memory records events, and returns an error for those whose text contains a word. The first open tries of each event
// get an uncertain receipt that names a time.
type memory struct {
	events []*abi.MemoryEvent
	fails  map[string]error
	open   int
	tries  map[string]int
}

func (m *memory) record(_ context.Context, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	for word, err := range m.fails {
		if strings.Contains(*e.Messages[0].Content, word) {
			return nil, err
		}
	}
	if m.tries == nil {
		m.tries = map[string]int{}
	}
	if m.tries[e.EventID]++; m.tries[e.EventID] <= m.open {
		return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusUncertain, RetryAfterMS: new(int64(3000))}, nil
	}
	for _, had := range m.events {
		if had.EventID == e.EventID {
			return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted, Duplicate: true}, nil
		}
	}
	m.events = append(m.events, e)
	return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted}, nil
}

func newImporter(t *testing.T) (*Importer, string) {
	t.Helper()
	dir := t.TempDir()
	i, err := New(dir, nil)
	require.NoError(t, err)
	return i, dir
}

// confirmed confirms, and waits until the recording is over.
func confirmed(t *testing.T, i *Importer, q *wire.ImportConfirm, m *memory) *wire.ImportProgress {
	t.Helper()
	ended := make(chan struct{})
	_, err := i.Confirm(t.Context(), q, m.record, func() { close(ended) })
	require.NoError(t, err)
	<-ended
	return i.Progress()
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	return found
}

var ann = &abi.MemoryScope{RunID: "default", PersonaID: "ann"}

// TestAFileIsCheckedAndThenRecordedOnce: the check counts what is then recorded, for each form of file; recorded again,
// all of it is known.
func TestAFileIsCheckedAndThenRecordedOnce(t *testing.T) {
	for _, c := range []struct {
		name, media string
		file        []byte
		source      string
		events      int64
		needsScope  bool
	}{
		{"an export", wire.MediaJSON, []byte(export), "chatgpt", 2, true},
		{"an archive of one", wire.MediaZip, zipped(t, "conversations.json", export), "chatgpt", 2, true},
		{"events that name their scopes", wire.MediaJSON, demoEvents(t), "", int64(bytes.Count(demoEvents(t), []byte("\n"))), false},
		{"a conversation with times", wire.MediaJSON, []byte(`{"session_id": "s", "messages": [{"role": "user", "content": "Hi.", ` +
			`"timestamp": "2026-03-02T09:00:00Z"}]}`), "", 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, dir := newImporter(t)
			m := new(memory)
			for round := range 2 {
				check, err := i.Check(t.Context(), c.media, bytes.NewReader(c.file))
				require.NoError(t, err)
				assert.Equal(t, c.source, check.Source)
				assert.Equal(t, c.events, check.Events)
				assert.Equal(t, c.needsScope, check.NeedsScope)
				assert.Empty(t, check.Problems)
				require.NotEmpty(t, check.Confirmation)
				q := &wire.ImportConfirm{Confirmation: check.Confirmation}
				if c.needsScope {
					q.Scope = ann
				}
				p := confirmed(t, i, q, m)
				assert.Equal(t, wire.ImportDone, p.State, "%v", p.Error)
				assert.Equal(t, []int64{c.events, 0}[round], p.Recorded)
				assert.Equal(t, []int64{0, c.events}[round], p.Known)
				assert.Len(t, m.events, int(c.events))
				assert.Empty(t, files(t, dir), "the file is removed")
				_, err = i.Confirm(t.Context(), q, m.record, func() {})
				assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err), "a confirmation works once")
			}
			if c.needsScope {
				assert.Equal(t, "ann", m.events[0].UserID)
			}
		})
	}
}

// TestFilesThatAreNoConversation: nothing stays on disk, no confirmation is given, and no message contains the name of
// the temporary file.
func TestFilesThatAreNoConversation(t *testing.T) {
	for _, c := range []struct {
		name, media, file string
		code              abi.Code // empty: the check succeeds without events
	}{
		{"not JSON", wire.MediaJSON, "hello", ""},
		{"empty", wire.MediaJSON, "", ""},
		{"another archive", wire.MediaZip, "not a zip", abi.CodeInvalidArgument},
		{"an archive of something else", wire.MediaZip, string(zipped(t, "a.txt", "hello")), abi.CodeInvalidArgument},
		{"a conversation without times", wire.MediaJSON, `[{"role": "user", "content": "Hi."}]`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, dir := newImporter(t)
			check, err := i.Check(t.Context(), c.media, strings.NewReader(c.file))
			if c.code != "" {
				require.Equal(t, c.code, abi.CodeOf(err))
				assert.NotContains(t, err.Error(), "import-")
			} else {
				require.NoError(t, err)
				assert.Empty(t, check.Confirmation)
				text, err := json.Marshal(check)
				require.NoError(t, err)
				assert.NotContains(t, string(text), "import-")
			}
			assert.Empty(t, files(t, dir))
		})
	}
}

// TestOneFileIsHereAtATime: a second file is refused while one is busy, only the owner can read a file, and the next
// file replaces it.
func TestOneFileIsHereAtATime(t *testing.T) {
	i, dir := newImporter(t)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	first := make(chan error, 1)
	go func() { _, err := i.Check(context.Background(), wire.MediaJSON, read); first <- err }()
	_, err = write.WriteString(export[:10])
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(files(t, dir)) == 1 }, time.Minute, time.Millisecond)
	_, err = i.Check(t.Context(), wire.MediaJSON, strings.NewReader(export))
	require.Equal(t, abi.CodeRateLimited, abi.CodeOf(err))
	_, err = write.WriteString(export[10:])
	require.NoError(t, err)
	require.NoError(t, write.Close())
	require.NoError(t, <-first)

	waits := files(t, dir)
	require.Len(t, waits, 1)
	info, err := os.Stat(waits[0])
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	check, err := i.Check(t.Context(), wire.MediaJSON, strings.NewReader(export))
	require.NoError(t, err)
	assert.NotContains(t, files(t, dir), waits[0])
	_, err = i.Confirm(t.Context(), &wire.ImportConfirm{Confirmation: check.Confirmation}, new(memory).record, func() {})
	assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), "an export names no scope")

	_, err = New(dir, nil)
	require.NoError(t, err)
	assert.Empty(t, files(t, dir), "the next start removes what is left")
}

func TestAFileThatBreaksOffIsRemoved(t *testing.T) {
	i, dir := newImporter(t)
	broken := errors.New("gone")
	_, err := i.Check(t.Context(), wire.MediaJSON, iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
	assert.Empty(t, files(t, dir))
}

func TestAConfirmationThatDoesNotComeIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, dir := newImporter(t)
		check, err := i.Check(t.Context(), wire.MediaJSON, strings.NewReader(export))
		require.NoError(t, err)
		time.Sleep(confirmWithin + time.Second)
		synctest.Wait()
		assert.Empty(t, files(t, dir))
		_, err = i.Confirm(t.Context(), &wire.ImportConfirm{Confirmation: check.Confirmation, Scope: ann}, new(memory).record,
			func() {})
		assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err))
	})
}

// TestFailuresAreCounted: a failed event does not affect others, temporary failures are retried, and a slot that always
// fails ends the import.
func TestFailuresAreCounted(t *testing.T) {
	talk := func(turns int) string {
		var lines strings.Builder
		for n := range turns {
			fmt.Fprintf(&lines, `{"event_id": "e%d", "run_id": "r", "user_id": "u", "session_id": "s", "turn_id": "t%d", `+
				`"timestamp": "2026-03-02T09:00:00Z", "messages": [{"role": "user", "content": "word%d."}]}`+"\n", n, n, n)
		}
		return lines.String()
	}
	refused := abi.NewError(abi.CodeInvalidArgument, "refused")
	for _, c := range []struct {
		name   string
		turns  int
		fails  map[string]error
		want   wire.ImportProgress
		paused int
	}{
		{"one event", 3, map[string]error{"word1.": refused}, wire.ImportProgress{State: wire.ImportDone, Events: 3, Recorded: 2,
			Failed: 1, Problems: []string{"e1: refused"}}, 0},
		{"for now", 2, map[string]error{"word1.": abi.NewError(abi.CodeUnavailable, "away")}, wire.ImportProgress{
			State: wire.ImportStopped, Events: 2, Recorded: 1, Failed: 1, Problems: []string{"e1: away"},
			Error: abi.NewError(abi.CodeUnavailable, "away")}, retries},
		{"forgotten before", 2, map[string]error{"word0.": abi.NewError(abi.CodeConflict, "was forgotten")}, wire.ImportProgress{
			State: wire.ImportDone, Events: 2, Recorded: 1, Known: 1, Problems: []string{}}, 0},
		{"not allowed", 3, map[string]error{"word0.": abi.NewError(abi.CodeDenied, "no")}, wire.ImportProgress{
			State: wire.ImportStopped, Events: 3, Failed: 1, Problems: []string{"e0: no"},
			Error: abi.NewError(abi.CodeDenied, "no")}, 0},
		{"read-only", 3, map[string]error{"word1.": abi.NewError(abi.CodeReadOnly, "no")}, wire.ImportProgress{
			State: wire.ImportStopped, Events: 3, Recorded: 1, Failed: 1, Problems: []string{"e1: no"},
			Error: abi.NewError(abi.CodeReadOnly, "no")}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, _ := newImporter(t)
			paused := 0
			i.pause = func(context.Context, time.Duration) error { paused++; return nil }
			check, err := i.Check(t.Context(), wire.MediaJSON, strings.NewReader(talk(c.turns)))
			require.NoError(t, err)
			got := confirmed(t, i, &wire.ImportConfirm{Confirmation: check.Confirmation}, &memory{fails: c.fails})
			assert.Equal(t, c.want, *got)
			assert.Equal(t, c.paused, paused)
		})
	}
	for open, want := range map[int]wire.ImportProgress{
		2: {State: wire.ImportDone, Events: 1, Recorded: 1, Problems: []string{}},
		9: {State: wire.ImportDone, Events: 1, Failed: 1, Problems: []string{"e0: is uncertain; import the file again to settle it"}},
	} {
		t.Run(fmt.Sprintf("uncertain for %d tries", open), func(t *testing.T) {
			i, _ := newImporter(t)
			var pauses []time.Duration
			i.pause = func(_ context.Context, d time.Duration) error { pauses = append(pauses, d); return nil }
			check, err := i.Check(t.Context(), wire.MediaJSON, strings.NewReader(talk(1)))
			require.NoError(t, err)
			got := confirmed(t, i, &wire.ImportConfirm{Confirmation: check.Confirmation}, &memory{open: open})
			assert.Equal(t, want, *got)
			assert.Len(t, pauses, min(open, retries))
			assert.Equal(t, 3*time.Second, pauses[0], "as the receipt asks")
		})
	}
	t.Run("all of them", func(t *testing.T) {
		i, _ := newImporter(t)
		check, err := i.Check(t.Context(), wire.MediaJSON, strings.NewReader(talk(100)))
		require.NoError(t, err)
		got := confirmed(t, i, &wire.ImportConfirm{Confirmation: check.Confirmation}, &memory{fails: map[string]error{"word": refused}})
		assert.Equal(t, wire.ImportStopped, got.State)
		assert.Equal(t, int64(resend.MostFailedInRow), got.Failed)
		assert.Len(t, got.Problems, mostProblems)
	})
}
