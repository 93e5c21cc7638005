package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// The runs of Dream are files below dreams/, like dreams/20260403-000200-42.jsonl: the name has the time and the cursor
// of the last history entry that was read; a second run over the same entries has the suffix -2, and so on. The first
// line describes the run, every other line is a message. They are not sessions, and no model sees them.
const dreamDir = "dreams/"

// keepSession stores a run, and drops the oldest runs beyond the limit.
func (m *memory) keepSession(run *dreamResult, first, last *entry) {
	if m.settings.dream.keepRuns == 0 || len(run.turns) == 0 {
		return
	}
	at := last.moment()
	base := stamp(at) + "-" + sdk.Itoa(last.cursor)
	name := base
	for n := int64(2); m.hasRun(name); n++ {
		name = base + "-" + sdk.Itoa(n)
	}
	kind, key := "metadata", "dream:"+name
	text := string(nanobot.Line(object.Encode(object.Always("_type", &kind), object.Always("key", &key),
		object.Always("created_at", &at), object.Always("wall_clock", &m.Now), object.Always("kind", &run.kind), object.Always("reason", &run.reason),
		object.Always("first_entry", &first.cursor), object.Always("last_entry", &last.cursor),
		object.Optional("version", &run.version))))
	for _, turn := range run.turns {
		line := nanobot.Message{Role: turn.Role, Content: turn.Content, ToolCallID: turn.ToolCallID}
		for _, call := range turn.Calls {
			arguments := string(call.Arguments)
			if text, err := wirejson.DecodeBytes(call.Arguments).Str(); err == nil {
				arguments = text // by the API's rules a string that contains JSON
			}
			line.ToolCalls = append(line.ToolCalls, abi.ToolCall{ID: call.ID, Name: call.Name, Arguments: arguments})
		}
		text += string(nanobot.Line(line.Encode()))
	}
	nanobot.KeepFile(m.State, dreamDir+name+".jsonl", text, sdk.AnyVersion)
	kept := m.sessions()
	for i := range max(0, int64(len(kept))-m.settings.dream.keepRuns) {
		m.Delete("file/" + kept[i])
	}
}

// sessions returns the paths of the stored runs, oldest first.
func (m *memory) sessions() (paths []string) {
	for item := range m.State.Items(abi.StateListRequest{Prefix: "file/" + dreamDir}) {
		paths = append(paths, strings.TrimPrefix(item.Key, "file/"))
	}
	return paths
}

// hasRun reports whether a run of this name is stored.
func (m *memory) hasRun(name string) bool {
	_, version := nanobot.KeptFile(m.State, dreamDir+name+".jsonl")
	return version != 0
}

// stamp formats a time for a file name: 20260403-000200.
func stamp(at string) string {
	if len(at) < 19 {
		return at
	}
	return at[:4] + at[5:7] + at[8:10] + "-" + at[11:13] + at[14:16] + at[17:19]
}

// writeSessions writes the first line of each stored run, newest first, or, given a name, all lines of one run.
//
// Errors: not_found.
func (m *memory) writeSessions(name string, answer *wirejson.Encoder) {
	answer.ArrStart()
	defer answer.ArrEnd()
	if name != "" {
		text, version := nanobot.KeptFile(m.State, dreamDir+strings.TrimPrefix(name, "dream:")+".jsonl")
		if version == 0 {
			m.Fail(abi.NewError(abi.CodeNotFound, "params.name: there is no run of Dream of this name"))
		}
		writeLines(answer, text)
		return
	}
	paths := m.sessions()
	slices.Reverse(paths)
	for _, path := range paths {
		text, _ := nanobot.KeptFile(m.State, path)
		first, _, _ := strings.Cut(text, "\n")
		writeLines(answer, first)
	}
}

// writeLines writes the lines that are JSON. An imported file may contain others, which are left out.
func writeLines(answer *wirejson.Encoder, text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if wirejson.Valid([]byte(line)) {
			answer.Raw([]byte(line))
		}
	}
}
