package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot/nanobottest"
	"github.com/memhost/memhost/sdk/sdktest"
)

const oldSession = "sessions/telegram_8281_a.jsonl"

func TestAWorkspaceOfNanobotComesInWhole(t *testing.T) {
	b := newBench(t, "")
	workspace := nanobottest.Workspace(t, "old")
	require.NoError(t, b.Take(workspace))
	out := b.Files()
	assert.Equal(t, workspace[memoryFile], out[memoryFile])
	assert.Equal(t, workspace[historyFile], out[historyFile])
	_, messages, _ := strings.Cut(workspace[oldSession], "\n")
	exported := out["sessions/dGVsZWdyYW06ODI4MV9h.jsonl"]
	assert.True(t, strings.HasSuffix(exported, "\n"+messages), "each message is the line that it was: %s", exported)
	assert.Contains(t, exported, `"last_consolidated":2`)
	s := b.Session("telegram:8281_a")
	assert.Equal(t, []int{3, 2}, []int{s.Messages, s.Pointer}, "the file's name says the session's")
	assert.Contains(t, b.Find("new", "?", abi.ContextBudget{}).FormattedContext, "Mara lives in Graz. 🏔")

	assert.Equal(t, abi.ReadinessReady, b.Wait().Status)
	assert.Equal(t, 1, b.Calls(), "what Nanobot had not consolidated is, and nothing else")
	assert.Contains(t, b.Prompt(), "Kärnten")
	assert.NotContains(t, b.Prompt(), "USER: I live in Graz")
}

func TestAWorkspaceOfANewerNanobotLosesNothing(t *testing.T) {
	b := newBench(t, "")
	workspace := nanobottest.Workspace(t, "new")
	require.NoError(t, b.Take(workspace))
	out := b.Files()
	for _, path := range []string{"SOUL.md", "memory/history.jsonl", "memory/.cursor", "skills/tea/SKILL.md"} {
		assert.Equal(t, workspace[path], out[path], "kept as it is: %s", path)
	}
}

func TestExportImportExportIsEqual(t *testing.T) {
	b := newBench(t, "")
	first := b.Turn("s1", "I like oolong tea.", "assistant: Noted.")
	b.Record(first)
	b.Record(b.Turn("s1", "I live in Oslo."))
	_, err := b.Mutate("consolidate", `{"session_id":"s1","archive_all":true}`)
	require.NoError(t, err)
	b.Record(b.Turn("s1", "My cat is called Zorvex."))
	b.Record(b.Turn("weird/id: ü"+strings.Repeat("x", 300), "I like coffee."))
	b.Wait()
	b.Record(b.Turn("s3", "open"))
	out := b.Files()
	fresh := b.Again(out)
	assert.Equal(t, out, fresh.Files())
	assert.Equal(t, []int{1, 1, 2 + 1}, func() []int {
		s := fresh.Session("s1")
		return []int{s.Messages, s.Pointer,
			s.Archived}
	}(), "what was cleared stays so")
	assert.Equal(t, b.Find("s3", "?", abi.ContextBudget{}).Evidence,
		fresh.Find("s3", "?", abi.ContextBudget{}).Evidence,
		"sources and times, too")
	r := fresh.Record(first)
	assert.True(t, r.Duplicate, "check S5: an event that came by import is known")
	assert.Equal(t, out, fresh.Files())
}

func TestAnImportGoesIntoAnEmptyScopeAndMayBeRepeated(t *testing.T) {
	workspace := nanobottest.Workspace(t, "old")
	half := map[string]string{memoryFile: workspace[memoryFile], oldSession: "cut off"}
	b := newBench(t, "")
	m := &abi.NativeMutation{Scope: scope, Name: "import_files", Reason: "test",
		Params: nanobottest.Params(t, half, false, false)}
	_, err := sdktest.Do(b.Host, abi.OpNativeMutation, scope, plugin.NativeMutation, m)
	require.NoError(t, err)
	require.NoError(t, b.Take(half, workspace), "an import that broke off is begun anew")
	whole := b.Files()
	assert.Equal(t, b.Again(workspace).Files(), whole)
	assert.Equal(t, abi.CodeConflict, abi.CodeOf(b.Take(workspace)), "the scope is not empty any more")
	assert.Equal(t, whole, b.Files())
}

func TestLargeFilesGoInPartsAndPages(t *testing.T) {
	brief.Leave(t)
	var history strings.Builder
	for i := range 60000 {
		fmt.Fprintf(&history, "[2026-01-12 09:00] Entry %d, %s\n\n", i, strings.Repeat("ä", 40))
	}
	text := history.String()
	b := newBench(t, "")
	for i := 0; i < len(text); i += 2 << 20 {
		part := text[i:min(len(text), i+2<<20)]
		m := &abi.NativeMutation{Scope: scope, Name: "import_files", Reason: "test",
			Params: nanobottest.Params(t, map[string]string{historyFile: part}, i > 0, len(part) < 2<<20)}
		_, err := sdktest.Do(b.Host, abi.OpNativeMutation, scope, plugin.NativeMutation, m)
		require.NoError(t, err)
	}
	out, pages := nanobottest.Files(t, func(params map[string]abi.Raw) *abi.NativeQueryResult {
		r, err := sdktest.Do(b.Host, abi.OpNativeQuery, scope, plugin.NativeQuery,
			&abi.NativeQuery{Scope: scope, Name: "files", Params: params})
		require.NoError(t, err)
		require.Less(t, len(r.Result), 8<<20)
		return r
	})
	assert.Greater(t, pages, 1)
	assert.True(t, out[historyFile] == text, "a file goes on on the next page")
}

func TestAnyFolderKeepsItsWords(t *testing.T) {
	line := rapid.SampledFrom([]string{"", "a", "[2026-01-12 09:00] x", "{", `{"role":"user","content":"x","more":[1]}`,
		`{"_type":"other"}`, `{"role":"tool"}`, "\ttext ", "ü"})
	rapid.Check(t, func(rt *rapid.T) {
		text := func(name string) string { return strings.Join(rapid.SliceOfN(line, 0, 12).Draw(rt, name), "\n") }
		folder := map[string]string{memoryFile: text("memory"), historyFile: text("history"), "x/y.txt": text("other"),
			"sessions/a.jsonl":            text("session"),
			"sessions/archived/a.2.jsonl": text("second"), "sessions/archived/a.1.jsonl": text("first")}
		b := newBench(t, "")
		require.NoError(t, b.Take(folder))
		out := b.Files()
		require.Equal(t, strings.TrimRight(folder[historyFile], "\r\n \t"),
			strings.TrimRight(out[historyFile], "\r\n \t"))
		require.Equal(t, folder[memoryFile], out[memoryFile])
		require.Equal(t, folder["x/y.txt"], out["x/y.txt"])
		sessions := ""
		for path, text := range out {
			if strings.HasPrefix(path, "sessions/") {
				sessions += text
			}
		}
		for path, text := range folder {
			for word := range strings.Lines(text) {
				if strings.HasPrefix(path, "sessions/") {
					require.Contains(t, sessions, strings.TrimSpace(word))
				}
			}
		}
		fresh := b.Again(out)
		require.Equal(t, out, fresh.Files())
	})
}

func TestASmallBudgetHasRoomForEachSection(t *testing.T) {
	module.SmallBudget(t, memoryFile, map[string]string{historyFile: "[2026-01-01 09:00] Oolong tea was bought.\n\n"},
		"Oolong tea was bought.")
}
