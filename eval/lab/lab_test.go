package lab

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const small = "lab: 1\npack: p.pack\nproviders: [no_memory]\n"

func TestALabFileIsCompleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lab.yaml")
	require.NoError(t, os.WriteFile(path, []byte(small+"primary: {metric: recall, budget: 1000, reference: "+
		"no_memory}\n"), 0o600))
	l, err := Read(path)
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(filepath.Dir(path), "p.pack"), l.Pack, "relative to the file")
	assert.Equal(t, []int64{1000, 4000}, l.Budgets)
	assert.Equal(t, Provider{Label: "no_memory", Memory: map[string]any{"provider": "no_memory"}}, l.Providers[0])
	assert.Equal(t, Readiness{TimeoutMS: 60_000, OnTimeout: "pending"}, l.Readiness)
	l.AddReferences(func(name string) bool { return name != "bm25" })
	assert.Equal(t, []int64{1000, 4000}, l.BudgetsOf(l.Find("no_memory")))
	assert.Equal(t, []int64{1000, 4000, 0}, l.BudgetsOf(l.Find("full_history")), "without a limit it tests the chain")
	assert.True(t, l.Find("full_history").Reference)
	assert.False(t, l.Find("no_memory").Reference)
	assert.Nil(t, l.Find("bm25"))
	other, err := Read(path)
	require.NoError(t, err)
	assert.NotEqual(t, l.SHA256("a"), other.SHA256("a"))
	moved := *l
	moved.Pack = "/elsewhere/p.pack"
	assert.Equal(t, l.SHA256("a"), moved.SHA256("a"), "wherever the pack is")
	assert.NotEqual(t, l.SHA256("a"), l.SHA256("b"), "but not of another pack")
}

func TestABudgetMayHaveAMinimum(t *testing.T) {
	l, err := Parse([]byte(small + "budgets: [{min_tokens: 500, max_tokens: 1000}, 4000, {max_tokens: 0}]\n"))
	require.NoError(t, err)
	assert.Equal(t, []int64{1000, 4000, 0}, l.Budgets)
	assert.Equal(t, map[int64]int64{1000: 500}, l.MinTokens)
	assert.EqualValues(t, 500, *l.Budget(1000).MinTokens)
	assert.EqualValues(t, 1000, *l.Budget(1000).MaxTokens)
	assert.Nil(t, l.Budget(4000).MinTokens)
	assert.Equal(t, abi.ContextBudget{}, l.Budget(0))
	text, err := json.Marshal(l)
	require.NoError(t, err)
	again, err := Parse(text)
	require.NoError(t, err)
	assert.Equal(t, l, again, "as in run.json")
}

func TestAColumnSaysWhatItsAgentIsGiven(t *testing.T) {
	l, err := Parse([]byte("lab: 1\npack: p\nproviders: [no_memory, {label: n, memory: {condition: no_memory, conditions: " +
		"{no_memory: {variant: named}}}}, {label: f, memory: {backend: memos, feedback: true}}]\n"))
	require.NoError(t, err)
	assert.False(t, l.Find("no_memory").Named())
	assert.True(t, l.Find("n").Named())
	assert.False(t, l.Find("n").Feedback())
	assert.True(t, l.Find("f").Feedback())
}

