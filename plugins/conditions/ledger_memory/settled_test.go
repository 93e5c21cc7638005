package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/testenv/llm"
	"github.com/memhost/memhost/sdk/sdktest"
)

// TestWhatAPersonSettlesHoldsAgainstTurnsThatWait: a recorded turn waits for the model, which then repeats a fact that
// the person has forgotten or corrected in the meantime. A later turn counts again.
func TestWhatAPersonSettlesHoldsAgainstTurnsThatWait(t *testing.T) {
	const oslo = `{"event_type":"add","subject":"User","predicate":"lives in","object":"Oslo."}`
	forget := `{"subject":"user","predicate":"lives in"}`
	var id string
	for name, c := range map[string]struct {
		settle func(t *testing.T, h *sdktest.Host)
		said   string // by the model of the turn that waits
		shown  string // afterwards, besides what is said later
		gone   string
		policy string
	}{
		"a fact is forgotten": {said: oslo, gone: "Oslo", settle: func(t *testing.T, h *sdktest.Host) {
			must(t, h, "memory_forget", `{"subject":"user","predicate":"lives in","object":"Oslo"}`)
		}},
		"by its id": {said: oslo, gone: "Oslo", settle: func(t *testing.T, h *sdktest.Host) {
			must(t, h, "memory_forget", `{"id":"`+id+`"}`)
		}},
		"all of a kind": {said: strings.ReplaceAll(oslo, "Oslo", "Bergen"), gone: "Bergen", settle: func(t *testing.T, h *sdktest.Host) {
			must(t, h, "memory_forget", forget)
		}},
		"erased": {said: oslo, gone: "Oslo", settle: func(t *testing.T, h *sdktest.Host) {
			_, err := sdktest.Do(h, abi.OpForget, scope, erase, &abi.ForgetRequest{Scope: scope, NativeIDs: []string{id}, Reason: "asked"})
			require.NoError(t, err)
		}},
		"corrected": {said: oslo, gone: "Oslo", shown: "Rome", settle: func(t *testing.T, h *sdktest.Host) {
			must(t, h, "memory_update", `{"id":"`+id+`","object":"Rome"}`)
		}},
		"corrected, and the model modifies": {said: `{"event_type":"modify","subject":"user","predicate":"lives in","object":"Bergen"}`,
			gone: "Bergen", shown: "Rome", settle: func(t *testing.T, h *sdktest.Host) {
				must(t, h, "memory_update", `{"id":"`+id+`","object":"Rome"}`)
			}},
		"corrected, and the model forgets": {said: `{"event_type":"forget","subject":"user","predicate":"lives in"}`,
			shown: "Rome", gone: "Oslo", settle: func(t *testing.T, h *sdktest.Host) {
				must(t, h, "memory_update", `{"id":"`+id+`","object":"Rome"}`)
			}},
		"corrected, and the new fact would replace it": {said: strings.ReplaceAll(oslo, "Oslo", "Bergen"), shown: "Rome", gone: "Oslo",
			policy: "replace", settle: func(t *testing.T, h *sdktest.Host) {
				must(t, h, "memory_update", `{"id":"`+id+`","object":"Rome"}`)
			}},
		"a conflict is settled": {said: strings.ReplaceAll(oslo, "Oslo", "Paris"), shown: "Rome", gone: "Paris",
			settle: func(t *testing.T, h *sdktest.Host) {
				must(t, h, "create_branch", `{"name":"b"}`)
				must(t, h, "memory_update", `{"id":"`+id+`","object":"Rome"}`)
				must(t, h, "memory_update", `{"id":"`+id+`","object":"Paris","branch":"b"}`)
				must(t, h, "merge", `{"source":"b","on_conflict":"ours"}`)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			policy := c.policy
			if policy == "" {
				policy = "keep_both"
			}
			h, stub := withModel(t, `,"update_policy":"every_event","conflict_policy":"`+policy+`"`)
			remembered(t, h, stub, "e1", "["+strings.ReplaceAll(oslo, "Oslo.", "Oslo")+"]", "nanobot.judge", "unasked")
			_, id, _ = strings.Cut(ask(t, h, "memory_search", `{"query":"Oslo"}`), `"id":"`)
			id = id[:strings.Index(id, `"`)]
			record(t, h, turn("e2", "s", "I said so before."))
			c.settle(t, h)
			later := `{"event_type":"add","subject":"user","predicate":"owns","object":"a cat"}`
			stub.ClearFaults()
			require.NoError(t, stub.Fail(llm.Fault{Purpose: "nanobot.ledger", Mode: llm.Say, Content: "[" + c.said + "," + later + "]"}))
			require.Equal(t, abi.ReadinessReady, wait(t, h).Status)
			view := ask(t, h, "view", `{}`)
			assert.NotContains(t, view, c.gone)
			assert.Contains(t, view, c.shown)
			assert.Contains(t, view, "a cat", "the rest of the turn is remembered")

			if c.gone == "Oslo" { // the person says it again
				remembered(t, h, stub, "e3", "["+oslo+"]", "nanobot.judge", "unasked")
				assert.Contains(t, ask(t, h, "view", `{}`), "Oslo")
			}
			for _, key := range h.Keys(scope) {
				assert.NotContains(t, key, settledPrefix, "nothing waits any more")
			}
		})
	}
}
