package plugins_test

import (
	"context"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/memoryfiles"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testenv/llm"
	"github.com/memhost/memhost/plugins"
)

// personCase is a slot on a memory with a model, and a live copy of its files.
type personCase struct {
	*host.Slot
	t    *testing.T
	stub *llm.Server
	dir  string
	ago  atomic.Int64 // how far the clock was moved
}

var ann = abi.MemoryScope{RunID: "r", PersonaID: "ann"}

func settle(t *testing.T, memory, config string) *personCase {
	s := &personCase{t: t, stub: llm.New(llm.Options{}), dir: t.TempDir()}
	server := httptest.NewServer(s.stub)
	t.Cleanup(server.Close)
	began := time.Now()
	now := func() time.Time {
		return time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC).Add(time.Since(began) + time.Duration(s.ago.Load()))
	}
	copies := memoryfiles.NewLive(memoryfiles.LiveOptions{DataDir: s.dir, On: true, Logger: hclog.NewNullLogger()})
	h, err := host.New(t.Context(), host.Options{DataDir: s.dir, CacheDir: testcache.Dir(), Now: now, FileCopies: copies})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close(context.Background())) })
	m, found := plugins.Find(memory)
	require.True(t, found)
	s.Slot, err = h.Open(t.Context(), host.ProviderConfig{Name: memory, Module: m.Wasm, Source: "builtin",
		Block: abi.Raw(`{"llm":{"base_url":"` + server.URL + `/v1","model":"stub"},"update_policy":"every_event"` + config + `}`)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	require.NoError(t, copies.Start(t.Context(), s.Slot, false))
	t.Cleanup(func() { copies.Close(context.Background()) })
	return s
}

func (s *personCase) record(id, text string) error {
	_, err := s.RecordEvent(s.t.Context(), &abi.MemoryEvent{EventID: id, RunID: ann.RunID, UserID: ann.PersonaID,
		SessionID: "s", TurnID: id, Timestamp: "2026-07-01T12:00:00Z",
		Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}})
	return err
}

// work lets the memory do its background work, over some hours.
func (s *personCase) work() {
	s.t.Helper()
	for range 3 {
		s.ago.Add(int64(3 * time.Hour))
		_, err := s.Readiness(s.t.Context(), &abi.ReadinessRequest{Scope: ann, TimeoutMS: 10_000})
		require.NoError(s.t, err)
	}
}

func (s *personCase) mutate(name string, params map[string]string) {
	s.t.Helper()
	raw := map[string]abi.Raw{}
	for key, value := range params {
		raw[key] = abi.Raw(`"` + value + `"`)
	}
	r, err := s.NativeMutation(s.t.Context(), &abi.NativeMutation{Scope: ann, Name: name, Reason: "test", Params: raw})
	require.NoError(s.t, err)
	require.Equal(s.t, "applied", r.Status, name)
}

func (s *personCase) retrieve() *abi.RetrieveResult {
	s.t.Helper()
	r, err := s.Retrieve(s.t.Context(), &abi.RetrieveRequest{Query: "tea", Scope: ann, SessionID: "asking"})
	require.NoError(s.t, err)
	return r
}

// forget forgets an item, or an event if id is empty.
func (s *personCase) forget(event, id string) {
	s.t.Helper()
	r := &abi.ForgetRequest{Scope: ann, Reason: "asked"}
	if r.NativeIDs = []string{id}; id == "" {
		r.NativeIDs, r.EventIDs = nil, []string{event}
	}
	receipt, err := s.Forget(s.t.Context(), r)
	require.NoError(s.t, err)
	require.Equal(s.t, abi.ForgetDone, receipt.Status, "%+v", receipt)
}

// holding is the id of the item that has a word.
func (s *personCase) holding(word string) string {
	s.t.Helper()
	for _, e := range s.retrieve().Evidence {
		if strings.Contains(e.Text, word) {
			return e.NativeID
		}
	}
	s.t.Fatalf("nothing shown has %s", word)
	return ""
}

// copiedText is the text of the long-term memory in the live copy.
func (s *personCase) copiedText() (text string) {
	s.t.Helper()
	require.NoError(s.t, filepath.WalkDir(filepath.Join(s.dir, "files"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) == ".git" {
			return fs.SkipDir
		}
		if name := filepath.Base(path); name == "MEMORY.md" || name == "USER.md" {
			var part []byte
			part, err = os.ReadFile(path)
			text += string(part)
		}
		return err
	}))
	return text
}