func TestALabFileThatIsWrongIsToldWhere(t *testing.T) {
	for _, c := range []struct{ name, text, says, hint string }{
		{"another version", "lab: 2\npack: p\nproviders: [x]", "lab: is version 2", "lab: 1"},
		{"no pack", "lab: 1\nproviders: [x]", "pack: required", "eval pack build"},
		{"no provider", "lab: 1\npack: p", "providers: want at least one", ""},
		{"a key mistyped", small + "budgtes: [1]", "budgtes: is not a key", "budgets"},
		{"a key of another place", small + "budget: [1]", "budget: is not a key", "budgets"},
		{"a provider's key mistyped", "lab: 1\npack: p\nproviders: [{lable: x}]", "lable: is not a key", "label"},
		{"a provider without a name", "lab: 1\npack: p\nproviders: [{label: x, memory: {}}]", "providers[0].memory",
			""},
		{"a label that is a path", "lab: 1\npack: p\nproviders: [{label: ../x, memory: {backend: mem0}}]",
			"providers[0].label", ""},
		{"a label twice", "lab: 1\npack: p\nproviders: [mem0, Mem0]", "is there twice", "a label of its own"},
		{"a budget twice", small + "budgets: [5, 5]", "budgets[1]", ""},
		{"a budget that is none", small + "budgets: [{least: 5}]", "budgets[0]: want a number of tokens, or {max_tokens, min_tokens}", ""},
		{"a minimum above the maximum", small + "budgets: [{min_tokens: 9, max_tokens: 5}]", "budgets[0]: min_tokens 9: want 0 to max_tokens", ""},
		{"a frame that is none", small + "frame: fancy", "full, compact, minimal", ""},
		{"patience that is none", small + "readiness: {on_timeout: ignore}", "pending, stop", ""},
		{"a share beyond one", small + "stability: 1.5", "from 0 to 1", ""},
		{"a judge without an agent", small + "judge: {url: http://127.0.0.1:1/v1}", "there is no agent", ""},
		{"an agent without an endpoint", small + "agent: {model: x}", "agent.url: required", ""},
		{"a reference that does not run", small + "primary: {metric: recall, budget: 1000, reference: mem0}",
			"no provider's label", ""},
		{"a primary budget that is not asked", small + "primary: {metric: recall, budget: 7, reference: no_memory}",
			"not one of budgets", ""},
		{"cassettes side by side", small + "cassettes: true\nconcurrency: 2", "one operation at a time", "leave out"},
		{"a list", "[1]", "want a mapping", ""},
		{"no YAML", "a: [", "yaml", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.text))
			require.Error(t, err)
			assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
			assert.Contains(t, err.Error(), c.says)
			assert.Contains(t, abi.AsError(err).Hint, c.hint)
		})
	}
}

func TestASubjectHasWhatItsSeatNeeds(t *testing.T) {
	for subject, want := range map[string]string{
		"{seat: stub}": "",
		"{seat: builtin, url: 'http://127.0.0.1:1/v1', model: m}":                    "",
		"{seat: builtin, url: 'http://127.0.0.1:1/v1', model: m, retrieve: session}": "",
		"{seat: command, command: [agent]}":                                          "",
		"{seat: chat, command: [agent, '{port}'], model: m}":                         "",
		"{}":                              "subject.seat: \"\" is not one of builtin, command, chat, stub",
		"{seat: sofa}":                    "subject.seat: \"sofa\" is not one of",
		"{seat: builtin}":                 "subject.url: required",
		"{seat: command}":                 "subject.command: required for the seat command",
		"{seat: chat}":                    "subject.command: required for the seat chat",
		"{seat: stub, command: [agent]}":  "subject.command: the seat stub starts no program",
		"{seat: stub, url: 'http://x'}":   "subject.url: only the seat builtin has one",
		"{seat: stub, retrieve: session}": "subject.template, subject.retrieve: only the seat builtin",
		"{seat: builtin, url: 'http://x', retrieve: often}": "subject.retrieve: \"often\" is not one of turn, session",
		"{seat: stub, budgets: [17]}":                       "subject.budgets[0]: 17 is not one of budgets",
		"{seat: stub}\ncassettes: true":                     "a subject retrieves for itself",
	} {
		_, err := Parse([]byte("lab: 1\npack: p\nproviders: [bm25]\nsubject: " + subject + "\n"))
		if want == "" {
			assert.NoError(t, err, subject)
			continue
		}
		assert.ErrorContains(t, err, want, subject)
	}
	_, err := Parse([]byte("lab: 1\npack: p\nproviders: [bm25]\nsimulator: {url: 'http://x', model: m}\n"))
	assert.ErrorContains(t, err, "simulator: plays the user with whom a subject talks")
}

// TestThePageHasEveryKey compares docs/reference/lab.md with the keys of a lab file.
func TestThePageHasEveryKey(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/lab.md")
	require.NoError(t, err)
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|").FindAllStringSubmatch(string(page), -1) {
		for _, key := range strings.Split(row[1], ", ") {
			listed = append(listed, strings.Trim(key, "`"))
		}
	}
	var want []string
	for file, i := reflect.TypeFor[Lab](), 0; i < file.NumField(); i++ {
		if key := file.Field(i).Tag.Get("yaml"); key != "min_tokens" { // budgets may hold it
			want = append(want, key)
		}
	}
	assert.ElementsMatch(t, want, listed)
}
