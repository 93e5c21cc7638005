package picoclaw_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/picoclaw"
)

func TestTheHandshakeTouchesNoSlot(t *testing.T) {
	block := make(chan struct{})
	defer close(block)
	s := &slot{retrieve: func(context.Context, *abi.RetrieveRequest) (string, error) { <-block; return "", nil }}
	a := start(t, s)
	a.send(before(7, "s", "t1", 1, "x")) // even a hanging call does not delay it
	require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":{"ok":true,"name":"memhost"}}`, string(a.call(hello).Text))
	a.call(hello) // the greeting of the first is in the log by now
	require.Contains(t, a.log.String(), "memory is on")
}

func TestTheContextStandsAtTheEndOfTheUsersMessage(t *testing.T) {
	s := new(slot)
	a := start(t, s, func(o *picoclaw.Options) { o.Budget = abi.ContextBudget{MaxTokens: new(int64)} })
	request := a.call(before(2, "sk_v1_x", "main-turn-1", 1, "which tea?\u2028 \"<b>\"")).modified(t)
	require.Equal(t, "which tea?\u2028 \"<b>\"\n\n"+memory, lastContent(t, request))
	require.Equal(t, []abi.RetrieveRequest{{Query: "which tea?\u2028 \"<b>\"",
		Scope: abi.MemoryScope{RunID: "run1", PersonaID: "user_a"}, SessionID: "sk_v1_x",
		Budget: abi.ContextBudget{MaxTokens: new(int64)}}}, s.asked)
}

func TestEverythingElseGoesBackByteForByte(t *testing.T) {
	const head = `{"zzz": 1.50e+01,"meta":{"TurnID":"t","SessionKey":"s","Iteration":1},"big":12345678901234567890123, "messages" : [ {"role":"system","content":"a\u003cb","system_parts":[1 ,2]},` +
		`{"role":"user","content":"earlier"},{"role":"assistant","content":null,"tool_calls":[{"id":"c"}]},{"role":"user","name":"x","content":"la\u0073t`
	const tail = `" ,"media":[ ]},{"role":"tool","content":"done"}] ,"tools":[{"a":"<>&"}],"options":{"temperature":0.70}}`
	a := start(t, new(slot), shared) // it has no sender
	got := a.call(`{"jsonrpc":"2.0","id":2,"method":"hook.before_llm","params":` + head + tail + `}`)
	want := `{"jsonrpc":"2.0","id":2,"result":{"action":"modify","request":` + head + `\n\n` +
		strings.ReplaceAll(strings.ReplaceAll(memory, `"`, `\"`), "\n", `\n`) + tail + "}}\n"
	require.Equal(t, want, string(got.Text))
}

func TestEveryIterationOfATurnGetsTheSameText(t *testing.T) {
	s := &slot{}
	s.retrieve = func(context.Context, *abi.RetrieveRequest) (string, error) {
		return fmt.Sprintf("memory %d", len(s.asked)), nil
	}
	a := start(t, s)
	for i := 1; i <= 3; i++ {
		require.Equal(t, "q\n\nmemory 1", lastContent(t, a.call(before(i, "s", "main-turn-1", i, "q")).modified(t)))
	}
	require.Equal(t, "steered\n\nmemory 1", lastContent(t,
		a.call(before(4, "s", "main-turn-1", 4, "steered")).modified(t)),
		"a follow-up in the middle of a turn is of that turn")
	require.Equal(t, "q\n\nmemory 2", lastContent(t, a.call(before(5, "s", "main-turn-2", 1, "q")).modified(t)))
	require.Equal(t, "q\n\nmemory 3", lastContent(t, a.call(before(6, "other", "main-turn-2", 1, "q")).modified(t)))
	a.send(ended("s", "main-turn-2", "2026-11-21T04:00:00Z", "completed", "q", "a"))
	require.Equal(t, "q\n\nmemory 4", lastContent(t, a.call(before(7, "s", "main-turn-2", 1, "q")).modified(t)),
		"an ended turn is forgotten")
	require.Equal(t, "r\n\nmemory 5", lastContent(t, a.call(before(8, "s", "main-turn-2", 1, "r")).modified(t)),
		"another question in a first iteration is another turn")
}

