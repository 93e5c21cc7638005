package agenthook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/agenthook"
	"github.com/memhost/memhost/internal/doors/outbox"
	"github.com/memhost/memhost/internal/test/logs"
)

const memory = "<memory-context backend=\"probe\" scope=\"run1/ann\">\n- likes oolong tea\n</memory-context>"

// slot answers every question with text, and keeps its requests. fail, if set, is called first. A hanging one answers
// no question.
type slot struct {
	mu        sync.Mutex
	text      string
	fail      error
	hangs     bool
	asked     []abi.RetrieveRequest
	formatted []int64
	told      []abi.MemoryEvent
	able      report.Capabilities
}

func (s *slot) Capabilities(context.Context) (*report.Capabilities, error) { return &s.able, s.fail }

func (s *slot) Retrieve(ctx context.Context, q *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, *q)
	if s.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if s.fail != nil {
		return nil, s.fail
	}
	return &abi.RetrieveResult{FormattedContext: s.text}, nil
}

// FormatContext returns four characters for each token.
func (s *slot) FormatContext(_ context.Context, q *abi.FormatRequest) (*abi.FormatResult, error) {
	s.formatted = append(s.formatted, *q.Budget.MaxTokens)
	return &abi.FormatResult{FormattedContext: strings.Repeat("word", int(*q.Budget.MaxTokens))}, nil
}

func (s *slot) RecordEvent(_ context.Context, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return nil, s.fail
	}
	for i := range s.told {
		if s.told[i].EventID == e.EventID {
			return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted, Duplicate: true}, nil
		}
	}
	s.told = append(s.told, *e)
	return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted}, nil
}

func (s *slot) Mode(context.Context) (*abi.ModeReceipt, error) { return new(abi.ModeReceipt), nil }

// agent stands in for Claude Code or Codex: each event is handled by a new hook, with the same folders.
type agent struct {
	t      *testing.T
	slot   *slot
	folder string
	now    time.Time
	log    logs.Buffer
	change func(o *agenthook.Options)
}

