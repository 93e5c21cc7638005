package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memhost/memhost/abi/wirejson"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/testenv/llm"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/chat"
	"github.com/memhost/memhost/sdk/sdktest"
)

func TestB1BudgetByTokens(t *testing.T) {
	const limits = `"profile":"local","context_window_tokens":12000,"max_output_tokens":2000,"safety_buffer_tokens":1000`
	for overhead, due := range map[int]bool{8999: false, 9000: true} {
		// The one message takes 4 tokens for its frame and 5 for its text by bytes4.
		b := newBench(t, fmt.Sprintf(`%s,"prompt_overhead_tokens":%d`, limits, overhead-9))
		receipt := b.Record(b.Turn("s1", strings.Repeat("x", 20)))
		assert.Equal(t, due, receipt.Status == abi.StatusPending, "check B1: size %d", overhead)
	}
	budget := nanobot.TokenBudget{Window: 12000, Output: 2000, Safety: 1000, Ratio: 0.5}
	assert.Equal(t, []int64{9000, 4500}, []int64{budget.Limit(), budget.Target()}, "check B1")
}

func turnsOf(n int, tokens int64) (messages []nanobot.Message, sizes []int64) {
	for range n {
		messages = append(messages, nanobot.Message{Role: "user"}, nanobot.Message{Role: "assistant"})
		sizes = append(sizes, tokens/2, tokens/2)
	}
	return messages, sizes
}

func TestB2B3BoundaryLiesBetweenTurns(t *testing.T) {
	messages, sizes := turnsOf(10, 1000)
	at, removed := nanobot.Boundary(messages, sizes, 5500)
	assert.Equal(t, 12, at, "check B2: the 7th user message")
	assert.EqualValues(t, 6000, removed)
	messages, sizes = turnsOf(1, 10000)
	at, _ = nanobot.Boundary(messages, sizes, 5500)
	assert.Zero(t, at, "check B3: a single turn has no boundary")
}

func TestB2OneRoundIsEnough(t *testing.T) {
	b := newBench(t, `"profile":"local","context_window_tokens":12000,"max_output_tokens":2000,"safety_buffer_tokens":1000,"prompt_overhead_tokens":0,"dream":{"enabled":false}`)
	text := strings.Repeat("x", 4*496)
	for range 10 {
		b.Record(b.Turn("s1", text, "assistant: "+text))
	}
	b.Fail(llm.Fault{Mode: llm.Say, Content: "- [durable] The user says x."})
	b.Wait()
	assert.Equal(t, 1, b.Calls(), "check B2")
	assert.Equal(t, 12, b.Session("s1").Pointer)
}

func TestB3ASingleTurnIsLeftAlone(t *testing.T) {
	b := newBench(t, `"profile":"local","context_window_tokens":2000,"max_output_tokens":100,"safety_buffer_tokens":100,"prompt_overhead_tokens":0`)
	b.Record(b.Turn("s1", strings.Repeat("x", 40000)))
	assert.Equal(t, abi.ReadinessReady, b.Wait().Status)
	assert.Zero(t, b.Calls(), "check B3")
	assert.Zero(t, b.Session("s1").Pointer)
}

func TestB4NoToolGroupIsSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var messages []nanobot.Message
		var sizes []int64
		for turn := range rapid.IntRange(0, 8).Draw(t, "turns") {
			messages = append(messages, nanobot.Message{Role: "user"})
			for call := range rapid.IntRange(0, 3).Draw(t, "calls") {
				id := fmt.Sprint(turn, ".", call)
				messages = append(messages, nanobot.Message{Role: "assistant", ToolCalls: []abi.ToolCall{{ID: id}}},
					nanobot.Message{Role: "tool", ToolCallID: id})
			}
		}
		for range messages {
			sizes = append(sizes, rapid.Int64Range(0, 100).Draw(t, "size"))
		}
		at, _ := nanobot.Boundary(messages, sizes, rapid.Int64Range(1, 500).Draw(t, "wanted"))
		if at == 0 {
			return
		}
		require.Equal(t, "user", messages[at].Role, "check B4")
		require.Len(t, nanobot.Replay(messages[:at], 0), at, "check B4: what is cut off is whole")
		require.Len(t, nanobot.Replay(messages[at:], 0), len(messages)-at)
	})
}

const everyEvent = `"update_policy":"every_event","dream":{"after_session":false}`

