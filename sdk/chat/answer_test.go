package chat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestText(t *testing.T) {
	for content, want := range map[string]string{`"hello"`: "hello", `null`: "", `7`: "",
		`"<think>a</think>yes"`:                                                 "yes",
		`[{"type":"text","text":"a"},{"text":"b"}]`:                             "ab",
		`[{"type":"thinking","text":"x"},"c"]`:                                  "c",
		`[{"type":"reasoning","summary":[]},{"type":"output_text","text":"d"}]`: "d"} {
		assert.Equal(t, want, Text([]byte(content)), content)
	}
}

func TestWord(t *testing.T) {
	for answer, want := range map[string]string{"yes": "yes", "No.": "no", "Answer: yes": "yes", "**Yes**": "yes",
		"```\nyes\n```": "yes", "```json\n{\"verdict\": \"no\"}\n```": "no", "<think>no?</think>yes": "yes",
		"Both mean the same.\nFinal answer: yes": "yes", "The answer is no, since it is old.": "no", "Yes, it is.": "yes",
		"maybe": "", "yes, or no": "", "": "", "Both yes and no are possible": "", "Verdict:\n\nno": "no", "\"yes\"": "yes", "yesterday": "",
		"Thinking it over.\n</think>\n\nno": "no"} {
		assert.Equal(t, want, Word(answer, "yes", "no"), answer)
	}
	assert.Equal(t, "keep_both", Word("`keep_both`", "keep_old", "keep_both"))
}

func TestList(t *testing.T) {
	const item = `[{"a":1}]`
	for answer, want := range map[string]int{item: 1, "From line [1] I take this:\n```json\n" + item + "\n```": 1,
		"Often I answer [] but here is one:\n" + item: 1, "[]": 0, "Nothing to keep: []": 0, `{"events": []}`: 0,
		`{"items": [{"a":1},{"a":2}], "note": [1]}`: 2, "<think>[{\"a\":9},{\"a\":8}]</think>" + item: 1,
		"See [1] and [2].": -1, "no list": -1, `{"a": 1}`: -1, "[1, {\"a\":2}]": -1, "As in [a](b) " + item: 1, "[" + item: 1} {
		items, ok := List(answer, "events", "items")
		assert.Equal(t, want >= 0, ok, answer)
		assert.Len(t, items, max(want, 0), answer)
	}
}

func TestRetryAfterAndErrorText(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for header, want := range map[string]int64{"7": 7000, " 0 ": 0, "Mon, 02 Mar 2026 09:00:30 GMT": 30000,
		"Mon, 02 Mar 2026 08:00:00 GMT": 0, "999999999": 86400000} {
		ms, ok := RetryAfter(header, now)
		assert.True(t, ok, header)
		assert.Equal(t, want, ms, header)
	}
	for _, header := range []string{"", "soon", "-1"} {
		_, ok := RetryAfter(header, now)
		assert.False(t, ok, header)
	}
	for body, want := range map[string]string{`{"error":{"message":"too long","code":3}}`: "too long", `{"error":"no"}`: "no",
		`{"detail":"bad"}`: "bad", "plain\n text": "plain text", `{"x":1}`: `{"x":1}`} {
		assert.Equal(t, want, ErrorText([]byte(body)), body)
	}
}