func TestASlotThatIsDown(t *testing.T) {
	s := &slot{retrieve: down, record: func(*abi.MemoryEvent) error {
		return abi.NewError(abi.CodeUnavailable, "no slot answers")
	}}
	dir := t.TempDir()
	a := startAt(t, dir, s)
	require.Nil(t, a.call(before(2, "s", "t1", 1, "q")).modified(t))
	require.Nil(t, a.call(before(3, "s", "t1", 2, "q")).modified(t))
	require.Len(t, s.asked, 1, "a turn that began without context goes on without")
	require.Equal(t, 1, strings.Count(a.log.String(), "context is absent in this turn"))
	a.send(ended("s", "t1", "2026-11-21T04:00:00Z", "completed", "q", "a"))
	a.send(ended("s", "t2", "2026-11-21T04:00:01Z", "completed", "q", "a"))
	a.end()
	require.Contains(t, a.log.String(), "turns wait on disk")
	require.Empty(t, s.told)

	s.retrieve, s.record = nil, nil
	b := startAt(t, dir, s) // the next run of the agent
	b.end()
	require.Len(t, s.told, 2)
	require.NotEqual(t, s.told[0].EventID, s.told[1].EventID)
	c := startAt(t, dir, s)
	c.send(ended("s", "t1", "2026-11-21T04:00:00Z", "completed", "q", "a"))
	c.end()
	require.Equal(t, s.told[0], s.told[2], "told again, it has the same id and content: the slot's ledger knows it")
}

func TestASlotThatIsSlow(t *testing.T) {
	s := &slot{retrieve: func(ctx context.Context, _ *abi.RetrieveRequest) (string, error) {
		<-ctx.Done()
		return "", abi.WrapError(abi.CodeTimeout, "too late", ctx.Err())
	}}
	a := start(t, s, func(o *picoclaw.Options) { o.Timeout = time.Millisecond })
	require.Nil(t, a.call(before(2, "s", "t1", 1, "q")).modified(t))
	require.Nil(t, a.call(before(3, "s", "t1", 2, "q")).modified(t))
	require.Len(t, s.asked, 1, "it costs a turn its time once")
	require.Contains(t, a.log.String(), "context is absent in this turn")
}

func TestADefectCostsTheContextOnly(t *testing.T) {
	a := start(t, &slot{retrieve: func(context.Context, *abi.RetrieveRequest) (string, error) { panic("oh") }})
	require.Nil(t, a.call(before(2, "s", "t1", 1, "q")).modified(t))
	require.Contains(t, a.log.String(), "this is a defect of memhost")
	a.call(hello)
}

func TestWhoseTurnsCount(t *testing.T) {
	for _, c := range []struct {
		name, session, sender string
		counts                bool
	}{
		{"the command line's human, whose sender is cron", "sk_v1_x", "cron", true},
		{"a chat", "agent:main:telegram:1", "12345", true},
		{"a session that only looks like a sub-turn", "my-subturn-1", "cron", true},
		{"a sub-turn, whose ParentTurnID is empty", "subturn-1", "cron", false},
		{"the heartbeat, by its session", "heartbeat", "x", false},
		{"the heartbeat, by its sender", "agent:main:heartbeat", "heartbeat", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := new(slot)
			a := start(t, s)
			request := a.call(strings.ReplaceAll(before(2, c.session, "t1", 1, "q"), `"sender_id":"cron"`,
				`"sender_id":"`+c.sender+`"`)).modified(t)
			require.Equal(t, c.counts, request != nil)
			a.send(strings.ReplaceAll(ended(c.session, "t1", "2026-11-21T04:00:00Z", "completed", "q", "a"),
				`"sender_id":"cron"`, `"sender_id":"`+c.sender+`"`))
			a.end()
			require.Equal(t, c.counts, len(s.told) == 1)
		})
	}
}

func TestASideQuestionHasNoIDsAndGetsContextAllTheSame(t *testing.T) {
	s := new(slot)
	a := start(t, s)
	for i := range 2 {
		require.NotNil(t, a.call(before(2+i, "", "", 0, "what is tea")).modified(t))
	}
	require.Len(t, s.asked, 2, "nothing tells one from the next")
	require.Equal(t, "btw", s.asked[0].SessionID)
}

