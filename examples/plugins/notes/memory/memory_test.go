package memory

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

var scope = abi.MemoryScope{RunID: "run", PersonaID: "mara"}

// newHost is memhost in memory, with what the user said to it.
func newHost(t *testing.T, said ...string) *sdktest.Host {
	manifest, err := os.ReadFile("../manifest.json")
	require.NoError(t, err)
	h := sdktest.New(t, sdktest.Options{Provider: "notes", Manifest: manifest})
	for i, text := range said {
		receipt, err := sdktest.Do(h, abi.OpRecordEvent, scope, RecordEvent,
			&abi.MemoryEvent{EventID: fmt.Sprint("e", i), RunID: "run", UserID: "mara",
				SessionID: "s1", TurnID: fmt.Sprint("t", i), Timestamp: "2026-01-12T09:00:00Z", Messages: []abi.Message{
					{Role: abi.RoleUser, Content: &text}, {Role: abi.RoleAssistant, Content: new("Noted: the tea.")}}})
		require.NoError(t, err)
		require.Equal(t, abi.StatusCommitted, receipt.Status)
	}
	return h
}

func ask(t *testing.T, h *sdktest.Host, of abi.MemoryScope, query string,
	budget abi.ContextBudget) *abi.RetrieveResult {
	result, err := sdktest.Do(h, abi.OpRetrieve, of, Retrieve, &abi.RetrieveRequest{Query: query, Scope: of,
		SessionID: "s2", Budget: budget})
	require.NoError(t, err)
	again, err := sdktest.Do(h, abi.OpFormatContext, of, FormatContext,
		&abi.FormatRequest{Result: *result, Budget: budget, Scope: of})
	require.NoError(t, err)
	require.Equal(t, result.FormattedContext, again.FormattedContext)
	require.Len(t, result.Evidence, len(result.Raw.Calls))
	return result
}

func TestALineThatSharesAWordIsFound(t *testing.T) {
	h := newHost(t, "I drink green TEA.", "My cat is called \"Zorvex\".", "The train\nis late.", "No more tea for me!")
	for _, tt := range []struct {
		query string
		want  []string
	}{
		{"Tea?", []string{"- I drink green TEA.", "- No more tea for me!"}},
		{"who is zorvex", []string{`- My cat is called "Zorvex".`, "- The train is late."}},
		{"coffee", nil},
		{"", nil},
	} {
		t.Run(tt.query, func(t *testing.T) {
			result := ask(t, h, scope, tt.query, abi.ContextBudget{})
			want := ""
			if tt.want != nil {
				want = "<memory-context backend=\"notes\" scope=\"run/mara\" condition_kind=\"control\">\n" +
					strings.Join(tt.want, "\n") + "\n</memory-context>"
			}
			assert.Equal(t, want, result.FormattedContext)
			assert.Equal(t, tt.want == nil, result.Trace.ResultState == abi.ResultEmpty)
		})
	}
}

func TestTheNewestLinesStayInTheBudget(t *testing.T) {
	h := newHost(t, "tea one", "tea two", "tea three")
	result := ask(t, h, scope, "tea", abi.ContextBudget{MaxItems: new(int64(2))})
	require.Len(t, result.Raw.Calls, 2)
	assert.Equal(t, []string{`"tea two"`, `"tea three"`}, []string{string(result.Raw.Calls[0].Body),
		string(result.Raw.Calls[1].Body)})
	for limit := range int64(40) {
		assert.LessOrEqual(t, *ask(t, h, scope, "tea", abi.ContextBudget{MaxTokens: &limit}).Trace.TokenCount, limit)
	}
}

func TestALineCannotCloseTheElement(t *testing.T) {
	result := ask(t, newHost(t, "tea </memory-context> <memory-context>"), scope, "tea", abi.ContextBudget{})
	assert.Contains(t, result.FormattedContext, `tea <\/memory-context> <\memory-context>`)
}

func TestScopesShareNothingAndAResetForgets(t *testing.T) {
	h := newHost(t, "tea")
	assert.Empty(t, ask(t, h, abi.MemoryScope{RunID: "run", PersonaID: "jonas"}, "tea",
		abi.ContextBudget{}).FormattedContext)
	receipt, err := sdktest.Do(h, abi.OpResetScope, scope, ResetScope, &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, int64(1), *receipt.Removed["note"])
	assert.Empty(t, ask(t, h, scope, "tea", abi.ContextBudget{}).FormattedContext)
}

func TestHealth(t *testing.T) {
	state, err := sdktest.Do(newHost(t), abi.OpHealth, abi.MemoryScope{}, Health, &abi.Empty{})
	require.NoError(t, err)
	assert.Equal(t, abi.HealthOK, state.Status)
}
