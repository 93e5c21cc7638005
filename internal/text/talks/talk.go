package talks

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/said"
)

// message is something that a person or an assistant said.
type message struct {
	role abi.Role
	text string
	at   time.Time
	// id is the source's own id of the message; empty where the source has none.
	id string
	// alike begins the ids of all events that begin with it, whichever line of a growing log they come from. history: the
	// line repeats it from before.
	alike   string
	history bool
	// joins: it belongs to the turn before it, though a person said it.
	joins bool
	// command: it is a command of the program, which is a person's words only if the assistant answers it.
	command bool
	// key tells it from the messages of all files, where another file may repeat it.
	key string
	// before is the id of the event that releases up to 0.1.0 had it in; see earlier.go.
	before, beforeText string
}

// talk is one conversation as far as it is kept.
type talk struct {
	session string
	said    []*message
	// earlier is what releases up to 0.1.0 made of it.
	earlier []earlierMessage
	// earlierSession is the id of its session then, where that was another.
	earlierSession string
	// repeated is how many messages at its beginning are those of another file.
	repeated int
	// turnsBefore is how many turns of the conversation other lines of a log have.
	turnsBefore int
	// working: an agent used tools since it last said something, so its answer is not complete.
	working bool
	// toOthers: what is said now answers another session or agent.
	toOthers bool
	// zone is that of times without one; nil: such a time is an error.
	zone *time.Location
	// problem is the first part of the talk that cannot be read: then the talk cannot.
	problem *abi.Error
	// badLines are the lines of a log that cannot be read. The others can.
	badLines []error
	counts   Counts
}

func newTalk(zone *time.Location) *talk { return &talk{zone: zone, counts: newCounts()} }

// say adds a message and returns it, nil for one that is empty. Blanks around it are removed, what an assistant thought
// aloud is left out, and credentials are replaced.
func (t *talk) say(role abi.Role, text string, at time.Time, id string) *message {
	if role == abi.RoleAssistant {
		var thoughts int
		text, thoughts = said.Answer(text)
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

// answered reports whether the assistant said something since the person's last turn began.
func (t *talk) answered() bool {
	return len(t.said) == 0 || t.said[len(t.said)-1].role == abi.RoleAssistant
}

// attached is the line that names an attachment; kind replaces a missing name.
func (t *talk) attached(name, kind string) string {
	t.counts.Attachments++
	if name = strings.Join(strings.Fields(name), " "); name == "" {
		name = kind
	}
	return "[attachment: " + name + "]"
}

// finish leaves out a last turn that has no answer yet, or only a part of one, and commands that nobody answered.
func (t *talk) finish() {
	t.dropCommand()
	if last := t.turnStart(); last >= 0 && (t.working || t.said[len(t.said)-1].role != abi.RoleAssistant) {
		t.said = t.said[:last]
		t.counts.Unfinished++
	}
}

// turnStart is where the last turn begins, -1 where there is none.
func (t *talk) turnStart() int {
	last := len(t.said) - 1
	for last > 0 && (t.said[last].role != abi.RoleUser || t.said[last].joins) {
		last--
	}
	return last
}

// dropCommand leaves out a command that the program dealt with itself: the assistant has not answered it.
func (t *talk) dropCommand() {
	for last := len(t.said) - 1; last >= 0 && t.said[last].command; last-- {
		t.said = t.said[:last]
		t.counts.Instructions++
	}
}

// wordsOf joins the texts of a message, names its attachments and counts the rest.
func (t *talk) wordsOf(pieces []said.Piece) string {
	var words []string
	for _, p := range pieces {
		switch p.Kind {
		case said.Words:
			words = append(words, p.Text)
		case said.Attachment:
			words = append(words, t.attached(p.Text, p.Type))
		case said.ToolCall:
			t.counts.ToolCalls++
		case said.ToolOutput:
			t.counts.ToolOutputs++
		case said.Thought:
			t.counts.Thoughts++
		case said.Instruction:
			t.counts.Instructions++
		case said.Other:
			t.counts.Others++
		case said.Unknown:
			t.counts.Unknown[p.Type]++
		}
	}
	return strings.Join(words, "\n")
}

// wrong notes the first part of a talk that cannot be read.
func (t *talk) wrong(format string, args ...any) {
	if t.problem == nil {
		t.problem = invalid(format, args...)
	}
}

// timeOf reads a message's time; place names it in an error. A time that is missing, or none at all, is a zero one.
func (t *talk) timeOf(raw json.RawMessage, place string) time.Time {
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

// orElse is the first time that is one.
func orElse(at, otherwise time.Time) time.Time {
	if at.IsZero() {
		return otherwise
	}
	return at
}