func start(t *testing.T) *agent {
	return &agent{t: t, slot: &slot{text: memory}, folder: t.TempDir(),
		now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
}

// tell runs the hook of one event and returns its answer.
func (a *agent) tell(payload string) (answer struct {
	Message  string `json:"systemMessage"`
	Specific struct {
		Event   string `json:"hookEventName"`
		Context string `json:"additionalContext"`
	} `json:"hookSpecificOutput"`
}) {
	a.t.Helper()
	a.now = a.now.Add(time.Minute)
	if out := a.raw(payload); out != "" {
		require.NoError(a.t, json.Unmarshal([]byte(out), &answer), out)
	}
	return answer
}

func (a *agent) raw(payload string) string {
	a.t.Helper()
	log := hclog.New(&hclog.LoggerOptions{Output: &a.log, Level: hclog.Info})
	box, err := outbox.Open(filepath.Join(a.folder, "outbox"), outbox.Options{Logger: log})
	require.NoError(a.t, err)
	tokens := int64(agenthook.DefaultMaxTokens)
	o := agenthook.Options{Agent: "claude-code", Slot: a.slot, Box: box, Folder: filepath.Join(a.folder, "prompts"),
		Person: "ann",
		Scope:  abi.MemoryScope{RunID: "run1", PersonaID: "{person}"}, Budget: abi.ContextBudget{MaxTokens: &tokens},
		Now: func() time.Time { return a.now }, Logger: log}
	o.Deliver = func() { box.Deliver(context.Background(), a.slot) }
	if a.change != nil {
		a.change(&o)
	}
	var out bytes.Buffer
	agenthook.Run(context.Background(), o, strings.NewReader(payload), &out)
	return out.String()
}

func prompt(session, text string) string {
	return fmt.Sprintf(`{"session_id":%q,"transcript_path":"/t.jsonl","cwd":"/","permission_mode":"default","hook_event_name":"UserPromptSubmit","prompt":%q}`, session, text)
}

func stop(session, answer string) string {
	return fmt.Sprintf(`{"session_id":%q,"transcript_path":"/t.jsonl","cwd":"/","permission_mode":"default","hook_event_name":"Stop","stop_hook_active":false,`+
		`"last_assistant_message":%q,"background_tasks":[],"session_crons":[]}`, session, answer)
}

// words returns what the slot received, as "role: text" lines, one string for each event.
func (a *agent) words() (events []string) {
	for _, e := range a.slot.told {
		var lines []string
		for _, m := range e.Messages {
			lines = append(lines, string(m.Role)+": "+*m.Content)
		}
		events = append(events, strings.Join(lines, "\n"))
	}
	return events
}

func TestAPromptGetsContextAndItsTurnIsRecordedAtStop(t *testing.T) {
	a := start(t)
	answer := a.tell(prompt("s1", "Which tea do I like?"))
	require.Equal(t, memory, answer.Specific.Context)
	require.Equal(t, "UserPromptSubmit", answer.Specific.Event)
	require.Empty(t, answer.Message)
	require.Equal(t, abi.MemoryScope{RunID: "run1", PersonaID: "ann"}, a.slot.asked[0].Scope)
	require.Equal(t, "Which tea do I like?", a.slot.asked[0].Query)
	require.Empty(t, a.words(), "nothing before the turn's end")
	require.Empty(t, a.raw(stop("s1", "Oolong.")), "a Stop hook that prints could keep the agent from stopping")
	require.Equal(t, []string{"user: Which tea do I like?\nassistant: Oolong."}, a.words())
	require.NoError(t, a.slot.told[0].Validate())
	require.Equal(t, "s1", a.slot.told[0].SessionID)
	a.tell(stop("s1", "Oolong, as I said."))
	require.Len(t, a.slot.told, 1, "a turn that another Stop hook prolongs was recorded at its first end")
}

func TestWhatNoPersonWroteIsNotRecordedAndGetsNoContext(t *testing.T) {
	a := start(t)
	for _, text := range []string{"/loop 5m check the build", "/loop", "/loop\n5m check", "/proactive 5m check", "  \n",
		"<task-notification>\n<task-id>b1</task-id>\n<result>done</result>\n</task-notification>\n",
		"<teammate-message teammate_id=\"x\">hello</teammate-message>"} {
		require.Empty(t, a.raw(prompt("s1", text)), text)
		a.tell(stop("s1", "ok"))
	}
	// The prompts that /loop submits later look like a person's; the Stop hook has announced them before.
	a.tell(`{"session_id":"s1","hook_event_name":"Stop","last_assistant_message":"Looping.","session_crons":[{"id":"c1","schedule":"*/5 * * * *","recurring":true,"prompt":"check the build"}]}`)
	require.Empty(t, a.raw(prompt("s1", "check the build")))
	a.tell(stop("s1", "green"))
	for _, payload := range []string{prompt("s1", "find it"), stop("s1", "found")} {
		a.tell(strings.Replace(payload, "{", `{"agent_id":"a1","agent_type":"Explore",`, 1))
	}
	require.Empty(t, a.words())
	require.Empty(t, a.slot.asked)
	a.tell(prompt("s1", "What does <task-notification> mean?"))
	a.tell(stop("s1", "A result."))
	require.Len(t, a.words(), 1)
}

func TestNothingIsLostAndNothingDoubledWhileTheSlotIsDown(t *testing.T) {
	a := start(t)
	a.slot.fail = abi.NewError(abi.CodeUnavailable, "no slot answers").WithReason("no_slot")
	for i := range 24 {
		session := fmt.Sprintf("s%d", i%4)
		answer := a.tell(prompt(session, fmt.Sprintf("fact %d", i)))
		require.Empty(t, answer.Specific.Context)
		require.Equal(t, i < 4, strings.Contains(answer.Message, "no memory for now"),
			"it is said once in each session, turn %d", i)
		a.tell(stop(session, fmt.Sprintf("noted %d", i)))
	}
	a.slot.fail = nil
	answer := a.tell(`{"session_id":"s9","cwd":"/","hook_event_name":"SessionStart","source":"startup"}`)
	require.Equal(t, memory, answer.Specific.Context)
	require.Len(t, a.slot.told, 24)
	for i, words := range a.words() {
		require.Equal(t, fmt.Sprintf("user: fact %d\nassistant: noted %d", i, i), words)
	}
}

func TestPromptsOfOneTurnAndInterruptedOnesAreRecordedTogether(t *testing.T) {
	a := start(t)
	a.tell(prompt("s1", "Plan a trip."))
	a.tell(prompt("s2", "Another session."))
	a.tell(prompt("s1", "To Kyoto."))
	a.tell(stop("s1", "Kyoto it is."))
	require.Equal(t, []string{"user: Plan a trip.\nuser: To Kyoto.\nassistant: Kyoto it is."}, a.words())
	a.tell(`{"session_id":"s2","hook_event_name":"SessionEnd","reason":"prompt_input_exit"}`)
	require.Equal(t, "user: Another session.", a.words()[1])
}

func TestAKilledAgentsPromptIsRecordedByALaterSession(t *testing.T) {
	a := start(t)
	a.tell(prompt("s1", "I moved to Lyon."))
	folders, err := os.ReadDir(filepath.Join(a.folder, "prompts"))
	require.NoError(t, err)
	killed := filepath.Join(a.folder, "prompts", folders[0].Name())
	require.NoError(t, os.Chtimes(killed, a.now, a.now))
	a.now = a.now.Add(25 * time.Hour)
	a.tell(`{"session_id":"s2","cwd":"/","hook_event_name":"SessionStart","source":"startup"}`)
	require.Equal(t, []string{"user: I moved to Lyon."}, a.words())
	require.NoDirExists(t, killed)
}

func TestTwoHooksOfOneEventRecordItOnce(t *testing.T) {
	a := start(t)
	a.tell(prompt("s1", "yes"))
	a.now = a.now.Add(100 * time.Millisecond)
	a.raw(prompt("s1", "yes"))
	a.tell(stop("s1", "Done."))
	a.raw(stop("s1", "Done."))
	require.Equal(t, []string{"user: yes\nassistant: Done."}, a.words())

	a.tell(prompt("s1", "go on"))
	a.now = a.now.Add(10 * time.Second)
	a.tell(prompt("s1", "go on"))
	a.tell(stop("s1", "Done."))
	require.Equal(t, "user: go on\nuser: go on\nassistant: Done.", a.words()[1], "said twice")
}

func TestCodexTurnsAreKeptApartByTheirIds(t *testing.T) {
	a := start(t)
	a.change = func(o *agenthook.Options) { o.Agent = "codex" }
	turn := func(id, event, rest string) string {
		return fmt.Sprintf(`{"cwd":"/","hook_event_name":%q,"model":"m","permission_mode":"default","session_id":"c1","transcript_path":null,"turn_id":%q,%s}`, event, id, rest)
	}
	a.tell(turn("t1", "UserPromptSubmit", `"prompt":"one"`))
	a.tell(turn("t2", "UserPromptSubmit", `"prompt":"two"`))
	a.tell(turn("t1", "Stop", `"stop_hook_active":false,"last_assistant_message":"first"`))
	a.tell(turn("t2", "Stop", `"stop_hook_active":false,"last_assistant_message":null`))
	require.Equal(t, []string{"user: one\nassistant: first", "user: two"}, a.words())
	require.Contains(t, a.log.String(), "no last_assistant_message")
	require.True(t, strings.HasPrefix(a.slot.told[0].EventID, "codex-"))
}

func TestAContextThatTheAgentWouldCutIsFormattedForFewerTokens(t *testing.T) {
	a := start(t)
	a.slot.text = strings.Repeat("x", 20_000)
	context := a.tell(prompt("s1", "long")).Specific.Context
	require.Len(t, a.slot.formatted, 1)
	require.Less(t, len(context), 10_000)
	require.NotEmpty(t, context)
}

func TestSessionStartAsksForTheProjectOrAfterACompactionForTheLastPrompt(t *testing.T) {
	a := start(t)
	a.change = func(o *agenthook.Options) { o.Dir = filepath.Join(a.folder, "teahouse") }
	a.tell(`{"session_id":"s1","hook_event_name":"SessionStart","source":"startup"}`)
	a.tell(prompt("s1", "Which tea?"))
	a.tell(`{"session_id":"s1","hook_event_name":"PreCompact","trigger":"auto","custom_instructions":""}`)
	a.tell(`{"session_id":"s1","hook_event_name":"SessionStart","source":"compact"}`)
	a.tell(`{"session_id":"s1","hook_event_name":"SessionStart","source":"clear"}`)
	queries := make([]string, 0, 4)
	for _, q := range a.slot.asked {
		queries = append(queries, q.Query)
	}
	project := "What is known about the project teahouse?"
	require.Equal(t, []string{project, "Which tea?", "Which tea?", project}, queries)
}

func TestAnInputOfAnotherVersionIsSaidAndChangesNothing(t *testing.T) {
	for payload, want := range map[string]string{
		`{"session_id":"s1","hook_event_name":"UserPromptSubmit"}`: "lacks prompt",
		`{"hook_event_name":"Stop"}`:                               "lacks session_id",
		`{"session_id":"s1"}`:                                      "lacks hook_event_name",
		`{"session_id":7,"hook_event_name":"Stop"}`: "lacks session_id " +
			"(session_id is a JSON number)",
		`{"session_id":"s1","hook_event_name":"UserPromptSubmit","prompt":{}}`: "lacks prompt (prompt is a JSON object)",
		`[]`:       "not the JSON object",
		`not JSON`: "not the JSON object",
		``:         "not the JSON object",
		`{"session_id":"s1","hook_event_name":"Notification"}`: "does nothing at this event",
	} {
		a := start(t)
		shown := a.raw(payload)
		if strings.Contains(payload, "UserPromptSubmit") {
			require.Contains(t, shown, `{"systemMessage":"memhost: no memory: the hook's input lacks prompt`)
			require.Contains(t, shown, `; this version`)
		} else if strings.Contains(want, "not the JSON") {
			require.Contains(t, shown, `{"systemMessage":"memhost: no memory: the hook's input is not the JSON object`)
		} else if strings.Contains(payload, `"Stop"`) {
			require.Contains(t, shown, `{"systemMessage":"memhost: this turn is not recorded: the hook's input lacks session_id`)
		} else if strings.Contains(want, "lacks") {
			require.Contains(t, shown, `{"systemMessage":"memhost: no memory: the hook's input lacks hook_event_name`)
		} else {
			require.Empty(t, shown, "an event that memhost does not need")
		}
		require.Contains(t, a.log.String(), want, payload)
		require.Empty(t, a.words())
	}
}

// TestAFieldOfAnotherTypeLosesNothingElse: a newer agent may write a field in another way.
func TestAFieldOfAnotherTypeLosesNothingElse(t *testing.T) {
	a := start(t)
	said := a.tell(`{"session_id":"s1","cwd":7,"source":[],"hook_event_name":"UserPromptSubmit",` +
		`"prompt":"I like oolong."}`)
	require.Equal(t, memory, said.Specific.Context)
	require.Contains(t, a.log.String(), "cwd is a JSON number")
	a.tell(`{"session_id":"s1","hook_event_name":"Stop","last_assistant_message":"Noted.","session_crons":{"a":1}}`)
	require.Equal(t, []string{"user: I like oolong.\nassistant: Noted."}, a.words())
	a.tell(prompt("s1", "And rooibos."))
	require.Equal(t, "memhost: this turn is recorded without its answer: last_assistant_message is a JSON array",
		a.tell(`{"session_id":"s1","hook_event_name":"Stop","last_assistant_message":["Noted."]}`).Message)
	require.Len(t, a.words(), 2)
	a.tell(`{"session_id":"s1","agent_id":9,"hook_event_name":"UserPromptSubmit","prompt":"Look up teas."}`)
	a.tell(stop("s1", "Found."))
	require.Len(t, a.words(), 2, "a sub-agent")
}

func TestAConfigurationThatCannotBeUsedIsSaidAtTheStartOfASession(t *testing.T) {
	a := start(t)
	a.change = func(o *agenthook.Options) {
		*o = agenthook.Options{Problem: fmt.Errorf("memory.condition: no such provider"), Logger: o.Logger}
	}
	require.Contains(t, a.tell(`{"session_id":"s1","hook_event_name":"SessionStart"}`).Message, "no such provider")
	require.Empty(t, a.raw(prompt("s1", "hello")))
}

func TestASessionMayReadOnly(t *testing.T) {
	a := start(t)
	a.change = func(o *agenthook.Options) { o.NoRecord = true }
	require.Equal(t, memory, a.tell(prompt("s1", "Which tea?")).Specific.Context)
	a.tell(stop("s1", "Oolong."))
	require.Empty(t, a.words())
}

func TestProjectsAreRepositoriesWithTheirWorkTrees(t *testing.T) {
	dir := t.TempDir()
	main, tree := filepath.Join(dir, "tea"), filepath.Join(dir, "tea-fix")
	require.NoError(t, os.MkdirAll(filepath.Join(main, ".git", "worktrees", "fix"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(main, "docs"), 0o755))
	require.NoError(t, os.MkdirAll(tree, 0o755))
	real, err := filepath.EvalSymlinks(main)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(tree, ".git"),
		[]byte("gitdir: "+filepath.ToSlash(real)+"/.git/worktrees/fix\n"), 0o600))
	want := agenthook.Project(main)
	require.Regexp(t, `^tea-[0-9a-f]{8}$`, want)
	require.Equal(t, want, agenthook.Project(filepath.Join(main, "docs")))
	require.Equal(t, want, agenthook.Project(tree))
	require.NotEqual(t, want, agenthook.Project(dir))
}