func TestWhichTurnsAreRecorded(t *testing.T) {
	for _, c := range []struct {
		name, status, said, answered string
		messages                     int
	}{
		{"a completed turn", "completed", "q", "a", 2},
		{"without an answer's text", "completed", "q", "", 1},
		{"the model failed", "error", "q", "", 0},
		{"aborted", "aborted", "q", "half", 0},
		{"nobody said anything", "completed", "", "a", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := new(slot)
			a := start(t, s)
			a.send(ended("s", "main-turn-1", "2026-11-21T04:19:07.50002716Z", c.status, c.said, c.answered))
			a.end()
			if c.messages == 0 {
				require.Empty(t, s.told)
				return
			}
			require.Len(t, s.told, 1)
			require.Len(t, s.told[0].Messages, c.messages)
			require.Equal(t, "2026-11-21T04:19:07.50002716Z", s.told[0].Timestamp)
			require.Equal(t, "main-turn-1@2026-11-21T04:19:07.50002716Z", s.told[0].TurnID)
		})
	}
}

// A token may be for one session only.
func TestEverythingIsOfTheSessionThatTheHookWasGiven(t *testing.T) {
	s := new(slot)
	a := start(t, s, func(o *picoclaw.Options) { o.Session = "the-one" })
	a.call(before(2, "sk_v1_x", "main-turn-1", 1, "q"))
	a.call(before(3, "", "", 1, "a side question"))
	a.send(ended("sk_v1_x", "main-turn-1", "2026-11-21T04:19:07.50002716Z", "completed", "q", "a"))
	a.end()
	require.Len(t, s.asked, 2)
	require.Len(t, s.told, 1)
	for _, session := range []string{s.asked[0].SessionID, s.asked[1].SessionID, s.told[0].SessionID} {
		require.Equal(t, "the-one", session)
	}
}

func TestTurnIDsStartAgainInEachProcess(t *testing.T) {
	s, dir := new(slot), t.TempDir()
	for _, at := range []string{"2026-11-21T04:00:00Z", "2026-11-21T05:00:00Z"} {
		a := startAt(t, dir, s)
		a.send(ended("s", "main-turn-1", at, "completed", "q", "a"))
		a.end()
	}
	require.Len(t, s.told, 2)
	require.NotEqual(t, s.told[0].EventID, s.told[1].EventID)
	require.NotEqual(t, s.told[0].TurnID, s.told[1].TurnID)
}

func TestATurnIsOnDiskBeforeAnythingLaterIsAnswered(t *testing.T) {
	s := &slot{record: func(*abi.MemoryEvent) error { return abi.NewError(abi.CodeUnavailable, "down") }}
	a := start(t, s)
	a.send(ended("s", "t1", "2026-11-21T04:00:00Z", "completed", "q", "a"))
	a.call(hello)
	n, err := a.box.Waiting()
	require.NoError(t, err)
	require.Equal(t, 1, n, "a hook that is killed now loses nothing")
}

func TestAnAnswerBeyondOneMebibyteIsNeverSent(t *testing.T) {
	a := start(t, new(slot))
	with := func(id int, said, tools int) string {
		line := before(id, "s", fmt.Sprint("t", id), 1, strings.Repeat("x", said))
		return strings.Replace(line, `"options"`, `"tools":["`+strings.Repeat("y", tools)+`"],"options"`, 1)
	}
	request := a.call(with(2, 10, 10)).modified(t)
	require.NotNil(t, request["tools"])
	got := a.call(with(3, 10, 1<<20))
	require.Less(t, len(got.Text), 1<<20)
	request = got.modified(t)
	require.Nil(t, request["tools"], "PicoClaw keeps its own")
	require.Equal(t, "stub", request["model"])
	require.NotNil(t, request["options"])
	require.Contains(t, lastContent(t, request), memory)
	require.Nil(t, a.call(with(4, 1<<20, 10)).modified(t))
	require.Contains(t, a.log.String(), "longer than PicoClaw reads")
	require.NotNil(t, a.call(with(5, 1<<20-1800, 0)).modified(t), "a request that just fits")
	require.Less(t, len(a.call(with(6, 1<<20-1100, 0)).Text), 1<<20)
}

