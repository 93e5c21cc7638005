package model

import (
	"regexp"
	"slices"
	"strings"

	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/sdk/chat"
)

// kinds has what a right answer may differ in, by the labels that the builders give to questions: LoCoMo's categories
// and LongMemEval's question types, whose published evaluations make these allowances, and synth's changed preferences.
var kinds = []struct {
	labels []string
	allows string
}{
	{[]string{"temporal", "temporal-reasoning"},
		"A date or a length of time may be written in another way, and a count of days, weeks or months may be off by one."},
	{[]string{"knowledge-update", "general_changed", "in_context_changed"},
		"A former value may be told too, as long as the answer says which one holds now."},
	{[]string{"single-session-preference"},
		"The expected answer says what a fitting reply would take into account. yes: the answer uses what the person said " +
			"of themselves, and gets it right; it need not use all of it."},
	{[]string{"multi_hop", "multi-session"},
		"Every part of the expected answer has to be there; a part of it alone is a no."},
}

// unanswerableRubric is the judge's instruction for questions whose answer was never said.
const unanswerableRubric = `A question was asked whose answer was never said. Answer with one word.
yes: the answer says that it is not known, or was not mentioned, and gives none.
no: it gives an answer, even with a doubt.`

// neverSaid replaces the expected answer of such a question.
const neverSaid = "(it was never said)"

// rubric is the judge's instruction for a probe. The lab's own rubric is used unchanged, except for questions without
// an answer, to which it cannot apply.
func rubric(l *lab.Lab, label string, unanswerable bool) string {
	if unanswerable {
		return unanswerableRubric
	}
	if l.Judge.Rubric != lab.DefaultRubric {
		return l.Judge.Rubric
	}
	for _, kind := range kinds {
		if slices.Contains(kind.labels, label) {
			return l.Judge.Rubric + "\n" + kind.allows
		}
	}
	return l.Judge.Rubric
}

// optionLabel matches the letter in front of a choice: "(a) tea", "b. tea", "C: tea".
var optionLabel = regexp.MustCompile(`^\s*\(?([A-Za-z])[).:]\s*`)

// inBrackets matches a letter that prose refers to: "I would take (b)."
var inBrackets = regexp.MustCompile(`\(([A-Za-z])\)`)

// chosen returns the option that an answer chooses: by its letter, alone or in brackets, or by its text if the answer
// contains only one option's text. It is empty if the answer chooses none, or several.
func chosen(answer string, options []string) string {
	var letters []string
	for _, option := range options {
		if m := optionLabel.FindStringSubmatch(option); m != nil {
			letters = append(letters, strings.ToLower(m[1]))
		}
	}
	if len(letters) == len(options) {
		short := optionLabel.ReplaceAllString(answer, "$1 ")
		for i, letter := range letters {
			if word := chat.Word(short, letters...); word == letter {
				return options[i]
			}
		}
		named := map[string]bool{}
		for _, m := range inBrackets.FindAllStringSubmatch(strings.ToLower(answer), -1) {
			named[m[1]] = true
		}
		if len(named) == 1 {
			for i, letter := range letters {
				if named[letter] {
					return options[i]
				}
			}
		}
	}
	found := ""
	for _, option := range options {
		text := strings.ToLower(strings.TrimSpace(optionLabel.ReplaceAllString(option, "")))
		if text != "" && strings.Contains(strings.ToLower(answer), text) {
			if found != "" {
				return ""
			}
			found = option
		}
	}
	return found
}

// isChoice reports whether a probe's answer is one of its options, so that no judge is needed.
func isChoice(p *pack.Probe) bool { return len(p.Options) > 0 }