// TestANewSessionIsToldThatNothingIsKept: the warning about a control that keeps nothing is shown once, when a session
// starts, and not if the session is not recorded anyway.
func TestANewSessionIsToldThatNothingIsKept(t *testing.T) {
	nothing := report.Capabilities{Provider: "no_memory", ConditionKind: abi.KindControl}
	verbatim := report.Capabilities{Provider: "bm25", ConditionKind: abi.KindControl, NativeIngestModes: []string{"verbatim"}}
	foreign := report.Capabilities{Provider: "mine", ConditionKind: abi.KindArchitecture}
	for _, c := range []struct {
		name     string
		able     report.Capabilities
		noRecord bool
		told     bool
	}{{"keeps nothing", nothing, false, true}, {"read only", nothing, true, false}, {"a control that keeps", verbatim, false, false},
		{"an architecture that names no modes", foreign, false, false}} {
		t.Run(c.name, func(t *testing.T) {
			a := start(t)
			a.slot.able, a.change = c.able, func(o *agenthook.Options) { o.NoRecord = c.noRecord }
			said := a.tell(`{"session_id":"s","cwd":"/","hook_event_name":"SessionStart","source":"startup"}`).Message
			require.Equal(t, c.told, strings.Contains(said, "no_memory serves, which keeps nothing"), said)
			require.Empty(t, a.tell(prompt("s", "I like tea.")).Message, "once")
		})
	}
}
