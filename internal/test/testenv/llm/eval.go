package llm

import (
	"cmp"
	"slices"
	"strings"
)

// An evaluation's agent and judge, by the words of their prompts (eval/lab's default template and rubric). The agent
// repeats what the memory says with the question's words; the judge accepts an answer that holds what was expected.
// Both show that the way is open, and nothing about a memory's worth.
var evalRules = []promptRule{
	{purpose: "eval.judge", match: func(_ *Prompt, text string) bool {
		return strings.Contains(text, "\nExpected answer: ") && strings.Contains(text, "\nAnswer: ")
	}, answer: func(_ *Prompt, text string) Answer {
		_, rest, _ := strings.Cut(text, "\nExpected answer: ")
		expected, answer, _ := strings.Cut(rest, "\nAnswer: ")
		if strings.Contains(strings.ToLower(answer), strings.ToLower(strings.TrimSpace(expected))) {
			return Answer{Text: "yes"}
		}
		return Answer{Text: "no"}
	}},
	{purpose: "eval.agent", match: func(_ *Prompt, text string) bool {
		return strings.Contains(text, "Use what the memory above says") && strings.Contains(text, "\nQuestion: ")
	}, answer: func(p *Prompt, _ string) Answer {
		memory, question, _ := strings.Cut(p.Last("user"), "\nQuestion: ")
		return Answer{Text: cmp.Or(nearestLine(memory, question), "I do not know.")}
	}},
}

// nearestLine is the memory's line that shares most words with a question, the last of equal ones; empty if none shares
// two.
func nearestLine(memory, question string) string {
	asked, best, most := Tokens(question), "", 1
	for _, line := range strings.Split(memory, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "<") {
			continue
		}
		shared := 0
		for _, word := range Tokens(line) {
			if slices.Contains(asked, word) {
				shared++
			}
		}
		if shared >= most && shared > 1 {
			best, most = line, shared
		}
	}
	return strings.TrimSpace(best)
}