func TestB5B7FailuresBecomeRawEntries(t *testing.T) {
	for name, f := range map[string]llm.Fault{"check B5: the model is down": {Mode: llm.Status, Status: 503},
		"check B7: finish length": {Mode: llm.Length},
		"check B7: a tool call":   {Mode: llm.ToolAnswer}, "check B7: a blank answer": {Mode: llm.Empty},
		"only thinking": {Mode: llm.Thinking}, "half a body": {Mode: llm.CutBody}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, everyEvent)
			b.Record(b.Turn("s1", "I like oolong tea.", "assistant: Noted."))
			b.Fail(f)
			b.Wait()
			require.Len(t, b.history(), 1)
			assert.True(t, strings.HasPrefix(b.history()[0].Content, "[RAW] 2 messages\n"), b.history()[0].Content)
			assert.Equal(t, "s1", b.history()[0].Session)
			assert.Equal(t, 2, b.Session("s1").Pointer)
			asked := b.Calls()
			b.Wait()
			assert.Equal(t, asked, b.Calls(), "the next trigger does not repeat those messages")
			assert.Contains(t, b.Find("s2", "?", abi.ContextBudget{}).FormattedContext, "oolong")
		})
	}
}

func TestOnFailureRetryKeepsThePointer(t *testing.T) {
	b := newBench(t, everyEvent+`,"on_failure":"retry"`)
	b.Record(b.Turn("s1", "I like oolong tea."))
	b.Fail(llm.Fault{Mode: llm.Empty})
	assert.Equal(t, abi.ReadinessFailed, b.Wait().Status)
	assert.Empty(t, b.history())
	assert.Zero(t, b.Session("s1").Pointer)
	b.Stub.ClearFaults()
	b.Later(time.Hour)
	b.Wait()
	assert.Len(t, b.history(), 1)
}

func TestB6NothingWorthKeeping(t *testing.T) {
	b := newBench(t, everyEvent)
	b.Record(b.Turn("s1", "Hello?"))
	assert.Equal(t, abi.ReadinessReady, b.Wait().Status)
	assert.Equal(t, 1, b.Calls())
	assert.Empty(t, b.history(), "check B6: no entry")
	assert.Equal(t, 1, b.Session("s1").Pointer)

	kept := b.Turn("s1", "I like oolong tea.")
	b.Record(kept)
	b.Wait()
	greeting := b.Turn("s2", "Hello?")
	b.Record(greeting)
	b.Wait()
	ready := b.Ready(greeting.EventID, kept.EventID)
	assert.Equal(t, []string{greeting.EventID}, ready.EventIDs.Empty, "events that yielded nothing have names")
	assert.Equal(t, abi.ReadinessReady, ready.Status)
}

func TestB8AnEntryThatCannotBeStoredMovesNothing(t *testing.T) {
	b := newBench(t, everyEvent)
	b.Record(b.Turn("s1", "I like oolong tea."))
	_, err := sdktest.Do(b.Host, abi.OpWaitUntilReady, scope, func(c *sdk.Call,
		r *abi.WaitRequest) (*abi.BackendReadiness, error) {
		_, err := plugin.WaitUntilReady(c, r)
		require.NoError(t, err)
		return nil, abi.NewError(abi.CodeUnavailable, "disk full")
	}, &abi.WaitRequest{})
	require.Error(t, err)
	assert.Zero(t, b.Session("s1").Pointer, "check B8: entry and pointer are one transaction")
	assert.Empty(t, b.history())
}

// TestB9RoundsAreBounded uses summaries as long as the messages they replace, so no number of rounds suffices.
func TestB9RoundsAreBounded(t *testing.T) {
	b := newBench(t, `"profile":"local","context_window_tokens":12000,"max_output_tokens":2000,"safety_buffer_tokens":1000,"prompt_overhead_tokens":3000,"consolidation_ratio":0.95,`+
		`"max_rounds":5,"dream":{"enabled":false}`)
	for range 14 {
		b.Record(b.Turn("s1", strings.Repeat("word", 500))) // 500 tokens and 4 by the estimate of four bytes
	}
	b.Fail(llm.Fault{Mode: llm.Say, Content: strings.Repeat("word", 500)})
	b.Wait()
	assert.Equal(t, 5, b.Calls(), "check B9: six rounds would be needed, it stops at five")
	assert.Less(t, b.Session("s1").Pointer, 13, "there was more to archive")
}

