package simulate

import (
	"context"
	"fmt"
	"strings"

	"github.com/memhost/memhost/eval/journal"
)

// DefaultTurns is the default for after how many answers a scripted user gives up.
const DefaultTurns = 4

// Scripted is a user who reacts by rule, without a model:
//
//   - an answer that uses the value in force is accepted;
//   - one that names it together with another value of the attribute is asked again, and so is the first answer that
//     names no value;
//   - one that uses another value is corrected, and so is a second answer without a value: only now does the user say the
//     value in force;
//   - after Turns answers the user gives up.
//
// If nothing is known, the user accepts an answer that says so, and repeats the question otherwise.
type Scripted struct {
	// Turns is after how many answers the user gives up; 0 means DefaultTurns.
	Turns int
}

var _ Simulator = Scripted{}

// Name implements Simulator.
func (Scripted) Name() string { return "scripted" }

// Open implements Simulator.
func (s Scripted) Open(_ context.Context, setting *Setting) (Conversation, error) {
	turns := s.Turns
	if turns == 0 {
		turns = DefaultTurns
	}
	return &script{setting: setting, turns: turns}, nil
}

// script is one conversation of a scripted user.
type script struct {
	setting *Setting
	turns   int
	answers int
	empty   int // answers that named no value
}

// Opening implements Conversation.
func (c *script) Opening() string { return c.setting.Opening }

// React implements Conversation.
func (c *script) React(_ context.Context, answer string) (journal.Reaction, error) {
	c.answers++
	s, use := c.setting, c.setting.UseOf(answer)
	switch {
	case use == UseCurrent, s.Value == "" && Abstains(answer):
		return journal.Reaction{Action: journal.ActionAccept}, nil
	case c.answers >= c.turns:
		return journal.Reaction{Action: journal.ActionGiveUp}, nil
	case s.Value == "":
		return journal.Reaction{Action: journal.ActionRepeat, Text: "Are you sure? " + s.Opening}, nil
	case use == UseSeveral:
		return journal.Reaction{Action: journal.ActionRepeat, Text: "Which one do you mean? Please settle on one. " + s.Opening}, nil
	case use == UseNone:
		if c.empty++; c.empty == 1 {
			return journal.Reaction{Action: journal.ActionRepeat, Text: "You should know what I like. " + s.Opening}, nil
		}
	}
	return journal.Reaction{Action: journal.ActionCorrect, Text: fmt.Sprintf("No. I want %s. %s", s.Value, s.Opening)}, nil
}

// abstentions are phrases with which an answer says that it does not know.
var abstentions = []string{"do not know", "don't know", "don’t know", "not sure", "no idea", "cannot tell", "can't tell",
	"not mentioned", "never mentioned", "have not told", "haven't told", "no record", "no information", "not been told"}

// Abstains reports whether an answer says that the agent does not know, based on a list of English phrases.
func Abstains(answer string) bool {
	answer = plain(answer)
	for _, words := range abstentions {
		if strings.Contains(answer, words) {
			return true
		}
	}
	return false
}