func TestMessagesThatHoldNoText(t *testing.T) {
	for name, messages := range map[string]string{
		"none":        `[]`,
		"no user":     `[{"role":"system","content":"s"}]`,
		"parts":       `[{"role":"user","content":[{"type":"text","text":"q"}]}]`,
		"null":        `[{"role":"user","content":null}]`,
		"absent":      `[{"role":"user"}]`,
		"an image":    `[{"role":"user","content":"","media":["x"]}]`,
		"blank":       `[{"role":"user","content":" \n"}]`,
		"not a list":  `{"role":"user"}`,
		"not objects": `["x"]`,
	} {
		t.Run(name, func(t *testing.T) {
			s := new(slot)
			a := start(t, s)
			require.Nil(t, a.call(`{"jsonrpc":"2.0","id":2,"method":"hook.before_llm","params":{"meta":{"TurnID":"t","SessionKey":"s"},"messages":`+messages+`}}`).modified(t))
			require.Empty(t, s.asked)
		})
	}
}

func TestOtherMessages(t *testing.T) {
	a := start(t, new(slot))
	for _, line := range []string{"", "hello", "[]", `{"jsonrpc":"2.0","method":"hook.of_tomorrow"}`,
		`{"method":"hook.runtime_event","params":{"kind":"agent.turn.end","payload":7}}`,
		`{"method":"hook.runtime_event","params":[]}`,
		`{"method":"hook.runtime_event","params":{"kind":"agent.turn.start"}}`} {
		a.send(line) // gets no answer and does no harm
	}
	for _, method := range []string{"hook.after_llm", "hook.before_tool", "hook.after_tool"} {
		require.JSONEq(t, `{"action":"continue"}`,
			string(a.call(`{"jsonrpc":"2.0","id":3,"method":"`+method+`","params":{"response":{"tool_calls":[{"name":"x"}]}}}`).Result))
	}
	got := a.call(`{"jsonrpc":"2.0","id":4,"method":"hook.approve_tool","params":{}}`)
	require.Equal(t, -32601, got.Error.Code)
	require.Empty(t, got.Result)
	require.Nil(t, a.call(`{"jsonrpc":"2.0","id":5,"method":"hook.before_llm","params":[]}`).modified(t))
	a.call(`{"jsonrpc":"2.0","id":6,"method":"hook.hello","params":{"version":2,"modes":[]}}`)
	a.call(`{"jsonrpc":"2.0","id":7,"method":"hook.hello","params":{"version":1,"modes":["observe"]}}`)
	a.end()
	require.Contains(t, a.log.String(), "another version of the hook protocol")
	require.Contains(t, a.log.String(), "context is absent: add")
}

func TestATurnsEndOfAnotherVersionIsSaid(t *testing.T) {
	s := new(slot)
	a := start(t, s)
	a.send(strings.ReplaceAll(ended("s", "t1", "2026-11-21T04:00:00Z", "completed", "q", "a"), "UserMessage", "Message"))
	a.send(strings.ReplaceAll(ended("s", "t2", "2026-11-21T04:00:00Z", "completed", "q", "a"), "Status", "State"))
	a.send(ended("s", "t3", "1790000000", "completed", "q", "a"))
	a.end()
	require.Len(t, s.told, 1, "a time that cannot be read costs no turn")
	require.Equal(t, 2, strings.Count(a.log.String(),
		"the turn was not recorded: PicoClaw sent what memhost does not know"))
	require.Contains(t, a.log.String(), "PicoClaw of commit cf67dd38 was checked")
}

func TestAConfigurationThatCannotBeUsedDoesNotStopTheAgent(t *testing.T) {
	a := start(t, nil, func(o *picoclaw.Options) {
		o.Slot, o.Box = nil, nil
		o.Problem = abi.NewError(abi.CodeInvalidArgument, "memory.scop: no such key").WithHint("did you mean scope?")
	})
	a.call(hello)
	require.Nil(t, a.call(before(2, "s", "t1", 1, "q")).modified(t))
	a.send(ended("s", "t1", "2026-11-21T04:00:00Z", "completed", "q", "a"))
	a.end()
	for _, said := range []string{"no memory in this run", "did you mean scope?", "the turn was not recorded"} {
		require.Contains(t, a.log.String(), said)
	}
}

