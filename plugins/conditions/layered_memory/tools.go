package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot"
	"github.com/memhost/memhost/sdk"
)

// dreamTools are the declarations of the tools that Dream has.
var dreamTools = []string{
	`{"type":"function","function":{"name":"read_file","parameters":{"type":"object","properties":{"path":{"type":"string"},` +
		`"offset":{"type":"integer"},"limit":{"type":"integer"}},"required":["path"]}}}`,
	`{"type":"function","function":{"name":"edit_file","description":"old_text is exact and unique; blank for a blank file.",` +
		`"parameters":{"type":"object","properties":{"path":{"type":"string"},"old_text":{"type":"string"},"new_text":{"type":"string"},"replace_all":{"type":"boolean"}},` +
		`"required":["path","old_text","new_text"]}}}`,
	`{"type":"function","function":{"name":"write_file","parameters":{"type":"object","properties":{"path":{"type":"string"},` +
		`"content":{"type":"string"}},"required":["path","content"]}}}`,
}

// toolArguments are those of all three tools.
type toolArguments struct {
	path, old, new, content string
	offset, limit           int64
	all                     bool
}

func readArguments(raw jsontext.Raw) (a toolArguments, ok bool) {
	a.offset, a.limit = 1, 2000
	if raw.Type() == jsontext.String {
		text, err := jsontext.DecodeBytes(raw).Str()
		if err != nil {
			return a, false
		}
		raw = jsontext.Raw(text)
	}
	err := nanobot.Decode(raw, nanobot.Word("path", &a.path), nanobot.Word("old_text", &a.old), nanobot.Word("new_text", &a.new), nanobot.Word("content", &a.content),
		nanobot.Number("offset", &a.offset), nanobot.Number("limit", &a.limit), nanobot.Flag("replace_all", &a.all))
	return a, err == nil
}

// call does what a tool call asks and says what came of it. What is wrong is told to the model and ends nothing.
func (f folder) call(call nanobot.Call) string {
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
		at.text = nanobot.StripThinking(a.content)
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

// isSkill tells whether a path is a file of a skill: skills/<name>/<file>, with no part that is hidden or leaves the folder.
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

// desk is what Dream works on: the files, and where it may the skills.
func (s *settings) desk(c *sdk.Call, files folder) (folder, error) {
	desk := files[:len(files):len(files)]
	if !s.dream.skills {
		return desk, nil
	}
	err := c.Each(abi.StateListRequest{Prefix: "file/" + skillDir}, func(item sdk.Item) error {
		path := strings.TrimPrefix(item.Key, "file/")
		text, version, err := nanobot.KeptFile(c, path)
		if err == nil && isSkill(path) {
			desk = append(desk, &file{path: path, text: text, before: text, version: version})
		}
		return err
	})
	return desk, err
}

// withSkill puts the blank file of a skill that a call writes for the first time on the desk. Nothing is made below a file.
func (f folder) withSkill(call nanobot.Call) folder {
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