func TestB10B11Cursors(t *testing.T) {
	b := newBench(t, "")
	for range 100 {
		b.entries("x")
	}
	for i, x := range b.history() {
		require.Equal(t, i+1, x.Cursor, "check B10")
	}
	for _, c := range []struct {
		name, cursor string
		lines        []string
		next         int64
	}{
		{"text on the last line", "", []string{`5`, `"7"`}, 6}, {"true", "", []string{`5`, `true`}, 6}, {"negative", "",
			[]string{`5`, `-1`}, 6}, {"missing", "", []string{`5`, `null`}, 6},
		{".cursor is larger", "40", []string{`35`}, 41}, {".cursor is garbage", "forty", []string{`35`},
			36}, {"nothing at all", "", nil, 1},
	} {
		t.Run("check B11: "+c.name, func(t *testing.T) {
			b := newBench(t, "")
			b.write(func(m *memory) {
				for _, cursor := range c.lines {
					m.Append(historyLog, []byte(`{"cursor":`+cursor+`,"timestamp":"2026-01-01 00:00","content":"x"}`))
				}
				if c.cursor != "" {
					m.Put("cursor", []byte(c.cursor), 0)
				}
				next, _ := m.nextCursor()
				assert.Equal(t, c.next, next)
			})
		})
	}
}

func TestB12Compaction(t *testing.T) {
	for dreamt, first := range map[int64]int{4: 5, 9: 8} {
		b := newBench(t, `"max_history_entries":3`)
		b.entries(teas(10)...)
		b.write(func(m *memory) { m.compact(dreamt) })
		kept := b.history()
		assert.Equal(t, []int{first, 10}, []int{kept[0].Cursor, kept[len(kept)-1].Cursor}, "check B12: Dream has read %d",
			dreamt)
		b.entries(teas(1)...)
		assert.Equal(t, 11, b.history()[len(b.history())-1].Cursor, "the cursor is not lowered")
	}
}

func TestB13B14EntriesAreBoundedAndStripped(t *testing.T) {
	for most, length := range map[int]int{maxSummary: 20000, maxRaw: 20000, maxEntry: 70000} {
		text := prepare(strings.Repeat("x", length), most)
		assert.Equal(t, strings.Repeat("x", most)+"\n... (truncated)", text, "check B13")
	}
	for _, text := range []string{"<think>hm</think>", "<thinking>hm", "<think>a</think><thought>b</thought>\n",
		"</think>"} {
		assert.Empty(t, prepare(text, maxSummary), "check B14: %s", text)
	}
}

func (b *bench) dream() *abi.MutationReceipt {
	b.T.Helper()
	r, err := b.Mutate("dream", `{}`)
	require.NoError(b.T, err)
	return r
}

func TestB16DreamGoesBatchByBatch(t *testing.T) {
	b := newBench(t, "")
	b.entries(teas(45)...)
	for _, cursor := range []string{"20", "40", "45"} {
		assert.Equal(t, "applied", b.dream().Status)
		assert.Equal(t, cursor, b.dreamt(), "check B16")
	}
	assert.Equal(t, `"nothing_to_do"`, string(b.dream().Trace.Details["reason"]))
	assert.Contains(t, b.Files()[userFile], "tea number 45")
}

func TestB17B18B19HowARunEnds(t *testing.T) {
	b := newBench(t, `"dream":{"max_iterations":1}`)
	b.entries(teas(3)...)
	r := b.dream()
	assert.Equal(t, `"max_iterations"`, string(r.Trace.Details["reason"]))
	assert.Equal(t, "0", b.dreamt(), "check B17: the cursor stays")
	assert.NotEmpty(t, r.NativeIDs, "check B17: a version of what changed")

	b = newBench(t, "")
	b.entries("- [skip] nothing")
	r = b.dream()
	assert.Equal(t, "1", b.dreamt(), "check B18: completed without an edit")
	assert.Empty(t, r.NativeIDs, "check B18: no version")

	b = newBench(t, "")
	b.entries(teas(1)...)
	require.NoError(t, b.Stub.Fail(llm.Fault{Mode: llm.Say, Content: `{"path":"nowhere.md"}`, Times: 1},
		llm.Fault{Mode: llm.Prose}))
	b.dream()
	assert.Equal(t, "1", b.dreamt(), "check B19: a tool call that fails ends nothing")
	assert.Contains(t, b.Prompt(), "Error: ")
}