// Two agents with one scope and one folder of waiting turns: each turn arrives once.
func TestTwoAgentsOnOneScope(t *testing.T) {
	s, dir := new(slot), t.TempDir()
	a, b := startAt(t, dir, s), startAt(t, dir, s)
	for i := range 5 {
		at := fmt.Sprintf("2026-11-21T04:00:%02d", i)
		a.send(ended("sk_v1_a", "main-turn-1", at+".1Z", "completed", "from a", "x"))
		b.send(ended("sk_v1_b", "main-turn-1", at+".2Z", "completed", "from b", "x"))
	}
	a.end()
	b.end()
	ids := map[string]int{}
	for _, e := range s.told {
		ids[e.EventID]++
	}
	require.Len(t, ids, 10, "what is sent twice has one id, by which the slot's ledger knows it")
}

// Whatever ids a model, a user or PicoClaw itself puts into a message: the scope is the hook's.
func TestNothingThatIsSaidLeadsToAnotherScope(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := new(slot)
		text := rapid.OneOf(rapid.SampledFrom([]string{"bob", "run1/user_b", "../user_b", `","persona_id":"bob`, "*",
			`<memory-context scope="run1/user_b">`}), rapid.StringN(1, 30, -1))
		scope := map[string]any{}
		for _, key := range []string{"agent_id", "channel", "chat_id", "sender_id", "session_key", "turn_id", "run_id",
			"persona_id", "user_id"} {
			scope[key] = text.Draw(rt, key)
		}
		said := text.Draw(rt, "said")
		params := map[string]any{"scope": scope, "persona_id": "bob", "run_id": "other",
			"meta": map[string]any{"SessionKey": scope["session_key"], "TurnID": "t", "AgentID": "bob",
				"Iteration": 1},
			"context":  map[string]any{"inbound": scope, "scope": scope},
			"messages": []any{map[string]any{"role": "user", "content": said, "name": "bob", "persona_id": "bob"}},
			"kind":     "agent.turn.end", "time": "2026-11-21T04:00:00Z",
			"payload": map[string]any{"Status": "completed", "UserMessage": said, "FinalContent": "x",
				"persona_id": "bob", "RunID": "other"}}
		body, err := json.Marshal(params)
		require.NoError(rt, err)
		a := start(t, s)
		a.call(`{"jsonrpc":"2.0","id":2,"method":"hook.before_llm","params":` + string(body) + `}`)
		a.send(`{"jsonrpc":"2.0","method":"hook.runtime_event","params":` + string(body) + `}`)
		a.end()
		for _, q := range s.asked {
			require.Equal(rt, abi.MemoryScope{RunID: "run1", PersonaID: "user_a"}, q.Scope)
			require.Empty(rt, q.Filters)
		}
		for _, e := range s.told {
			require.NoError(rt, e.Validate())
			require.Equal(rt, [3]string{"run1", "user_a", ""}, [3]string{e.RunID, e.UserID, e.AgentID})
		}
	})
}

func TestAnInputThatBreaks(t *testing.T) {
	a := start(t, new(slot))
	require.NoError(t, a.in.CloseWithError(errors.New("broken")))
	require.ErrorContains(t, <-a.done, "broken")

	b := start(t, new(slot))
	_, err := io.WriteString(b.in, hello) // a last line without its end
	require.NoError(t, err)
	require.NoError(t, b.in.Close())
	_, err = b.out.ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, <-b.done)
}

// request is a call of hook.before_llm with these user messages, and an answer of the model between them.
func request(id, iteration int, said ...string) string {
	var messages []string
	for _, text := range said {
		messages = append(messages, `{"role":"user","content":`+quoted(text)+`}`)
	}
	return strings.Replace(before(id, "sk_v1_x", "t1", iteration, "MESSAGES"), `{"role":"user","content":"MESSAGES"}`,
		strings.Join(messages, `,{"role":"assistant","content":"..."},`), 1)
}

