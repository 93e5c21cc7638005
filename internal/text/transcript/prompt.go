package transcript

import (
	"regexp"
	"slices"
	"strings"
)

// Prompt is the result of parsing a text in a user's message.
type Prompt struct {
	// Words is what the person said; empty if nothing.
	Words string
	// Command means that the words are a command of the program, such as "/plan a garden". Bare means that the command
	// has no arguments. Only what follows shows whether a command was meant for the model.
	Command, Bare bool
	// Instructions is how many elements a program inserted, Others how many messages of others.
	Instructions, Others int
	// Output: the text is what a command of the program printed.
	Output bool
}

// put has the elements that programs insert into a user's text, by name: Claude Code, Codex, their editor extensions,
// and memhost itself. Other marks elements that contain messages of others.
var put = map[string]Kind{
	"system-reminder": Instruction, "system_reminder": Instruction, "memory-context": Instruction,
	"ide_opened_file": Instruction, "ide_selection": Instruction, "ide_diagnostics": Instruction,
	"ide_context": Instruction, "ide-context": Instruction, "new-diagnostics": Instruction,
	"editor_context": Instruction, "open_files": Instruction, "attached_files": Instruction,
	"local-command-stdout": Instruction, "local-command-stderr": Instruction, "local-command-caveat": Instruction,
	"bash-input": Instruction, "bash-stdout": Instruction, "bash-stderr": Instruction,
	"user-prompt-submit-hook": Instruction, "session-start-hook": Instruction, "post-tool-use-hook": Instruction,
	"task-notification": Instruction, "task_notification": Instruction, "task-reminder": Instruction,
	"environment_context": Instruction, "environment_details": Instruction, "user_instructions": Instruction,
	"INSTRUCTIONS": Instruction, "turn_aborted": Instruction, "skill": Instruction, "skills_instructions": Instruction,
	"permissions": Instruction, "collaboration_mode": Instruction, "subagent_notification": Instruction,
	"user_shell_command": Instruction, "apps_instructions": Instruction, "plugins_instructions": Instruction,
	"model_switch": Instruction, "personality_spec": Instruction,
	"teammate-message": Other, "cross-session-message": Other, "agent-message": Other, "peer-message": Other,
	"channel": Other, "channel-message": Other, "agent-notification": Other,
}

// anywhere matches elements that are removed wherever they are, because programs insert them even in the middle of a
// text.
var anywhere = regexp.MustCompile(`(?is)<(system-reminder|memory-context)(?:\s[^>]*)?>.*?</(?:system-reminder|memory-context)>`)

// opening matches a tag at the start of a text.
var opening = regexp.MustCompile(`^<([A-Za-z][A-Za-z0-9_-]*)((?:\s[^<>]*)?)>`)

// closing matches a tag at the end of a text.
var closing = regexp.MustCompile(`</([A-Za-z][A-Za-z0-9_-]*)(?:\s[^<>]*)?>$`)

// commandPart matches the elements of a Claude Code command.
var commandPart = regexp.MustCompile(`(?s)<(command-name|command-message|command-args|command-contents)>(.*?)</(?:command-name|command-message|command-args|command-contents)>`)

// starts has the starts of texts that were generated as a whole.
var starts = []string{"[Request interrupted by user", "Caveat: The messages below were generated",
	"This session is being continued from a previous conversation", "# AGENTS.md instructions", "[System: async:"}

// request precedes a person's words if an editor extension put context above them.
const request = "## My request for Codex:"

// loops has the commands that repeatedly submit a prompt: /proactive is another name of /loop.
var loops = []string{"/loop", "/proactive"}

// ReadPrompt parses a text in a user's message.
//
// It only recognises elements that programs insert at the text's start and end, and only if they are complete, because
// people may write about such elements.
func ReadPrompt(text string) (p Prompt) {
	p.Instructions = len(anywhere.FindAllStringIndex(text, -1))
	text = strings.TrimSpace(anywhere.ReplaceAllString(text, ""))
	if text, ok := p.command(text); ok {
		p.Words = text
		return p
	}
	for more := true; more && text != ""; {
		text, more = p.strip(text)
	}
	switch {
	case text == "":
	case slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(text, start) }):
		p.Instructions++
		text = ""
	case strings.HasPrefix(text, "# Context from my IDE setup:"), strings.HasPrefix(text, "# Files mentioned by the user:"):
		p.Instructions++
		_, text, _ = strings.Cut(text, request)
	case slices.Contains(loops, strings.Fields(text)[0]):
		p.Instructions++
		text = ""
	}
	p.Words = strings.TrimSpace(text)
	return p
}

