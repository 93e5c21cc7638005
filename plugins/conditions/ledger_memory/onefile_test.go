package main

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// text decodes a JSON string.
func text(t *testing.T, answer string) (s string) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(answer), &s))
	return s
}

func TestC24TheGraphCanBeRead(t *testing.T) {
	h := newHost(t)
	must(t, h, "memory_add", `{"subject":"Say \"hello\"","predicate":"is","object":"[to]\n{all} <of> you"}`)
	must(t, h, "create_branch", `{"name":"b"}`)
	add(t, h, "oolong", "b")
	add(t, h, "tea", "main")
	must(t, h, "merge", `{"source":"b"}`)
	drawn := text(t, ask(t, h, "graph", `{}`))
	line := regexp.MustCompile(`^  (branch|checkout) "[a-z]+"$|^  commit id: "[^"\[\]{}<>]+"$|^  merge "b" id: "[^"]+"$`)
	for i, s := range strings.Split(strings.TrimSuffix(drawn, "\n"), "\n") {
		if i > 0 {
			assert.Regexp(t, line, s)
		}
	}
	assert.Equal(t, 3, strings.Count(drawn, "commit id"))
	assert.Equal(t, 1, strings.Count(drawn, "  merge "))
	assert.Equal(t, 1, strings.Count(drawn, "  branch "))
	assert.Equal(t, 4, strings.Count(text(t, ask(t, h, "graph", `{"format":"timeline"}`)), "\n  "))

	var counts struct {
		Branches, Commits int
		Events            map[string]int
		Entries           map[string]map[string]int
	}
	require.NoError(t, json.Unmarshal([]byte(ask(t, h, "stats", `{}`)), &counts))
	assert.Equal(t, 2, counts.Branches)
	assert.Equal(t, 4, counts.Commits)
	assert.Equal(t, map[string]int{"add": 3}, counts.Events)
	assert.Equal(t, map[string]int{"permanent/normal": 3}, counts.Entries["active"])
}

func TestMarkdownOfMemoriesIsAList(t *testing.T) {
	h := newHost(t)
	assert.Empty(t, text(t, ask(t, h, "export", `{"format":"markdown"}`)))
	must(t, h, "memory_add", `{"subject":"user","predicate":"uses","object":"Go","topic":"work"}`)
	must(t, h, "memory_add", `{"subject":"user","predicate":"hides","object":"it","sensitivity":"private"}`)
	must(t, h, "memory_add", `{"subject":"user","predicate":"likes","object":"tea"}`)
	must(t, h, "memory_add", `{"subject":"user","predicate":"said","object":"One\ntwo"}`)
	want := "## General\n\n### user\n\n- said One\n  two\n- likes tea\n\n## work\n\n### user\n\n- uses Go\n"
	assert.Equal(t, want, text(t, ask(t, h, "export", `{"format":"markdown"}`)))
	must(t, h, "create_branch", `{"name":"b"}`)
	assert.Equal(t, want, text(t, ask(t, h, "export", `{"format":"markdown","branch":"all"}`)), "each fact once")
	assert.Contains(t, text(t, ask(t, h, "export", `{"format":"markdown","include_private":true}`)), "- hides it\n")
	history := text(t, ask(t, h, "export", `{"format":"markdown","history":true}`))
	assert.Contains(t, history, "\n## History\n\n- ")
	assert.Contains(t, history, "    - `+` user hides it\n")
}

// Importing an export into an empty scope restores the same ledger, even after a program has rewritten the file.
func TestAnExportWithHistoryIsTheSameLedgerAgain(t *testing.T) {
	h := newHost(t)
	must(t, h, "memory_add", `{"subject":"user","predicate":"said","object":"<&> \u2028 \\u2028 \u0008"}`)
	must(t, h, "create_branch", `{"name":"b","metadata":{"x":[1, 2]}}`)
	must(t, h, "memory_update", `{"subject":"user","predicate":"said","object":"else","branch":"b"}`)
	must(t, h, "checkout", `{"name":"b"}`)
	file := ask(t, h, "export", `{"history":true}`)
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, []byte(file), "", "  "))
	for _, form := range []string{file, indented.String()} {
		again := newHost(t)
		must(t, again, "import", `{"export":`+form+`}`)
		for _, query := range []string{"branches", "log", "view", "fsck"} {
			assert.JSONEq(t, ask(t, h, query, `{}`), ask(t, again, query, `{}`), query)
		}
	}
	for _, wrong := range []string{`{}`, `{"export":{}}`, `{"export":{"version":2}}`, `{"export":` + ask(t, h, "export", `{}`) + `}`} {
		_, err := do(newHost(t), "import", wrong)
		assert.ErrorContains(t, err, "params.export", wrong)
	}
}

func TestAMergeSaysWhetherAConflictIsLeftOpen(t *testing.T) {
	for policy, open := range map[string]bool{"report": true, "ours": false, "theirs": false} {
		h := newHost(t)
		id := add(t, h, "tea", "main")
		must(t, h, "create_branch", `{"name":"b"}`)
		must(t, h, "memory_update", `{"id":"`+id+`","object":"green tea","branch":"b"}`)
		must(t, h, "memory_update", `{"id":"`+id+`","object":"black tea","branch":"main"}`)
		r := must(t, h, "merge", `{"source":"b","on_conflict":"`+policy+`"}`)
		assert.Equal(t, open, string(r.Trace.Details["open"]) == "true", policy)
	}
}
