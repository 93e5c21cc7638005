package conversations

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/convert"
)

// Builds of 0.1.0 before its release made a turn's event id from its text and position, as they read them. This file
// reads messages as those builds did, for one purpose: to recognise turns that a slot already has under such an id, so
// that they are not recorded again. It never changes.

// earlierMessage is a message as older builds read it.
type earlierMessage struct {
	role abi.Role
	text string
	of   *message // nil for what is left out now
}

// noteEarlier adds a message as older builds read it: the text before credentials were replaced.
func (t *conversation) noteEarlier(role abi.Role, text string, of *message) {
	text = strings.TrimSpace(text)
	if text == "" {
		return
	}
	t.earlier = append(t.earlier, earlierMessage{role, earlierWithoutCredentials(text), of})
}

// nameEarlier gives the messages the old ids of the events that they were in. working is the conversation's flag of
// that name.
func (t *conversation) nameEarlier(scope convert.Options, session string) {
	list := t.earlier
	if last := len(list) - 1; last >= 0 && (list[last].role != abi.RoleAssistant || t.working) {
		for last > 0 && list[last].role != abi.RoleUser {
			last--
		}
		list = list[:last]
	}
	for turn := 0; len(list) > 0; turn++ {
		end, hasUser := 0, false
		for end < len(list) && (list[end].role != abi.RoleUser || !hasUser) {
			hasUser = hasUser || list[end].role == abi.RoleUser
			end++
		}
		e := &abi.MemoryEvent{RunID: scope.RunID, UserID: scope.UserID, SessionID: session}
		for i := range list[:end] {
			e.Messages = append(e.Messages, abi.Message{Role: list[i].role, Content: &list[i].text})
		}
		id := convert.EventID(e, 0, turn)
		for _, m := range list[:end] {
			if m.of != nil {
				m.of.before, m.of.beforeText = id, m.text
			}
		}
		list = list[end:]
	}
}

// isEarlierID reports whether an id was made from a turn's text.
func isEarlierID(id string) bool { return earlierID.MatchString(id) }

var earlierID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// earlierWords joins the texts of a message and names its attachments, as older builds did.
func earlierWords(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var raw []json.RawMessage
	_ = json.Unmarshal(content, &raw)
	var words []string
	for i := range raw {
		var b struct {
			Type string `json:"type"`
			Text string `json:"text"`
			Name string `json:"filename"`
		}
		if json.Unmarshal(raw[i], &b) != nil {
			continue
		}
		name := func(kind string) string {
			if name := strings.Join(strings.Fields(b.Name), " "); name != "" {
				kind = name
			}
			return "[attachment: " + kind + "]"
		}
		switch b.Type {
		case "text", "input_text", "output_text", "refusal":
			words = append(words, b.Text)
		case "image", "input_image", "image_url":
			words = append(words, name("image"))
		case "document", "input_file", "file":
			words = append(words, name("file"))
		case "input_audio", "audio":
			words = append(words, name("sound"))
		}
	}
	return strings.Join(words, "\n")
}

// earlierPrompt distinguishes a person's words from what Claude Code inserts into a log, as older builds did.
func earlierPrompt(text string) bool {
	text = strings.TrimSpace(text)
	for _, start := range []string{"<command-name>", "<command-message>", "<command-args>", "<local-command-", "<bash-",
		"<user-memory-input>", "<task-notification>", "[Request interrupted by user", "Caveat: The messages below"} {
		if strings.HasPrefix(text, start) {
			return false
		}
	}
	return text != ""
}

// earlierPutByCodex recognises what Codex inserts as if the person had said it, as older builds did.
func earlierPutByCodex(text string) bool {
	text = strings.TrimSpace(text)
	return slices.ContainsFunc([]string{"<environment_context>", "<user_instructions>", "<INSTRUCTIONS>", "<turn_aborted>",
		"<skill>", "<permissions", "<collaboration_mode>", "<subagent_notification>", "<user_shell_command>",
		"# AGENTS.md instructions"}, func(start string) bool { return strings.HasPrefix(text, start) })
}

var earlierReminder = regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>`)

var (
	earlierCredentials = regexp.MustCompile(
		`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)|` +
			`\b(?:sk-[A-Za-z0-9_-]{16,}|(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|` +
			`glpat-[A-Za-z0-9_-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}\b|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}|` +
			`xox[abeoprs]-[A-Za-z0-9-]{10,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|` +
			`(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)`)
	earlierNamed = regexp.MustCompile(`(?i)(\b[a-z0-9_.-]*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|` +
		`auth[_-]?token|access[_-]?token|private[_-]?key)["']?\s*(?::|=|:=)\s*["']?)([^\s"'` + "`" + `,;<>()\[\]{}$]{6,})|` +
		`(\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+)([A-Za-z0-9._~+/=-]{8,})|` +
		`(\b[a-z][a-z0-9+.-]*://[^\s:/@"'<>]*:)([^\s/@"'<>$]{3,})@`)
	// earlierHints matches every text that one of the expressions can match.
	earlierHints = regexp.MustCompile(`(?i)pass|secret|key|token|authorization|://|sk-|gh[pousr]_|github_pat_|glpat-|` +
		`AKIA|ASIA|AIza|ya29\.|xox|hf_|npm_|pypi-|_live_|_test_|eyJ`)
)

func earlierWithoutCredentials(text string) string {
	if !earlierHints.MatchString(text) {
		return text
	}
	text = earlierCredentials.ReplaceAllString(text, leftOut)
	var b strings.Builder
	end := 0
	for _, m := range earlierNamed.FindAllStringSubmatchIndex(text, -1) {
		for group := 2; group <= 6; group += 2 {
			from, to := m[2*group], m[2*group+1]
			if from < 0 || strings.Contains(text[from:to], "left out") {
				continue
			}
			before, value := text[m[2*group-2]:from], text[from:to]
			if strings.HasSuffix(before, ": ") && !strings.ContainsAny(value, "0123456789") && !strings.Contains(before, `"`) {
				continue
			}
			b.WriteString(text[end:from] + leftOut)
			end = to
		}
	}
	return b.String() + text[end:]
}
