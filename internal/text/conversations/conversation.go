package conversations

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/transcript"
)

// message is something that a person or an assistant said.
type message struct {
	role abi.Role
	text string
	at   time.Time
	// id is the source's own id of the message; empty if the source has none.
	id string
	// alike is the common prefix of the ids of all events that start with this message, whichever line of a growing log
	// they come from. history means that the line only repeats the message.
	alike   string
	history bool
	// joins means that it belongs to the previous turn, although a person said it.
	joins bool
	// command means that it is a command of the program, which counts as a person's words only if the assistant answers
	// it.
	command bool
	// key identifies it across all files, if another file may repeat it.
	key string
	// before is the id of the event that contained it in releases up to 0.1.0; see earlier.go.
	before, beforeText string
}

// conversation is one conversation, as far as it is recorded.
type conversation struct {
	session string
	said    []*message
	// earlier is what releases up to 0.1.0 read.
	earlier []earlierMessage
	// earlierSession is the id that its session had then, if different.
	earlierSession string
	// repeated is how many messages at its start come from another file.
	repeated int
	// turnsBefore is how many turns of the conversation are in other lines of a log.
	turnsBefore int
	// working means that an agent used tools since it last said something, so its answer is incomplete.
	working bool
	// toOthers means that the assistant currently answers another session or agent.
	toOthers bool
	// zone is the zone of times without one; nil makes such a time an error.
	zone *time.Location
	// problem is the first error in the conversation, which makes it unreadable.
	problem *abi.Error
	// badLines are the unreadable lines of a log. The others are read.
	badLines []error
	counts   Counts
}

func newConversation(zone *time.Location) *conversation {
	return &conversation{zone: zone, counts: newCounts()}
}

// say adds a message and returns it; nil if it is empty. It trims blanks, removes what an assistant thought aloud, and
// replaces credentials.
func (t *conversation) say(role abi.Role, text string, at time.Time, id string) *message {
	if role == abi.RoleAssistant {
		var thoughts int
		text, thoughts = transcript.Answer(text)
		t.counts.Thoughts += thoughts
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	if role == abi.RoleUser {
		t.toOthers = false
	} else if t.toOthers {
		t.counts.AnswersToOthers++
		t.working = false
		return nil
	}
	text, found := withoutCredentials(text)
	t.counts.Credentials += found
	m := &message{role: role, text: text, at: at, id: id}
	t.said = append(t.said, m)
	t.working = false
	return m
}

// answered reports whether the assistant said something since the person's last turn started.
func (t *conversation) answered() bool {
	return len(t.said) == 0 || t.said[len(t.said)-1].role == abi.RoleAssistant
}

// attached returns the line that names an attachment; kind replaces a missing name.
func (t *conversation) attached(name, kind string) string {
	t.counts.Attachments++
	if name = strings.Join(strings.Fields(name), " "); name == "" {
		name = kind
	}
	return "[attachment: " + name + "]"
}

// finish drops a last turn that has no answer yet, or only a part of one, and commands without an answer.
func (t *conversation) finish() {
	t.dropCommand()
	if last := t.turnStart(); last >= 0 && (t.working || t.said[len(t.said)-1].role != abi.RoleAssistant) {
		t.said = t.said[:last]
		t.counts.Unfinished++
	}
}

// turnStart is the index at which the last turn starts; -1 if there is none.
func (t *conversation) turnStart() int {
	last := len(t.said) - 1
	for last > 0 && (t.said[last].role != abi.RoleUser || t.said[last].joins) {
		last--
	}
	return last
}

// dropCommand drops a command that the program handled itself, so that the assistant has not answered it.
func (t *conversation) dropCommand() {
	for last := len(t.said) - 1; last >= 0 && t.said[last].command; last-- {
		t.said = t.said[:last]
		t.counts.Instructions++
	}
}

// wordsOf joins the texts of a message, names its attachments and counts the rest.
func (t *conversation) wordsOf(pieces []transcript.Piece) string {
	var words []string
	for _, p := range pieces {
		switch p.Kind {
		case transcript.Words:
			words = append(words, p.Text)
		case transcript.Attachment:
			words = append(words, t.attached(p.Text, p.Type))
		case transcript.ToolCall:
			t.counts.ToolCalls++
		case transcript.ToolOutput:
			t.counts.ToolOutputs++
		case transcript.Thought:
			t.counts.Thoughts++
		case transcript.Instruction:
			t.counts.Instructions++
		case transcript.Other:
			t.counts.Others++
		case transcript.Unknown:
			t.counts.Unknown[p.Type]++
		}
	}
	return strings.Join(words, "\n")
}

// wrong records the first error in a conversation.
func (t *conversation) wrong(format string, args ...any) {
	if t.problem == nil {
		t.problem = invalid(format, args...)
	}
}

// timeOf reads a message's time; place names it in an error. A missing time is zero.
func (t *conversation) timeOf(raw json.RawMessage, place string) time.Time {
	at, err := readTime(raw, t.zone)
	switch {
	case err == nil:
	case err.Reason == reasonNoZone:
		t.wrong("%s: %s", place, err.Message)
		t.problem.Hint = err.Hint
	default:
		t.counts.BadTimes++
	}
	return at
}

// orElse returns the first time that is not zero.
func orElse(at, otherwise time.Time) time.Time {
	if at.IsZero() {
		return otherwise
	}
	return at
}
