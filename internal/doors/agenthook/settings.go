package agenthook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
)

// Events are those whose hooks an agent's settings need. Codex has no SessionEnd that every version knows: what is left
// of a session is recorded when a later one starts.
func Events(agent string) []string {
	events := []string{eventSessionStart, eventPrompt, eventStop, eventPreCompact}
	if agent == "claude-code" {
		events = append(events, eventSessionEnd)
	}
	return events
}

// settingsTimeout is how many seconds an agent waits for a hook before it goes on without. The hook's own deadline is
// shorter.
const settingsTimeout = 10

// ours recognises a hook of memhost by its command, whatever the path of the program and its flags. A program that has
// another name knows its own.
var ours = regexp.MustCompile(`memhost[^\s'"]*['"]? +hook +(claude-code|codex)(\s|$)`)

// member is a name of a JSON object with its value as it is written.
type member struct {
	name  string
	value json.RawMessage
}

// Install gives the text of a settings file with memhost's hooks in it, instead of those that it may have. The rest
// keeps its order and its values; the white space becomes that of two blanks for each level. command is one line for a
// shell.
//
//	{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "...", "timeout": 10}]}], ...}}
//
// Errors: invalid_argument for a file that is not a JSON object with an object "hooks" of arrays.
func Install(settings []byte, agent, command string) ([]byte, error) {
	group := object([]member{{"hooks", array([]json.RawMessage{object([]member{{"type", text("command")},
		{"command", text(command)},
		{"timeout", json.RawMessage(strconv.Itoa(settingsTimeout))}})})}})
	return edit(settings, command, func(event string, groups []json.RawMessage) []json.RawMessage {
		if slices.Contains(Events(agent), event) {
			groups = append(groups, group)
		}
		return groups
	}, Events(agent))
}

// SettingsFile is the file that an agent's hooks are in: the user's, or that of the current folder, where project is set.
//
// Errors: that of os.UserHomeDir, where nothing names the user's folder.
func SettingsFile(agent string, project bool, getenv func(string) string) (string, error) {
	folder, name, ofProject, variable := ".claude", "settings.json", "settings.local.json", "CLAUDE_CONFIG_DIR"
	if agent == "codex" {
		folder, name, ofProject, variable = ".codex", "hooks.json", "hooks.json", "CODEX_HOME"
	}
	if project {
		return filepath.Join(folder, ofProject), nil
	}
	if given := getenv(variable); given != "" {
		return filepath.Join(given, name), nil
	}
	home := getenv("HOME")
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(home, folder, name), nil
}

// Installed reports whether settings have hooks of memhost. Settings that cannot be read have none.
func Installed(settings []byte, agent string) bool {
	without, err := Uninstall(settings, "memhost hook "+agent)
	return err == nil && len(settings) > 0 && Diff(settings, without) != ""
}

// Uninstall gives the text without memhost's hooks, and without the arrays and objects that had nothing else.
// command is one that Install would write.
//
// Errors: as Install.
func Uninstall(settings []byte, command string) ([]byte, error) {
	return edit(settings, command, func(_ string, groups []json.RawMessage) []json.RawMessage { return groups }, nil)
}

