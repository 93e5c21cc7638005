package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot/nanobottest"
)

func TestAWorkspaceOfNanobotComesInWhole(t *testing.T) {
	b := newBench(t, "")
	workspace := nanobottest.Workspace(t, "new")
	require.NoError(t, b.Take(workspace))
	out := b.Files()
	for path, text := range workspace {
		if header, messages, session := strings.Cut(text, "\n"); session && strings.HasPrefix(path, "sessions/") {
			now, lines, _ := strings.Cut(out[path], "\n")
			assert.Equal(t, messages, lines, "each message is the line that it was")
			assert.JSONEq(t, header, now, "the metadata line says the same")
			continue
		}
		assert.Equal(t, text, out[path], "%s", path)
	}
	assert.Len(t, out, len(workspace))
	assert.Equal(t, out, b.Again(out).Files())

	text := b.Find("cli:direct", "?", abi.ContextBudget{}).FormattedContext
	for _, want := range []string{"Mara 🐈", "notes in a repository", "short sentences", "Travels to Carinthia",
		"Mara lives in Graz."} {
		assert.Contains(t, text, want)
	}
	assert.NotContains(t, text, "Mag Oolong", "Dream had read it")
	s := b.Session("cli:direct")
	assert.Equal(t, []int{6, 4}, []int{s.Messages, s.Pointer})

	b.Record(b.Turn("cli:direct", "I like coffee, too."))
	assert.Equal(t, abi.ReadinessReady, b.Wait().Status, "the work goes on where Nanobot stopped")
	prompts := ""
	for _, entry := range b.Stub.Log() {
		prompts += entry.Prompt
	}
	assert.Contains(t, prompts, "Carinthia")
	assert.NotContains(t, prompts, "INJECTED", "what a plugin put behind the user's words is no memory")
	assert.NotContains(t, prompts, "Continue the active task", "nor what the agent says to itself")
	require.Len(t, b.history(), 4)
	assert.Equal(t, 4, b.history()[3].Cursor, "cursors go on")
}

func TestExportImportExportIsEqual(t *testing.T) {
	b := newBench(t, "")
	for _, text := range []string{"I like oolong tea.", "I live in Oslo.", "I prefer coffee now, not tea."} {
		b.Record(b.Turn("s"+text[:3], text))
		require.Equal(t, abi.ReadinessReady, b.Wait().Status)
	}
	b.Record(b.Turn("open", "My cat is called Zorvex."))
	out := b.Files()
	require.NotEmpty(t, out["versions/log.jsonl"])
	fresh := b.Again(out)
	assert.Equal(t, out, fresh.Files())
	b.Now = fresh.Now
	assert.Equal(t, b.Find("open", "?", abi.ContextBudget{}).FormattedContext,
		fresh.Find("open", "?", abi.ContextBudget{}).FormattedContext)

	var log struct {
		SHA string `json:"sha"`
	}
	require.NoError(t, json.Unmarshal(fresh.Query("dream_log", `{}`), &log))
	_, err := fresh.Mutate("dream_restore", `{"sha":"`+log.SHA[:8]+`"}`)
	require.NoError(t, err, "versions that were imported can be undone")
	assert.NotEqual(t, out["USER.md"], fresh.Files()["USER.md"])

	require.Equal(t, abi.CodeConflict, abi.CodeOf(fresh.Take(out)), "the scope is not empty any more")
	out["versions/log.jsonl"] = strings.Replace(out["versions/log.jsonl"], "init", "tini", 1)
	forged := b.Fresh()
	require.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(forged.Take(out)), "a version is named by its content")
}

// TestVersionIDs computes the ids of versions/log.jsonl with another encoder: encoding/json sorts the members of a map,
// as RFC 8785 asks.
func TestVersionIDs(t *testing.T) {
	b := newBench(t, "")
	b.Record(b.Turn("s1", "I like \"oolong\" tea <b> & \u2028 ü\ttab.", "assistant: fine"))
	require.Equal(t, abi.ReadinessReady, b.Wait().Status)
	parent := ""
	for line := range strings.Lines(b.Files()["versions/log.jsonl"]) {
		var members map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &members))
		sha := members["sha"]
		delete(members, "sha")
		var canonical strings.Builder
		e := json.NewEncoder(&canonical)
		e.SetEscapeHTML(false)
		require.NoError(t, e.Encode(members))
		text := strings.NewReplacer(`\u2028`, "\u2028", `\u2029`,
			"\u2029").Replace(strings.TrimSuffix(canonical.String(),
			"\n"))
		sum := sha256.Sum256([]byte(text))
		require.Equal(t, hex.EncodeToString(sum[:]), sha)
		require.Equal(t, parent, members["parent"])
		parent = sha.(string)
	}
	require.NotEmpty(t, parent)
}

