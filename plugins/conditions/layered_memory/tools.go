package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/chat"
)

// dreamTools are the declarations of Dream's tools.
var dreamTools = []string{
	`{"type":"function","function":{"name":"read_file","parameters":{"type":"object","properties":{"path":{"type":"string"},` +
		`"offset":{"type":"integer"},"limit":{"type":"integer"}},"required":["path"]}}}`,
	`{"type":"function","function":{"name":"edit_file","description":"old_text is exact and unique; blank for a blank file.",` +
		`"parameters":{"type":"object","properties":{"path":{"type":"string"},"old_text":{"type":"string"},"new_text":{"type":"string"},"replace_all":{"type":"boolean"}},` +
		`"required":["path","old_text","new_text"]}}}`,
	`{"type":"function","function":{"name":"write_file","parameters":{"type":"object","properties":{"path":{"type":"string"},` +
		`"content":{"type":"string"}},"required":["path","content"]}}}`,
}

// toolArguments are the arguments of all three tools.
type toolArguments struct {
	path, old, new, content string
	offset, limit           int64
	all                     bool
}

func readArguments(raw abi.Raw) (a toolArguments, ok bool) {
	a.offset, a.limit = 1, 2000
	if wirejson.Raw(raw).Type() == wirejson.String {
		text, err := wirejson.DecodeBytes(raw).Str()
		if err != nil {
			return a, false
		}
		raw = abi.Raw(text)
	}
	err := object.Decode(raw, object.Optional("path", &a.path), object.Optional("old_text", &a.old),
		object.Optional("new_text", &a.new), object.Optional("content", &a.content),
		object.Optional("offset", &a.offset), object.Optional("limit", &a.limit),
		object.Optional("replace_all", &a.all))
	return a, err == nil
}

// call executes a tool call and returns its result. An error is returned to the model as the result, and the run
// continues.
func (f folder) call(call chat.ToolCall) string {
	a, ok := readArguments(call.Arguments)
	if !ok {
		return "Error: the arguments are not an object of the tool's parameters"
	}
	at := f.at(strings.TrimPrefix(a.path, "./"))
	if at == nil {
		return "Error: " + strconv.Quote(nanobot.Clip(a.path, 200)) + " is none of SOUL.md, USER.md, memory/MEMORY.md"
	}
	blank := strings.TrimSpace(at.text) == ""
	switch call.Name {
	case "read_file":
		lines := strings.Split(at.text, "\n")
		from := min(max(a.offset, 1)-1, int64(len(lines)))
		return strings.Join(lines[from:min(int64(len(lines)), from+max(0, min(a.limit, 2000)))], "\n")
	case "write_file":
		if !blank && !isSkill(at.path) {
			return "Error: the file is not blank; use edit_file"
		}
		at.text, _ = chat.StripThoughts(a.content)
		return "Wrote " + at.path
	case "edit_file":
		return at.replace(a, blank)
	}
	return "Error: there is no tool " + strconv.Quote(nanobot.Clip(call.Name, 100))
}

func (x *file) replace(a toolArguments, blank bool) string {
	found := strings.Count(x.text, a.old)
	switch {
	case a.old == a.new:
		return "Error: old_text and new_text are the same"
	case a.old == "" && !blank:
		return "Error: old_text may be blank for a blank file only"
	case a.old == "":
		x.text = a.new
	case found == 0:
		return "Error: old_text does not occur in " + x.path
	case found > 1 && !a.all:
		return "Error: old_text occurs " + sdk.Itoa(found) + " times; make it longer, or set replace_all"
	default:
		x.text = strings.ReplaceAll(x.text, a.old, a.new)
	}
	return "Edited " + x.path
}

const skillDir = "skills/"

// isSkill reports whether a path belongs to a skill: skills/<name>/<file>, without hidden parts and without leaving the
// folder.
func isSkill(path string) bool {
	parts := strings.Split(path, "/")
	if len(parts) < 3 || parts[0]+"/" != skillDir || len(path) > 300 || strings.ContainsAny(path, "\\\x00") {
		return false
	}
	for _, part := range parts[1:] {
		if part == "" || part[0] == '.' {
			return false
		}
	}
	return true
}

// desk holds what Dream works on: the files and, if allowed, the skills.
func (m *memory) desk(files folder) folder {
	desk := slices.Clone(files)
	if !m.settings.dream.skills {
		return desk
	}
	for item := range m.Values("file/" + skillDir) {
		path, text := strings.TrimPrefix(item.Key, "file/"), string(item.Value)
		if isSkill(path) {
			desk = append(desk, &file{path: path, text: text, before: text, version: item.Version})
		}
	}
	return desk
}

// withSkill adds an empty file to the desk for a skill that a call writes for the first time. It creates nothing below
// an existing file.
func (f folder) withSkill(call chat.ToolCall) folder {
	a, ok := readArguments(call.Arguments)
	path := strings.TrimPrefix(a.path, "./")
	if !ok || call.Name == "read_file" || !isSkill(path) || f.at(path) != nil {
		return f
	}
	for _, x := range f {
		if strings.HasPrefix(path, x.path+"/") || strings.HasPrefix(x.path, path+"/") {
			return f
		}
	}
	return append(f, &file{path: path})
}
