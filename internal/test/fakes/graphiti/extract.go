package graphiti

import (
	"regexp"
	"strings"
	"time"

	"github.com/memhost/memhost/internal/test/fakes/embed"
)

// extraction is what the rules make of one sentence.
type extraction struct {
	subject, relation, object, text string
	validAt                         time.Time
	// changes: the sentence says that something is no longer as it was.
	changes bool
}

var (
	spokenLine = regexp.MustCompile(`^(.*?)\((user|assistant|system)\): (.*)$`)
	sentences  = regexp.MustCompile(`[.!?。！？]+(\s|$)|\n|[。！？]`)
	change     = regexp.MustCompile(`(?i)\b(now|no longer|instead|moved|switched)\b`)
	slots      = regexp.MustCompile(`(?i)\b(seat|live|work|coffee|cat)`)
	undated    = regexp.MustCompile(`(?i)\bsomeday\b`)
)

// relations by the first verb of a sentence.
var relations = map[string]string{"prefer": "PREFERS", "live": "LIVES_IN", "drink": "DRINKS", "work": "WORKS_AT",
	"bought": "BOUGHT", "want": "WANTS",
	"like": "LIKES", "own": "OWNS", "love": "LOVES", "have": "HAS"}

// stopWords are no content words.
var stopWords = map[string]bool{"a": true, "an": true, "the": true, "on": true, "in": true, "at": true, "to": true,
	"for": true, "of": true, "my": true, "is": true,
	"i": true, "as": true, "now": true, "every": true, "near": true, "and": true}

// slot is the word that says what a fact is about: two facts of one subject and one slot may contradict each other.
func slot(text string) string { return strings.ToLower(slots.FindString(text)) }

// extract makes a fact of every sentence that a user says, or of every sentence of an episode that is no conversation.
func extract(content, source string, at time.Time) []extraction {
	speaker, heard := "", source != "message"
	var found []extraction
	for _, line := range strings.Split(content, "\n") {
		if m := spokenLine.FindStringSubmatch(line); m != nil && source != "json" {
			speaker, heard, line = strings.TrimSpace(m[1]), m[2] == "user", m[3]
		}
		if !heard {
			continue
		}
		for _, sentence := range sentences.Split(line, -1) {
			if sentence = strings.TrimSpace(sentence); sentence != "" {
				found = append(found, about(speaker, sentence, at))
			}
		}
	}
	return found
}

// about makes a fact of one sentence: "I prefer window seats" by user_a becomes "user_a prefer window seats".
func about(speaker, sentence string, at time.Time) extraction {
	x := extraction{subject: speaker, relation: "SAID", text: speaker + ": " + sentence, validAt: at,
		changes: change.MatchString(sentence)}
	if rest, first := strings.CutPrefix(sentence, "I "); first && speaker != "" {
		x.text = speaker + " " + rest
		for i, word := range strings.Fields(rest) {
			if name := relations[strings.ToLower(word)]; name != "" && i < 2 {
				x.relation = name
				break
			}
		}
	}
	if speaker == "" { // no conversation: the sentence is the fact
		x.subject, x.text = "somebody", sentence
	}
	if undated.MatchString(sentence) {
		x.validAt = time.Time{}
	}
	var content []string
	for _, word := range strings.Fields(sentence) {
		if w := strings.Trim(word, ",;:\"'"); w != "" && !stopWords[strings.ToLower(w)] {
			content = append(content, w)
		}
	}
	x.object = strings.Join(content[max(0, len(content)-3):], " ")
	if len(embed.Words(x.object)) == 0 || x.object == speaker {
		x.object = "something " + x.object
	}
	return x
}