func TestB15HistoryMD(t *testing.T) {
	const old = "[2026-02-03 09:10] Tea was bought.\n[2026-02-04 10:00] It was oolong.\n\n" +
		"[2026-02-05 11:00] [RAW] 2 messages\n[2026-02-05T10:58] USER: hello\n[2026-02-05T10:59] ASSISTANT [tools: " +
		"a, b]: hi\r\n\r\n\nAn undated \xff paragraph\nof two lines.\n"
	b := newBench(t, "")
	require.NoError(t, b.Take(map[string]string{oldHistory: strings.ToValidUTF8(old, "\uFFFD"), oldHistory +
		".bak": "older"}))
	history := b.history()
	var got []string
	for i, x := range history {
		assert.Equal(t, i+1, x.Cursor, "check B15: cursors 1..n")
		got = append(got, x.Content)
	}
	assert.Equal(t, []string{"Tea was bought.", "It was oolong.",
		"[RAW] 2 messages\n[2026-02-05T10:58] USER: hello\n[2026-02-05T10:59] ASSISTANT [tools: a, b]: hi",
		"An undated \uFFFD paragraph\nof two lines."}, got, "check B15: 4 entries in order")
	out := b.Files()
	assert.Equal(t, []string{"4", "4"}, []string{out[issuedFile], out[cursorFile]}, "check B15: both cursors")
	assert.NotContains(t, out, oldHistory)
	assert.Equal(t, "older", out[oldHistory+".bak"], "check B15: an existing .bak stays")
	assert.Contains(t, out[oldHistory+".bak.2"], "Tea was bought.")
	assert.Equal(t, out, b.Again(out).Files(), "check B15: a second start does nothing")
	assert.Empty(t, b.Find("s", "?", abi.ContextBudget{}).FormattedContext, "old history counts as read")

	fresh := newBench(t, "")
	require.NoError(t, fresh.Take(map[string]string{oldHistory: "[2026-02-03 09:10] x",
		linesFile: `{"cursor":7,"timestamp":"2026-02-03 09:10","content":"new"}` + "\n"}))
	assert.Equal(t, "[2026-02-03 09:10] x", fresh.Files()[oldHistory],
		"where there is a history.jsonl the old file is kept as it is")
	require.Len(t, fresh.history(), 1)
}

func TestOldHistoryLosesNoWord(t *testing.T) {
	line := rapid.SampledFrom([]string{"", " ", "a", "[2026-01-12 09:00] x", "[2026-01-12 09:00] [RAW] 1 message",
		"[2026-01-12T09:00] USER: y", "[2026-01-12]", "ü", "]"})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(line, 0, 20).Draw(t, "lines")
		words := strings.Fields(strings.Join(lines, "\n"))
		chunks := splitOldHistory(strings.Join(lines, "\n"))
		require.Equal(t, words, strings.Fields(strings.Join(chunks, "\n")))
		for _, chunk := range chunks {
			require.NotEmpty(t, strings.TrimSpace(chunk))
		}
	})
}

func TestAnyHistoryComesOutAsItCameIn(t *testing.T) {
	line := rapid.SampledFrom([]string{"{", "x", `{"cursor":1,"timestamp":"t","content":"c","more":{"a":[1, 2]}}`,
		`{"cursor":"7"}`, `{"cursor":5,"timestamp":"t","content":""}`})
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(line, 1, 12).Draw(rt, "lines"), "\n") + "\n"
		cursor := rapid.SampledFrom([]string{"0", "40", "x", "-3", ""}).Draw(rt, "cursor")
		b := newBench(t, "")
		require.NoError(t, b.Take(map[string]string{linesFile: text, issuedFile: cursor, cursorFile: cursor}))
		out := b.Files()
		require.Equal(t, text, out[linesFile])
		require.Equal(t, out, b.Again(out).Files())
	})
}

func TestAWorkspacesOwnInstruction(t *testing.T) {
	b := newBench(t, "")
	require.NoError(t, b.Take(map[string]string{instructionFile: "OWN INSTRUCTION, with edit_file"}))
	b.Record(b.Turn("s1", "I like oolong tea."))
	b.Wait()
	assert.Contains(t, b.Prompt(), "OWN INSTRUCTION")
}

func TestHistorySearch(t *testing.T) {
	folder := map[string]string{cursorFile: "3", linesFile: `{"cursor":1,"timestamp":"2026-01-01 09:00","content":"- Oolong tea was bought."}
{"cursor":2,"timestamp":"2026-01-02 09:00","content":"- Coffee was bought."}
{"cursor":3,"timestamp":"2026-01-03 09:00","content":"- TEA again."}
`}
	for search, want := range map[string][]string{"off": nil, "keyword": {"history#1", "history#3"}} {
		b := newBench(t, `"history_search":"`+search+`"`)
		require.NoError(t, b.Take(folder))
		var got []string
		for _, e := range b.Find("s1", "which oolong tea?", abi.ContextBudget{}).Evidence {
			got = append(got, e.NativeID)
		}
		assert.Equal(t, want, got, "%s: most words first", search)
	}
}

func TestASmallBudgetHasRoomForEachSection(t *testing.T) {
	module.SmallBudget(t, memoryFile, map[string]string{cursorFile: "1",
		linesFile: `{"cursor":1,"timestamp":"2026-01-01 09:00","content":"- Oolong tea was bought."}` + "\n"},
		"Oolong tea was bought.")
}

func TestShippedTemplatesAreNotShown(t *testing.T) {
	const shipped = "# User Profile\n\n(your name)\n"
	before := templates
	defer func() { templates = before }()
	for known, want := range map[bool]int{false: 1, true: 0} {
		templates = before
		if known {
			sum := sha256.Sum256([]byte(shipped))
			templates = append([]string{hex.EncodeToString(sum[:])}, before...)
		}
		b := newBench(t, "")
		require.NoError(t, b.Take(map[string]string{userFile: shipped}))
		assert.Len(t, b.Find("s", "?", abi.ContextBudget{}).Evidence, want)
		assert.Equal(t, shipped, b.Files()[userFile], "it is kept all the same")
	}
}
