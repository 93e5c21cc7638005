package said

import (
	"regexp"
	"slices"
	"strings"
)

// Prompt is a text in a person's place, taken apart.
type Prompt struct {
	// Words are the person's. Empty: no person said anything.
	Words string
	// Command: the words are a command of the program, such as "/plan a garden". Bare: it has no words behind its name.
	// Whether a command was meant for the model is known only by what follows it.
	Command, Bare bool
	// Instructions and Others are how many pieces a program put there, and how many messages of others.
	Instructions, Others int
	// Output: the text is what a command of the program printed.
	Output bool
}

// put are the elements that programs put into a person's text, by name: Claude Code, Codex, their extensions for
// editors, and memhost itself. Other marks those in which others speak.
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

// anywhere are elements that are removed wherever they are, since programs put them into the middle of words too.
var anywhere = regexp.MustCompile(`(?is)<(system-reminder|memory-context)(?:\s[^>]*)?>.*?</(?:system-reminder|memory-context)>`)

// opening is the first tag of a text.
var opening = regexp.MustCompile(`^<([A-Za-z][A-Za-z0-9_-]*)((?:\s[^<>]*)?)>`)

// closing is the last tag of a text.
var closing = regexp.MustCompile(`</([A-Za-z][A-Za-z0-9_-]*)(?:\s[^<>]*)?>$`)

// commandParts are the elements of a command of Claude Code.
var commandPart = regexp.MustCompile(`(?s)<(command-name|command-message|command-args|command-contents)>(.*?)</(?:command-name|command-message|command-args|command-contents)>`)

// starts begin texts that no person wrote, up to their end.
var starts = []string{"[Request interrupted by user", "Caveat: The messages below were generated",
	"This session is being continued from a previous conversation", "# AGENTS.md instructions", "[System: async:"}

// request comes before a person's words where an editor's extension put its surroundings above them.
const request = "## My request for Codex:"

// loops are the commands that submit a prompt again and again: /proactive is another name of /loop.
var loops = []string{"/loop", "/proactive"}

// ReadPrompt takes a text in a person's place apart.
//
// An element that a program puts there counts at the text's beginning and end, and only whole: a person may write about
// such elements.
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
	// What a person asked to be remembered with # is the person's.
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

// marks are what the tag of an element has whose name alone says too little: people write such elements as well.
var marks = map[string]string{"channel": "source=", "permissions": "instructions"}

func kindOfElement(name, attributes string) (Kind, bool) {
	kind, known := put[name]
	return kind, known && strings.Contains(attributes, marks[name])
}

// endOf is where the element that begins the text ends, 0 where it does not.
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

// index is the place of a tag's beginning from at on, -1 where there is none. The name ends there.
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

// lastOpening is where the element that ends the text begins, -1 where it does not.
func lastOpening(text, name string) int {
	for at := len(text); at > 0; {
		at = strings.LastIndex(text[:at], "<"+name)
		if at >= 0 && endOf(text[at:], name) == len(text)-at {
			return at
		}
	}
	return -1
}

// command reads a command of Claude Code, which its log has in elements.
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