func TestMessagesSentWhileTheAgentIsBusyAreRecordedWithTheirTurn(t *testing.T) {
	s := new(slot)
	a := start(t, s)
	a.call(request(2, 1, "earlier", "ok", "A"))
	a.call(request(3, 2, "earlier", "ok", "A", "B", "B", "[System: async:spawn] found it"))
	a.call(request(4, 3, "earlier", "ok", "A", "B", "B", "[System: async:spawn] found it", "ok"))
	a.send(ended("sk_v1_x", "t1", "2026-11-21T04:00:00Z", "completed", "A", "the answer to ok"))
	// The next turn has the history of the first, and nothing steered.
	a.call(strings.ReplaceAll(request(5, 1, "earlier", "ok", "A", "B", "ok", "C"), `"t1"`, `"t2"`))
	a.send(ended("sk_v1_x", "t2", "2026-11-21T04:01:00Z", "completed", "C", "c"))
	a.end()
	require.Equal(t, [][]string{{"A", "B", "ok", "the answer to ok"}, {"C", "c"}}, contents(s))
	require.Equal(t, abi.RoleUser, s.told[0].Messages[2].Role)
	require.Equal(t, abi.RoleAssistant, s.told[0].Messages[3].Role)
}

func TestAMessageThatWaitedBeforeTheFirstRequestIsRecorded(t *testing.T) {
	s := new(slot)
	a := start(t, s)
	a.call(request(2, 1, "A", "B"))
	a.send(ended("sk_v1_x", "t1", "2026-11-21T04:00:00Z", "completed", "A", "both"))
	a.end()
	require.Equal(t, [][]string{{"A", "B", "both"}}, contents(s))
}

func TestWhatPicoClawWroteItselfIsNotRecordedAsAPersonsWords(t *testing.T) {
	s := new(slot)
	a := start(t, s)
	cron := "agent:cron-backup-1b2c"
	require.NotNil(t, a.call(before(2, cron, "t1", 1, "make the backup")).modified(t), "a job has context")
	a.send(ended(cron, "t1", "2026-11-21T04:00:00Z", "completed", "make the backup", "made"))
	a.send(ended("sk_v1_x", "t2", "2026-11-21T04:00:00Z", "completed", "[System: async:spawn] found it", "It was found."))
	a.call(request(3, 1, "[System: async:spawn] found it", "Where?"))
	a.send(ended("sk_v1_x", "t1", "2026-11-21T04:01:00Z", "completed", "[System: async:spawn] found it", "In the cellar."))
	a.end()
	require.Equal(t, [][]string{{"Where?", "In the cellar."}}, contents(s))
}

// contents returns the texts of each event that the slot received.
func contents(s *slot) (events [][]string) {
	for _, e := range s.told {
		var texts []string
		for _, m := range e.Messages {
			texts = append(texts, *m.Content)
		}
		events = append(events, texts)
	}
	return events
}

func TestPlacesOfTheScopeKeepPeopleApart(t *testing.T) {
	s := new(slot)
	a := start(t, s, func(o *picoclaw.Options) {
		o.Scope = abi.MemoryScope{RunID: "{agent}", PersonaID: "{channel}-{sender_id}"}
	})
	for i, sender := range []string{"ann", "bob", "{session}"} {
		by := func(line string) string {
			return strings.ReplaceAll(line, `"sender_id":"cron"`, `"sender_id":"`+sender+`"`)
		}
		turn := fmt.Sprint("t", i)
		a.call(by(before(2, "group", turn, 1, "my {sender_id} is {agent}")))
		a.send(by(ended("group", turn, "2026-11-21T04:00:00Z", "completed", "my {sender_id} is {agent}", "ok")))
	}
	a.end()
	for i, persona := range []string{"cli-ann", "cli-bob", "cli-{session}"} {
		require.Equal(t, abi.MemoryScope{RunID: "main", PersonaID: persona}, s.asked[i].Scope)
		require.Equal(t, []string{"main", persona}, []string{s.told[i].RunID, s.told[i].UserID})
		require.Equal(t, "my {sender_id} is {agent}", *s.told[i].Messages[0].Content)
	}
	require.NotContains(t, a.log.String(), "several people")
}
