package model

import (
	"testing"

	"github.com/memhost/memhost/eval/lab"
	"github.com/stretchr/testify/assert"
)

func TestWhichOptionAnAnswerChooses(t *testing.T) {
	options := []string{"(a) Green tea, no sugar", "(b) Green tea", "(c) Coffee"}
	for answer, want := range map[string]string{
		"(b)": options[1], "b": options[1], "Answer: (c)": options[2], "(c) Coffee": options[2], "**(a)**": options[0],
		"```\nb\n```": options[1], "coffee, as always": options[2], "": "", "none of them": "",
		"green tea or coffee":              "", // two of them
		"I think the user would want (c).": options[2],
	} {
		assert.Equal(t, want, chosen(answer, options), "%q", answer)
	}
	assert.Equal(t, "tea", chosen("Some tea.", []string{"tea", "coffee"}), "options without letters")
}

func TestTheRubricFollowsTheKindOfQuestion(t *testing.T) {
	l := &lab.Lab{Judge: &lab.Judge{Rubric: lab.DefaultRubric}}
	assert.Equal(t, lab.DefaultRubric, rubric(l, "single_hop", false))
	assert.Contains(t, rubric(l, "temporal-reasoning", false), "off by one")
	assert.Contains(t, rubric(l, "temporal", false), lab.DefaultRubric)
	assert.Contains(t, rubric(l, "adversarial", true), "never said")
	l.Judge.Rubric = "my own"
	assert.Equal(t, "my own", rubric(l, "temporal", false))
	assert.Contains(t, rubric(l, "temporal", true), "never said", "a rubric that compares answers cannot be about none")
}
