package seat

import (
	"context"
	"regexp"
	"strings"

	"github.com/memhost/memhost/eval/subject"
	"github.com/memhost/memhost/internal/doors/client"
)

// Stub is the seat of a rule-based stand-in for an agent, inside this process. It retrieves on every turn and answers
// with the last sentence of its memory that names the session's attribute or shares words with the question, or with
// what the user just corrected. Reports show prominently that no agent was measured.
type Stub struct{}

// Kind implements Seat.
func (Stub) Kind() string { return "stub" }

// Sit implements Seat.
func (Stub) Sit(_ context.Context, start *subject.Start) (subject.Subject, error) {
	slot, err := client.New(start.Door.HTTP, start.Door.Token)
	if err != nil {
		return nil, err
	}
	return &rules{memory: memory{start: start, slot: slot}}, nil
}

// rules is a stub in one conversation.
type rules struct{ memory }

var (
	correction = regexp.MustCompile(`(?i)^no\. i want (.+?)\.(?:\s|$)`)
	tags       = regexp.MustCompile(`<[^>]*>`)
	words      = regexp.MustCompile(`[\pL\pN]+`)
)

// Say implements Subject.
func (r *rules) Say(ctx context.Context, text string) (*subject.Answer, error) {
	context, err := r.retrieve(ctx, text)
	if err != nil {
		return nil, err
	}
	answer := "I do not know that."
	if m := correction.FindStringSubmatch(text); m != nil {
		answer = "Then it is " + m[1] + "."
	} else if line := r.best(context, text); line != "" {
		answer = line
	}
	return &subject.Answer{Text: answer, Model: "memhost stub agent", Stub: true}, nil
}

// best returns the line of a context that shares most words with the question; the last one if there are several.
func (r *rules) best(context, text string) string {
	asked := map[string]bool{}
	for _, word := range words.FindAllString(strings.ToLower(text+" "+r.start.Attribute+" "+r.start.Context), -1) {
		asked[word] = len(word) > 3
	}
	best, most := "", 0
	for _, line := range strings.Split(tags.ReplaceAllString(context, ""), "\n") {
		shared := map[string]bool{}
		for _, word := range words.FindAllString(strings.ToLower(line), -1) {
			if asked[word] {
				shared[word] = true
			}
		}
		if n := len(shared); n > 0 && n >= most {
			best, most = strings.TrimSpace(line), n
		}
	}
	return best
}
