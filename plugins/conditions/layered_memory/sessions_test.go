package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

func TestARunOfDreamIsKeptAndTheOldestGoes(t *testing.T) {
	b := newBench(t, `"dream":{"keep_sessions":2}`)
	for i, fact := range []string{"I like oolong tea.", "I live in Oslo.", "My cat is called Zorvex."} {
		b.version(fact)
		b.Later(time.Duration(i+1) * time.Minute)
	}
	type run struct{ Key, Kind, Reason, Version string }
	var runs []run
	require.NoError(t, json.Unmarshal(b.Query("dream_sessions", `{}`), &runs))
	require.Len(t, runs, 2, "the newest two of three")
	assert.True(t, strings.HasSuffix(runs[0].Key, "-3"), "newest first: %v", runs)
	assert.Equal(t, []string{"manual run", "completed"}, []string{runs[0].Kind, runs[0].Reason})
	assert.Len(t, runs[0].Version, 64)

	var lines []struct {
		Role, Content string
		Calls         []json.RawMessage `json:"tool_calls"`
	}
	require.NoError(t, json.Unmarshal(b.Query("dream_sessions", `{"name":"`+runs[0].Key+`"}`), &lines))
	var roles []string
	for _, line := range lines[1:] {
		roles = append(roles, line.Role)
	}
	assert.Equal(t, []string{"system", "user", "assistant", "tool", "assistant"}, roles)
	assert.Contains(t, lines[2].Content, "Zorvex")
	assert.Contains(t, string(lines[3].Calls[0]), `"name":"edit_file","arguments":"{`)

	paths := func(files map[string]string) (list []string) {
		for path := range files {
			if strings.HasPrefix(path, dreamDir) {
				list = append(list, path)
			}
		}
		slices.Sort(list)
		return list
	}
	files := b.Files()
	assert.Len(t, paths(files), 2, "they are in an export")
	other := &bench{b.Again(files)}
	assert.Equal(t, paths(files), paths(other.Files()), "and come back")
	assert.NotContains(t, other.Find("s9", "Zorvex?", abi.ContextBudget{}).FormattedContext, "tool_calls")

	_, err := b.Mutate("dream_sessions", `{}`)
	assert.Error(t, err, "it is a query")
}

func TestNoRunIsKeptWhereNoneIsWanted(t *testing.T) {
	b := newBench(t, `"dream":{"keep_sessions":0}`)
	b.version("I like oolong tea.")
	assert.JSONEq(t, `[]`, string(b.Query("dream_sessions", `{}`)))
}

func TestTwoVersionsAreCompared(t *testing.T) {
	b := newBench(t, "")
	first := b.version("I like oolong tea.")
	second := b.version("I live in Oslo.")
	b.version("My cat is called Zorvex.")
	var d struct{ From, To, Diff string }
	ask := func(params string) string {
		require.NoError(t, json.Unmarshal(b.Query("dream_diff", params), &d))
		return d.Diff
	}
	to := fmt.Sprintf(`{"from":%q,"to":%q}`, first[:8], second[:8])
	assert.Contains(t, ask(to), "+- I live in Oslo.")
	assert.NotContains(t, d.Diff, "Zorvex")
	assert.Contains(t, ask(`{"from":"`+first+`"}`), "Zorvex", "without to: up to the newest")
	assert.Contains(t, ask(fmt.Sprintf(`{"from":%q,"to":%q}`, second, first)), "-- I live in Oslo.", "backwards")
	assert.Empty(t, ask(fmt.Sprintf(`{"from":%q,"to":%q}`, second, second)))
}

func TestAScheduleCountsUnderTheProfileControl(t *testing.T) {
	for _, schedule := range []string{`"cron":"0 3 * * *"`, `"interval_h":18`} {
		b := newBench(t, `"update_policy":"every_event","dream":{`+schedule+`}`)
		b.Now = "2026-01-12T12:00:00Z" // the day of the turns
		b.Record(b.Turn("s1", "I like oolong tea."))
		b.Wait() // the first time: no run yet, so the missed one is made up for
		assert.Equal(t, "1", b.dreamt(), schedule)
		b.Later(time.Hour)
		b.Record(b.Turn("s1", "I live in Oslo."))
		assert.Equal(t, abi.ReadinessReady, b.Wait().Status, "nobody waits for Dream")
		assert.Equal(t, "1", b.dreamt(), "%s: not behind the archive", schedule)
		b.Later(17 * time.Hour)
		b.Wait()
		assert.Equal(t, "2", b.dreamt(), "%s: when it is due", schedule)
	}
}

func TestAScheduleBesideAfterSessionIsRefused(t *testing.T) {
	for _, schedule := range []string{`"cron":"0 3 * * *"`, `"interval_h":2`} {
		config := &abi.GuestConfig{Provider: "layered_memory",
			Config: abi.Raw(`{"llm":{"model":"m"},"dream":{"after_session":true,` + schedule + `}}`)}
		_, err := parseSettings(config)
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
		assert.ErrorContains(t, err, "dream.after_session")
	}
}

func TestNanobotsOwnTexts(t *testing.T) {
	of := func(profile abi.Profile, config string) *promptSet {
		s, err := parseSettings(&abi.GuestConfig{Provider: "layered_memory", Profile: profile,
			Config: abi.Raw(`{"llm":{"model":"m"}` + config + `}`)})
		require.NoError(t, err)
		return s.prompts
	}
	assert.Equal(t, &memhostPrompts, of("", ""))
	assert.Equal(t, &memhostPrompts, of(abi.ProfileSourceDesign, `,"prompts":"memhost"`), "what is configured goes first")
	june := of(abi.ProfileSourceDesign, "")
	assert.Equal(t, june, of("", `,"prompts":"nanobot"`))
	assert.Contains(t, june.archive, "Only SNIP facts deserve a non-[skip] mark")
	assert.Contains(t, june.dream, `Atomic facts: "has a cat named Luna" not "discussed pet care"`)
	assert.NotContains(t, june.dream, "{{")
	april := of("", `,"prompts":"nanobot","dream":{"mode":"two_phase"}`)
	assert.Contains(t, april.archive, "Only output items matching these categories")

	b := newBench(t, `"prompts":"nanobot","dream":{"mode":"two_phase"}`)
	b.version("I like oolong tea.")
	var analysis, edit bool
	for _, asked := range b.Stub.Log() {
		text := asked.Prompt
		analysis = analysis || strings.Contains(text, "[FILE] atomic fact or change description")
		edit = edit || strings.Contains(text, "Surgical edits only — never rewrite entire files")
	}
	assert.True(t, analysis && edit, "both phases have their texts")
}

func TestSessionsOfNanobotsDreamAreNoConversations(t *testing.T) {
	b := newBench(t, `"profile":"local"`)
	const line = `{"role":"user","content":"I like oolong tea."}` + "\n"
	files := map[string]string{"USER.md": "- Lives in Oslo.\n", "sessions/cli.jsonl": line,
		"sessions/dream_20260528-100000.jsonl": line, "sessions/ZHJlYW06MjAyNjA1MjgtMTAwMDAw.jsonl": line}
	require.NoError(t, b.Take(files))
	var status struct{ Sessions []json.RawMessage }
	require.NoError(t, json.Unmarshal(b.Query("status", `{}`), &status))
	assert.Len(t, status.Sessions, 1)
	out := b.Files()
	assert.Equal(t, line, out["sessions/dream_20260528-100000.jsonl"], "kept as they are")
	assert.Equal(t, line, out["sessions/ZHJlYW06MjAyNjA1MjgtMTAwMDAw.jsonl"])
}