func TestDreamThatFailsIsTriedAgain(t *testing.T) {
	b := newBench(t, "")
	b.Record(b.Turn("s1", "I like oolong tea."))
	b.Fail(llm.Fault{Mode: llm.Length, Purpose: "nanobot.dream"})
	assert.Equal(t, abi.ReadinessFailed, b.Wait().Status)
	assert.Equal(t, "0", b.dreamt())
	assert.Contains(t, b.Find("s2", "?", abi.ContextBudget{}).FormattedContext, "oolong",
		"what Dream has not read is shown as recent history")
	b.Stub.ClearFaults()
	b.Later(time.Hour)
	assert.Equal(t, abi.ReadinessReady, b.Wait().Status)
	assert.Contains(t, b.Files()[userFile], "oolong")
	assert.Equal(t, 1, strings.Count(b.Find("s2", "?", abi.ContextBudget{}).FormattedContext, "oolong"))
}

func call(name, arguments string) chat.ToolCall {
	return chat.ToolCall{ID: "c", Name: name, Arguments: abi.Raw(arguments)}
}

func TestB20B21GuardedTools(t *testing.T) {
	files := func() folder {
		return folder{{path: soulFile}, {path: userFile, text: "a\nb\na\n"}, {path: memoryFile, text: "x"}}
	}
	for _, path := range []string{"memory/history.jsonl", "../x", "/etc/x", "SOUL.md/x", "memory/.dream_cursor",
		"memory/../SOUL.md", "", "versions/x", "/SOUL.md", "sessions/a"} {
		f := files()
		quoted, err := json.Marshal(path)
		require.NoError(t, err)
		for _, c := range []chat.ToolCall{call("write_file", `{"path":`+string(quoted)+`,"content":"evil"}`),
			call("edit_file", `{"path":`+string(quoted)+`,"old_text":"","new_text":"evil"}`)} {
			assert.Contains(t, f.call(c), "Error: ", "check B20: %q", path)
		}
		assert.Equal(t, files(), f)
	}
	for name, c := range map[string]struct{ arguments, says string }{
		"twice":         {`{"path":"USER.md","old_text":"a","new_text":"c"}`, "occurs 2 times"},
		"missing":       {`{"path":"USER.md","old_text":"z","new_text":"c"}`, "does not occur"},
		"blank":         {`{"path":"USER.md","old_text":"","new_text":"c"}`, "blank file only"},
		"the same":      {`{"path":"USER.md","old_text":"b","new_text":"b"}`, "the same"},
		"not an object": {`[1]`, "not an object"},
	} {
		f := files()
		assert.Contains(t, f.call(call("edit_file", c.arguments)), c.says, "check B21: %s", name)
		assert.Equal(t, files(), f, "check B21: the file is unchanged")
	}
	f := files()
	assert.Equal(t, "Edited USER.md", f.call(call("edit_file",
		`{"path":"./USER.md","old_text":"a","new_text":"c","replace_all":true}`)))
	assert.Equal(t, "c\nb\nc\n", f.at(userFile).text)
	assert.Contains(t, f.call(call("write_file", `{"path":"memory/MEMORY.md","content":"c"}`)), "Error: ",
		"only a blank file is written")
	assert.Equal(t, "Wrote SOUL.md", f.call(call("write_file", `"{\"path\":\"SOUL.md\",\"content\":\"c\"}"`)))
	assert.Equal(t, "b\nc", f.call(call("read_file", `{"path":"USER.md","offset":2,"limit":2}`)))
}

func FuzzToolCall(f *testing.F) {
	f.Add("edit_file", `{"path":"USER.md","old_text":"a","new_text":"b"}`)
	f.Add("read_file", `{"path":"USER.md","offset":-5,"limit":99999999999}`)
	f.Add("write_file", `"{}"`)
	f.Fuzz(func(t *testing.T, name, arguments string) {
		if wirejson.Valid([]byte(arguments)) {
			files := folder{{path: soulFile}, {path: userFile, text: "a"}, {path: memoryFile}}
			require.NotPanics(t, func() { files.call(call(name, arguments)) })
			require.Len(t, files, 3)
		}
	})
}

// version creates a version through Dream: one more fact in USER.md.
func (b *bench) version(fact string) string {
	b.T.Helper()
	b.entries("- [durable] " + fact)
	r := b.dream()
	require.Len(b.T, r.NativeIDs, 1)
	return r.NativeIDs[0]
}