// strip removes one element at an edge of the text and counts it.
func (p *Prompt) strip(text string) (rest string, more bool) {
	if m := opening.FindStringSubmatch(text); m != nil {
		name := m[1]
		kind, known := kindOfElement(name, m[2])
		if end := endOf(text, name); known && end > 0 {
			if strings.HasPrefix(name, "local-command-std") {
				p.Output = true
			}
			p.count(kind)
			return strings.TrimSpace(text[end:]), true
		}
	}
	if m := closing.FindStringSubmatch(text); m != nil && strings.ContainsAny(m[1], "_-") {
		kind, known := kindOfElement(m[1], "")
		if at := lastOpening(text, m[1]); known && at >= 0 {
			p.count(kind)
			return strings.TrimSpace(text[:at]), true
		}
	}
	// What a person asked to remember with # are the person's words.
	if inside, ok := strings.CutPrefix(text, "<user-memory-input>"); ok {
		if inside, rest, ok = strings.Cut(inside, "</user-memory-input>"); ok {
			return strings.TrimSpace(inside + "\n" + strings.TrimSpace(rest)), true
		}
	}
	return text, false
}

func (p *Prompt) count(kind Kind) {
	if kind == Other {
		p.Others++
	} else {
		p.Instructions++
	}
}

// marks has an attribute that identifies elements whose name alone is ambiguous, because people write such elements as
// well.
var marks = map[string]string{"channel": "source=", "permissions": "instructions"}

func kindOfElement(name, attributes string) (Kind, bool) {
	kind, known := put[name]
	return kind, known && strings.Contains(attributes, marks[name])
}

// endOf returns the end of the element that starts the text; 0 if it has none.
func endOf(text, name string) int {
	closer := "</" + name
	depth, at := 0, 0
	for {
		open, end := index(text, "<"+name, at), index(text, closer, at)
		switch {
		case end < 0:
			return 0
		case open >= 0 && open < end:
			depth++
			at = open + len(name) + 1
			continue
		}
		close := strings.IndexByte(text[end:], '>')
		if close < 0 {
			return 0
		}
		at = end + close + 1
		if depth--; depth <= 0 {
			return at
		}
	}
}

// index returns the position of a tag's start, from at on; -1 if there is none. The tag's name must end there.
func index(text, tag string, at int) int {
	for {
		i := strings.Index(text[at:], tag)
		if i < 0 {
			return -1
		}
		i += at
		if end := i + len(tag); end < len(text) && strings.IndexByte("> \t\r\n/", text[end]) >= 0 {
			return i
		}
		at = i + len(tag)
	}
}

// lastOpening returns the start of the element that ends the text; -1 if there is none.
func lastOpening(text, name string) int {
	for at := len(text); at > 0; {
		at = strings.LastIndex(text[:at], "<"+name)
		if at >= 0 && endOf(text[at:], name) == len(text)-at {
			return at
		}
	}
	return -1
}

// command parses a Claude Code command, which its log stores in elements.
func (p *Prompt) command(text string) (words string, ok bool) {
	rest := commandPart.ReplaceAllString(text, "")
	if len(rest) == len(text) || strings.TrimSpace(rest) != "" {
		return "", false
	}
	var name, arguments string
	for _, m := range commandPart.FindAllStringSubmatch(text, -1) {
		switch value := strings.TrimSpace(m[2]); m[1] {
		case "command-name":
			name = value
		case "command-args":
			arguments = value
		}
	}
	if name != "" && !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	p.Command, p.Bare = true, arguments == ""
	words = strings.TrimSpace(name + " " + arguments)
	if words == "" || slices.Contains(loops, name) {
		p.Instructions++
		words = ""
	}
	return words, true
}