// edit takes memhost's hooks out, those with the program of command among them, and hands what is left of each event to
// change. more are events to look at even where the file has none of them.
func edit(settings []byte, command string, change func(event string, groups []json.RawMessage) []json.RawMessage,
	more []string) ([]byte, error) {
	if len(bytes.TrimSpace(settings)) == 0 {
		settings = []byte("{}")
	}
	top, err := members(settings, "the file")
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(top, func(m member) bool { return m.name == "hooks" })
	if at < 0 {
		top, at = append(top, member{"hooks", json.RawMessage("{}")}), len(top)
	}
	events, err := members(top[at].value, "hooks")
	if err != nil {
		return nil, err
	}
	for _, name := range more {
		if !slices.ContainsFunc(events, func(m member) bool { return m.name == name }) {
			events = append(events, member{name, json.RawMessage("[]")})
		}
	}
	var left []member
	for _, event := range events {
		groups, taken, err := withoutOurs(event, command)
		if err != nil {
			return nil, err
		}
		if groups = change(event.name, groups); len(groups) == 0 && taken {
			continue
		}
		left = append(left, member{event.name, array(groups)})
	}
	if top[at].value = object(left); len(left) == 0 {
		top = slices.Delete(top, at, at+1)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, object(top), "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// withoutOurs lists the groups of an event, without memhost's hooks and without groups that held nothing else. taken
// reports whether there were such.
func withoutOurs(event member, command string) (kept []json.RawMessage, taken bool, err error) {
	var groups []json.RawMessage
	if err := json.Unmarshal(event.value, &groups); err != nil {
		return nil, false, notSettings("hooks."+event.name, "an array", err)
	}
	for i, group := range groups {
		fields, err := members(group, fmt.Sprintf("hooks.%s[%d]", event.name, i))
		if err != nil {
			return nil, false, err
		}
		at := slices.IndexFunc(fields, func(m member) bool { return m.name == "hooks" })
		if at < 0 {
			kept = append(kept, group)
			continue
		}
		var hooks []json.RawMessage
		if err := json.Unmarshal(fields[at].value, &hooks); err != nil {
			return nil, false, notSettings(fmt.Sprintf("hooks.%s[%d].hooks", event.name, i), "an array", err)
		}
		others := slices.DeleteFunc(slices.Clone(hooks),
			func(hook json.RawMessage) bool { return isOurs(hook, command) })
		taken = taken || len(others) < len(hooks)
		switch {
		case len(others) == len(hooks):
			kept = append(kept, group)
		case len(others) > 0:
			fields[at].value = array(others)
			kept = append(kept, object(fields))
		}
	}
	return kept, taken, nil
}

func isOurs(hook json.RawMessage, command string) bool {
	var h struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(hook, &h) != nil {
		return false
	}
	program, _, _ := strings.Cut(command, " hook ")
	return ours.MatchString(h.Command) || strings.HasPrefix(h.Command, program+" hook ")
}

// members lists what a JSON object holds, in its order.
func members(settings []byte, what string) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(settings))
	start, err := d.Token()
	if err != nil || start != json.Delim('{') {
		return nil, notSettings(what, "an object", err)
	}
	var all []member
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, notSettings(what, "an object", err)
		}
		m := member{name: fmt.Sprint(name)}
		if err := d.Decode(&m.value); err != nil {
			return nil, notSettings(what, "an object", err)
		}
		all = append(all, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, notSettings(what, "an object", err)
	}
	if d.More() {
		return nil, notSettings(what, "one object", nil)
	}
	return all, nil
}

func notSettings(what, want string, cause error) error {
	message := what + " is not " + want
	if cause != nil {
		message += ": " + cause.Error()
	}
	return abi.WrapError(abi.CodeInvalidArgument, message,
		cause).WithHint("mend the file, or put the hooks in by hand (docs/agents.md); it was not changed")
}

// object, array and text are JSON as it is written by hand: encoding/json would write & as \u0026 in the user's own
// commands.
func object(all []member) json.RawMessage {
	var out bytes.Buffer
	for i, m := range all {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(text(m.name))
		out.WriteByte(':')
		out.Write(m.value)
	}
	return json.RawMessage("{" + out.String() + "}")
}

func array(items []json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	for i, item := range items {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(item)
	}
	return json.RawMessage("[" + out.String() + "]")
}

func text(s string) json.RawMessage {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always has a JSON text
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// maxCompared bounds the work of Diff: the product of the numbers of lines.
const maxCompared = 4_000_000

// Diff shows the lines that a change takes out and puts in, with two lines around them, "" where nothing changes.
//
//	  "model": "opus",
//	+ "hooks": {
func Diff(before, after []byte) string {
	a, b := strings.SplitAfter(string(before), "\n"), strings.SplitAfter(string(after), "\n")
	if len(a)*len(b) > maxCompared {
		return "  (too long to be compared here)\n"
	}
	// common[i][j]: the length of the longest common part of a[i:] and b[j:]. Settings have some hundred lines.
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var lines []string
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, "  "+a[i])
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, "- "+a[i])
			i++
		default:
			lines = append(lines, "+ "+b[j])
			j++
		}
	}
	return aroundChanges(lines)
}

// aroundChanges leaves out what is not near a changed line.
func aroundChanges(lines []string) string {
	const around = 2
	var out strings.Builder
	shown := 0
	for i, line := range lines {
		near := slices.ContainsFunc(lines[max(0, i-around):min(len(lines), i+around+1)],
			func(l string) bool { return l[0] != ' ' && strings.TrimSpace(l[2:]) != "" })
		if !near || strings.TrimSpace(line) == "" {
			continue
		}
		if i > shown {
			out.WriteString("  ...\n")
		}
		out.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		shown = i + 1
	}
	return out.String()
}