type versionLine struct{ SHA, Parent, Subject, Summary, Diff string }

func (b *bench) versionAt(sha string) (v versionLine) {
	b.T.Helper()
	require.NoError(b.T, json.Unmarshal(b.Query("dream_log", `{"sha":"`+sha+`"}`), &v))
	return v
}

func TestB22B23B24LogAndRestore(t *testing.T) {
	b := newBench(t, "")
	first := b.version("I like oolong tea.")
	one := b.Files()
	second := b.version("I live in Oslo.")
	third := b.version("My cat is called Zorvex.")

	v := b.versionAt(second[:8])
	assert.Regexp(t, `^dream: \d{4}-\d\d-\d\d \d\d:\d\d, 1 change, manual run$`, v.Subject)
	assert.Equal(t, "Done.", v.Summary, "what the model said stands beside the record")
	assert.Contains(t, v.Diff, "+- I live in Oslo.", "check B22: the real diff")
	assert.NotContains(t, v.Diff, "Done.", "check B22: none of the model's prose")
	var list []versionLine
	require.NoError(t, json.Unmarshal(b.Query("dream_restore", `{}`), &list))
	assert.Equal(t, []string{third, second, first}, []string{list[0].SHA, list[1].SHA, list[2].SHA}, "newest first")

	r, err := b.Mutate("dream_restore", `{"sha":"`+second[:8]+`"}`)
	require.NoError(t, err)
	now := b.Files()
	for _, path := range contentFiles {
		assert.Equal(t, one[path], now[path], "check B23: as in the first version")
	}
	assert.Equal(t, "3", now[cursorFile], "what was undone is not read again")
	assert.Contains(t, string(r.Trace.Details["undone"]), third, "the answer names what it undid")
	undo := b.versionAt(r.NativeIDs[0])
	assert.Equal(t, "revert: undo "+second[:8], undo.Subject)
	assert.Contains(t, undo.Diff, "-- I live in Oslo.", "check B23: the log of the new version shows the diff")

	root := b.versionAt(first).Parent
	for name, c := range map[string]struct {
		sha  string
		code abi.Code
	}{"root": {root, abi.CodeConflict}, "unknown": {"ffffffff", abi.CodeNotFound}, "short": {"abc", abi.CodeInvalidArgument}} {
		_, err := b.Mutate("dream_restore", `{"sha":"`+c.sha+`"}`)
		assert.Equal(t, c.code, abi.CodeOf(err), "check B24: %s", name)
		assert.Equal(t, now, b.Files(), "check B24: files are not touched")
	}
	assert.Empty(t, b.versionAt(root).Diff, "the root shows an empty diff")
}

func TestB25LineEndsMakeNoVersion(t *testing.T) {
	b := newBench(t, "")
	b.write(func(m *memory) {
		sha := m.commit(folder{{path: userFile, before: "a\nb\n", text: "a\r\nb\r\n"}}, m.Now, "dream: x", "", 0, 0)
		assert.Empty(t, sha, "check B25")
	})
}

func TestB27InjectedMemoryIsNotArchived(t *testing.T) {
	for _, mode := range []llm.Mode{"", llm.Empty} {
		b := newBench(t, everyEvent)
		b.Record(b.Turn("s1", "I like oolong tea.\n<memory-context backend=\"x\">\nSECRETBLOCK\n</memory-context>"))
		if mode != "" {
			b.Fail(llm.Fault{Mode: mode})
		}
		b.Wait()
		assert.NotContains(t, b.Prompt(), "SECRETBLOCK", "check B27: not in the request")
		assert.NotContains(t, b.history()[0].Content, "SECRETBLOCK", "check B27: nor in the entry")
		assert.Contains(t, b.history()[0].Content, "oolong")
	}
}

func TestB28DreamOffSkipsTheHistory(t *testing.T) {
	b := newBench(t, `"dream":{"enabled":false}`)
	b.entries(teas(12)...)
	_, err := sdktest.Do(b.Host, abi.OpSetupScope, scope, plugin.SetupScope, &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, "12", b.dreamt(), "check B28")
	assert.NotContains(t, b.Find("s1", "?", abi.ContextBudget{}).FormattedContext, "Recent History", "check B28")
}

