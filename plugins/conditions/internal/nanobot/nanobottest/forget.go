package nanobottest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

// Forget runs the operation in the rig's scope.
func (r *Rig) Forget(request abi.ForgetRequest) *abi.ForgetReceipt {
	r.T.Helper()
	request.Scope, request.Reason = r.Scope, "asked"
	receipt, err := sdktest.Do(r.Host, abi.OpForget, r.Scope, r.module.Forget, &request)
	require.NoError(r.T, err)
	require.Equal(r.T, abi.ForgetDone, receipt.Status)
	return receipt
}

func (m Module) s14(t *testing.T) {
	for name, request := range map[string]abi.ForgetRequest{
		"by event":     {EventIDs: []string{"e1", "unknown"}},
		"by session":   {SessionID: "s"},
		"by time":      {From: "2026-01-12T10:01:00+01:00", To: "2026-01-12T09:01:00Z"},
		"by native id": {NativeIDs: []string{"s#0", "other#0", "nothing"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := m.NewRig(t, `"profile":"local","include_tail":true`)
			b.Record(b.Turn("s", "My cat is called Zorvex.", "assistant: Zorvex!"))
			b.Record(b.Turn("s1", "I like oolong tea."))
			b.Record(b.Turn("s10", "I like green tea."))
			before := b.Files()
			require.NotEmpty(t, b.Host.Find(b.Scope, "Zorvex"))
			r := b.Forget(request)
			assert.Equal(t, []string{"s#0", "s#1"}, r.Removed["message"])
			assert.Empty(t, r.DerivedMayRemain)
			assert.Empty(t, b.Host.Find(b.Scope, "Zorvex"))
			assert.NotContains(t, b.Keys(b.Scope), "event/e1")
			assert.Empty(t, b.Forget(request).Removed["message"], "the second time there is nothing left")

			assert.NotContains(t, b.Find("s", "cat", abi.ContextBudget{}).FormattedContext, "Zorvex")
			for session, text := range map[string]string{"s1": "oolong", "s10": "green"} {
				assert.Contains(t, b.Find(session, "tea", abi.ContextBudget{}).FormattedContext, text)
			}
			after := b.Files()
			for path, text := range before {
				if path != "sessions/cw.jsonl" { // that of s
					assert.Equal(t, text, after[path], path)
				}
			}
			b.Record(b.Turn("s", "We speak of rain."))
			assert.Equal(t, 3, b.Session("s").Messages, "others keep their numbers")
			assert.Contains(t, b.Find("s", "rain", abi.ContextBudget{}).FormattedContext, "We speak of rain.")
			assert.NotContains(t, b.all(), "Zorvex")
		})
	}
}

func (m Module) s15(t *testing.T) {
	b := m.NewRig(t, "")
	b.Record(b.Turn("s", "My cat is called Zorvex."))
	b.Record(b.Turn("s", "I like oolong tea."))
	b.Record(b.Turn("end", "We speak of rain."))
	b.Wait()
	require.Contains(t, b.Find("s", "cat", abi.ContextBudget{}).FormattedContext, "Zorvex")
	r := b.Forget(abi.ForgetRequest{EventIDs: []string{"e1"}})
	assert.Equal(t, []string{"s#0"}, r.Removed["message"])
	assert.NotEmpty(t, r.DerivedMayRemain)
	for _, name := range b.Host.Find(b.Scope, "Zorvex") {
		assert.NotContains(t, name, "messages/")
	}

	// What a model derived from the session alone is forgotten with it; what it derived from everything is forgotten if
	// it is named.
	r = b.Forget(abi.ForgetRequest{SessionID: "s"})
	assert.Equal(t, []string{"s#1"}, r.Removed["message"])
	r = b.Forget(abi.ForgetRequest{EventIDs: []string{"e1", "e2"}})
	assert.Empty(t, r.Removed["message"])
	var named []string
	for _, e := range b.Find("s", "cat", abi.ContextBudget{}).Evidence {
		named = append(named, e.NativeID)
	}
	if len(named) > 0 {
		b.Forget(abi.ForgetRequest{NativeIDs: named})
	}
	assert.Empty(t, b.Host.Find(b.Scope, "Zorvex"))
	b.Record(b.Turn("s2", "I like green tea."))
	b.Wait()
}