// TestAPersonsWordIsLast: background work never undoes what a person has restored, corrected, settled or forgotten,
// neither in the context nor in the live copy.
func TestAPersonsWordIsLast(t *testing.T) {
	const tea = `{"event_type":"add","subject":"user","predicate":"drinks","object":"oolong tea"}`
	for _, c := range []struct {
		part, memory, config string
		// said is recorded and processed first; waits is recorded afterwards, and waits for the model.
		said, waits string
		settle      func(*personCase)
		// model is the model's answer to waits; "" means the stub's default answer.
		model       string
		gone, shown string
	}{
		{part: "Dream, after a restore", memory: "layered_memory", config: `,"dream":{"after_session":true}`,
			said: "I like oolong tea.", gone: "oolong", settle: func(s *personCase) {
				r, err := s.NativeQuery(s.t.Context(), &abi.NativeQuery{Scope: ann, Name: "dream_log"})
				require.NoError(s.t, err)
				_, sha, _ := strings.Cut(string(r.Result), `"sha":"`)
				s.mutate("dream_restore", map[string]string{"sha": sha[:64]})
			}},
		{part: "Dream, after a file was forgotten", memory: "layered_memory", config: `,"dream":{"after_session":true}`,
			said: "I like oolong tea.", gone: "oolong", settle: func(s *personCase) { s.forget("", s.holding("oolong")) }},
		{part: "consolidation of messages that wait", memory: "rolling_summary", said: "I like oolong tea.",
			waits: "I like oolong tea, as I said.", gone: "oolong", shown: "- Drinks water.",
			settle: func(s *personCase) { s.mutate("write_memory", map[string]string{"content": "- Drinks water."}) }},
		{part: "consolidation, after MEMORY.md was forgotten", memory: "rolling_summary", said: "I like oolong tea.",
			waits: "I like oolong tea, as I said.", gone: "oolong",
			settle: func(s *personCase) { s.forget("", s.holding("oolong")) }},
		{part: "a retry of the model", memory: "rolling_summary", said: "I like oolong tea.",
			waits: "I like oolong tea, as I said.", gone: "oolong", shown: "- Drinks water.", settle: func(s *personCase) {
				require.NoError(s.t, s.stub.Fail(llm.Fault{Mode: llm.Status, Status: 503}))
				s.work()
				s.mutate("write_memory", map[string]string{"content": "- Drinks water."})
				s.work()
				s.stub.ClearFaults()
			}},
		{part: "extraction of turns that wait", memory: "ledger_memory", said: "tea", waits: "tea again", model: "[" + tea + "]",
			gone: "oolong", settle: func(s *personCase) {
				s.mutate("memory_forget", map[string]string{"subject": "user", "predicate": "drinks"})
			}},
		{part: "conflicts that the new fact wins", memory: "ledger_memory", config: `,"conflict_policy":"replace"`, said: "tea",
			waits: "tea again", model: "[" + tea + "]", gone: "oolong", shown: "water", settle: func(s *personCase) {
				s.mutate("memory_update", map[string]string{"id": s.holding("oolong"), "object": "water"})
			}},
		{part: "heartbeat", memory: "ledger_memory", config: `,"consolidate_minutes":1`, said: "tea", gone: "oolong",
			shown: "water", settle: func(s *personCase) {
				id := s.holding("oolong")
				s.mutate("create_branch", map[string]string{"name": "b"})
				s.mutate("memory_update", map[string]string{"id": id, "object": "water"})
				s.mutate("memory_update", map[string]string{"id": id, "object": "oolong tea, hot", "branch": "b"})
				s.mutate("merge", map[string]string{"source": "b", "on_conflict": "ours"})
			}},
		{part: "a turn that is sent again", memory: "ledger_memory", said: "tea", gone: "oolong", settle: func(s *personCase) {
			s.forget("said", "")
			assert.Equal(s.t, abi.CodeConflict, abi.CodeOf(s.record("said", "tea")))
		}},
		{part: "the live copy", memory: "rolling_summary", said: "I like oolong tea.", shown: "oolong", gone: "by hand",
			settle: func(s *personCase) {
				path := filepath.Join(s.dir, "files", "r", "ann", "memory", "MEMORY.md")
				require.Eventually(s.t, func() bool { return strings.Contains(s.copiedText(), "oolong") }, 20*time.Second, 50*time.Millisecond)
				require.NoError(s.t, os.WriteFile(path, []byte("written by hand"), 0o600))
				s.t.Cleanup(func() {
					kept, err := os.ReadFile(path + ".edited")
					require.NoError(s.t, err)
					assert.Equal(s.t, "written by hand", string(kept), "an edit of the copy is kept")
				})
			}},
	} {
		t.Run(c.part, func(t *testing.T) {
			t.Parallel()
			s := settle(t, c.memory, c.config)
			if c.memory == "ledger_memory" {
				require.NoError(t, s.stub.Fail(llm.Fault{Mode: llm.Say, Purpose: "nanobot.ledger", Content: "[" + tea + "]"}))
			}
			require.NoError(t, s.record("said", c.said))
			s.work()
			require.Contains(t, s.retrieve().FormattedContext, "oolong")
			if c.waits != "" {
				require.NoError(t, s.record("waits", c.waits))
			}
			c.settle(s)
			s.work()
			s.stub.ClearFaults()
			require.NoError(t, s.record("later", "My cat is called Zorvex."))
			s.work()
			text := s.retrieve().FormattedContext
			assert.NotContains(t, text, c.gone)
			assert.Contains(t, text, c.shown)
			assert.Contains(t, text, "Zorvex", "what is said later is remembered")
			require.Eventually(t, func() bool { return strings.Contains(s.copiedText(), "Zorvex") }, 20*time.Second, 50*time.Millisecond)
			assert.NotContains(t, s.copiedText(), c.gone)
			assert.Contains(t, s.copiedText(), c.shown)
		})
	}
}