func TestB30TwoPhases(t *testing.T) {
	b := newBench(t, `"dream":{"mode":"two_phase"}`)
	b.entries(teas(1)...)
	b.Fail(llm.Fault{Mode: llm.Say, Content: "[SKIP] no new information"})
	b.dream()
	assert.Equal(t, 1, b.Calls(), "check B30: [SKIP] completes without tools")
	assert.Equal(t, "1", b.dreamt())
	assert.Equal(t, "[USER] x\n[SOUL] y\n", analysis("prose\n[USER] x\n- [MEMORY] z\n[SOUL] y"))

	b.entries(teas(1)...)
	b.Stub.ClearFaults()
	require.NoError(t, b.Stub.Fail(llm.Fault{Mode: llm.Say, Content: "[USER] likes tea", Times: 1},
		llm.Fault{Mode: llm.Say, Content: `{"path":"USER.md"}`, Times: 1}, llm.Fault{Mode: llm.Prose}))
	b.dream()
	assert.Equal(t, "2", b.dreamt())
	assert.Contains(t, b.Prompt(), "[USER] likes tea", "check B30: the second phase gets the analysis")
	assert.NotContains(t, b.Prompt(), "tea number", "and not the history")
}

func TestControlProfileDreamsBehindEverySession(t *testing.T) {
	b := newBench(t, "")
	receipt := b.Record(b.Turn("s1", "I like oolong tea."))
	assert.Equal(t, abi.StatusPending, receipt.Status)
	b.Record(b.Turn("s2", "I live in Oslo."))
	b.Idle()
	assert.Contains(t, b.Files()[userFile], "oolong")
	assert.NotContains(t, b.Files()[userFile], "Oslo", "the open session waits")
	assert.Equal(t, abi.ReadinessReady, b.Wait().Status)
	text := b.Find("s9", "?", abi.ContextBudget{}).FormattedContext
	assert.Contains(t, text, "oolong")
	assert.Contains(t, text, "Oslo")
	assert.Equal(t, 1, strings.Count(text, "</memory-context>"))
}

func TestLocalProfileArchivesIdleSessionsAndDreamsByTheClock(t *testing.T) {
	b := newBench(t, `"profile":"local"`)
	b.Now = "2026-01-12T12:00:00Z" // the day of the turns
	b.Record(b.Turn("s1", "I like oolong tea."))
	b.Later(14 * time.Minute)
	b.Idle()
	assert.Zero(t, b.Calls())
	b.Later(2 * time.Minute)
	b.Idle()
	assert.Equal(t, 1, b.Session("s1").Pointer, "archived when it had rested for 15 minutes")
	assert.Equal(t, "1", b.dreamt(), "Dream never ran: it is due")
	b.Record(b.Turn("s1", "I live in Oslo."))
	b.Later(16 * time.Minute)
	b.Idle()
	assert.Equal(t, "1", b.dreamt(), "two hours are not over")
	assert.Contains(t, b.Find("s9", "?", abi.ContextBudget{}).FormattedContext, "Oslo",
		"recent history shows it meanwhile")
	b.Later(2 * time.Hour)
	b.Idle()
	assert.Equal(t, "2", b.dreamt())
}

func TestTheTailKeepsAShortSuffixBehindAnArchive(t *testing.T) {
	b := newBench(t, `"profile":"local","update_policy":"every_event"`)
	for i := range 6 {
		b.Record(b.Turn("s1", fmt.Sprintf("Question %d", i), fmt.Sprintf("assistant: Answer %d", i)))
	}
	b.Wait()
	text := b.Find("s1", "?", abi.ContextBudget{}).FormattedContext
	assert.NotContains(t, text, "Question 1")
	assert.Contains(t, text, "Question 2", "the last 8 messages stay")
	assert.NotContains(t, b.Find("s2", "?", abi.ContextBudget{}).FormattedContext, "Question",
		"of the request's session only")
	for _, most := range []int64{1, 40, 90, 200} {
		b.Find("s1", "?", abi.ContextBudget{MaxTokens: &most})
	}
}

// TestTheSkillIsOfTheConfiguration: no query searches the history in this configuration, so the text must not mention
// one.
func TestTheSkillIsOfTheConfiguration(t *testing.T) {
	skill := func(config string) string {
		var answer struct{ Text string }
		require.NoError(t, json.Unmarshal(newBench(t, config).Query("skill", `{}`), &answer))
		return answer.Text
	}
	assert.Contains(t, skill(""), "what is in none of them you do not know")
	assert.NotContains(t, skill(""), "tool")
	assert.Contains(t, skill(`"history_search":"keyword"`), "A search of memory looks there too")
}
