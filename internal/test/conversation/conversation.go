// Package conversation is integrations/testdata/conversation.json, which the tests of every integration hold: 24 turns
// of three people, with providers swapped and the slot down for a while. The README in its folder says what its fields
// are.
package conversation

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
)

// Conversation is what is said.
type Conversation struct {
	Run   string
	Turns []Turn
}

// Turn is what one person says.
type Turn struct {
	N                                   int `json:"-"` // its place, from 0
	Provider, Slot, User, Session, Text string
	Knows                               []int
}

// Talker is an agent with its integration.
type Talker interface {
	// Say is a turn. It gives the context that the model was shown.
	Say(turn Turn) string
	// Settle returns when everything that was said is with the slot, which serves.
	Settle()
}

// Slot is a real slot, whose configuration has memory.archive.
type Slot interface {
	Stop()
	// Start starts the slot again at the same address.
	Start()
	Swap(provider string)
	// Archive is an export of the archive.
	Archive() string
}

// Without are the words for what a test can switch off, with what is then found; "" is nothing.
var Without = map[string]string{"": "", "recording": "lost", "queue": "lost", "scope": "crossed"}

// Read reads the file.
func Read(path string) (c Conversation, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	for n := range c.Turns {
		c.Turns[n].N = n
	}
	return c, err
}

// Hold lets an agent hold the conversation, and gives what is wrong with what was shown and recorded, one line each:
// "lost: ...", "doubled: ...", "crossed: ...", "unknown: ...", "recorded: ...", "order: ...".
func (c Conversation) Hold(slot Slot, agent Talker) (found []string) {
	for _, turn := range c.Turns {
		switch turn.Slot {
		case "stop":
			slot.Stop()
		case "start":
			slot.Start()
		}
		if turn.Provider != "" {
			agent.Settle() // what is on its way is this provider's
			slot.Swap(turn.Provider)
		}
		found = append(found, c.wrongWith(turn, agent.Say(turn))...)
	}
	agent.Settle()
	return append(found, c.wrongInArchive(slot.Archive())...)
}

// Found reports whether a line of that kind was found.
func Found(found []string, kind string) bool {
	return slices.ContainsFunc(found, func(line string) bool { return strings.HasPrefix(line, kind+": ") })
}

var speaker = regexp.MustCompile(` of (\w+)`)

// wrongWith tells what a context lacks, and what of others is in it.
func (c Conversation) wrongWith(turn Turn, context string) (found []string) {
	for _, word := range speaker.FindAllStringSubmatch(context, -1) {
		if word[1] != turn.User && slices.ContainsFunc(c.Turns, func(other Turn) bool { return other.User == word[1] }) {
			found = append(found, fmt.Sprintf("crossed: turn %d of %s is shown what %s said", turn.N, turn.User, word[1]))
		}
	}
	for _, n := range turn.Knows {
		if !strings.Contains(context, c.Turns[n].Text) {
			found = append(found, fmt.Sprintf("unknown: turn %d is not shown turn %d", turn.N, n))
		}
	}
	return found
}

// wrongInArchive compares what each person said with an export of the archive.
func (c Conversation) wrongInArchive(export string) (found []string) {
	said, want := map[string][]string{}, map[string][]string{}
	for _, turn := range c.Turns {
		want[turn.User] = append(want[turn.User], turn.Text)
	}
	for line := range strings.Lines(export) {
		var e abi.MemoryEvent
		err := json.Unmarshal([]byte(line), &e)
		if err != nil || e.RunID != c.Run || strings.Contains(line, "memory-context") || strings.Contains(line, "TOOLRESULT") {
			found = append(found, "recorded: what no person said: "+line)
		}
		for _, m := range e.Messages {
			if m.Role == abi.RoleUser {
				said[e.UserID] = append(said[e.UserID], *m.Content)
			}
		}
	}
	for user, texts := range want {
		for _, text := range texts {
			n := len(slices.DeleteFunc(slices.Clone(said[user]), func(s string) bool { return s != text }))
			if n == 0 {
				found = append(found, fmt.Sprintf("lost: %q", text))
			}
			if n > 1 {
				found = append(found, fmt.Sprintf("doubled: %q is there %d times", text, n))
			}
		}
		if len(found) == 0 && !slices.Equal(said[user], texts) {
			found = append(found, fmt.Sprintf("order: %s said %q", user, said[user]))
		}
	}
	return found
}
