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

// Events lists the events whose hooks an agent's settings need. Not every version of Codex has SessionEnd: what is left
// of a session is recorded when a later one starts.
func Events(agent string) []string {
	events := []string{eventSessionStart, eventPrompt, eventStop, eventPreCompact}
	if agent == "claude-code" {
		events = append(events, eventSessionEnd)
	}
	return events
}

// settingsTimeout is how many seconds an agent waits for a hook before it continues without. The hook's own deadline is
// shorter.
const settingsTimeout = 10

// ours matches a hook of memhost by its command, whatever the path of the program and its flags. A program with another
// name recognises its own.
var ours = regexp.MustCompile(`memhost[^\s'"]*['"]? +hook +(claude-code|codex)(\s|$)`)

// member is a name in a JSON object with its unparsed value.
type member struct {
	name  string
	value json.RawMessage
}

// Install returns a settings file with memhost's hooks, which replace existing hooks of memhost. Everything else keeps
// its order and values; the white space becomes two spaces per level. command is one line for a shell.
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

// SettingsFile returns the file that contains an agent's hooks: the user's, or with project that of the current folder.
//
// Errors: that of os.UserHomeDir, if nothing names the user's folder.
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

// Installed reports whether settings contain hooks of memhost. Settings that cannot be read contain none.
func Installed(settings []byte, agent string) bool {
	without, err := Uninstall(settings, "memhost hook "+agent)
	return err == nil && len(settings) > 0 && Diff(settings, without) != ""
}

// Uninstall returns the file without memhost's hooks, and without arrays and objects that only contained them. command
// is one that Install would write.
//
// Errors: as Install.
func Uninstall(settings []byte, command string) ([]byte, error) {
	return edit(settings, command, func(_ string, groups []json.RawMessage) []json.RawMessage { return groups }, nil)
}

// edit removes memhost's hooks, including those with the program of command, and passes the rest of each event to
// change. more lists events to visit even if the file does not have them.
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

// withoutOurs lists the groups of an event without memhost's hooks, and without groups that contained nothing else.
// taken reports whether there were any.
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

// members lists the members of a JSON object, in order.
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

// object, array and text write JSON the way people do: encoding/json would write & as \u0026 in the user's own
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
	_ = e.Encode(s) // a string can always be encoded
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// maxCompared bounds the work of Diff: the product of the numbers of lines.
const maxCompared = 4_000_000

// Diff shows the lines that a change takes out and puts in, with two lines around them, "" if nothing changes.
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

// aroundChanges drops the lines that are not near a change.
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
