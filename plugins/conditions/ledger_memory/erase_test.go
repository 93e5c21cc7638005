package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

func mustForget(t test, h *sdktest.Host, r abi.ForgetRequest) *abi.ForgetReceipt {
	r.Scope, r.Reason = scope, "asked"
	receipt, err := sdktest.Do(h, abi.OpForget, scope, erase, &r)
	require.NoError(t, err)
	require.Equal(t, abi.ForgetDone, receipt.Status)
	return receipt
}

// sound checks every object and chain of the ledger, and that the views agree with the commits.
func sound(t test, h *sdktest.Host, branches ...string) {
	require.Contains(t, ask(t, h, "fsck", `{}`), `"ok":true`)
	require.Contains(t, ask(t, h, "fsck", `{}`), `"unreachable":[]`)
	for _, b := range branches {
		before := ask(t, h, "view", `{"all":true,"branch":"`+b+`"}`)
		must(t, h, "rebuild", `{"branch":"`+b+`"}`)
		require.Equal(t, before, ask(t, h, "view", `{"all":true,"branch":"`+b+`"}`))
	}
}

func TestErasedTurnsAreNowhere(t *testing.T) {
	at := func(id, session, time string, texts ...string) *abi.MemoryEvent {
		e := turn(id, session, texts...)
		e.Timestamp = time
		return e
	}
	for name, request := range map[string]abi.ForgetRequest{
		"by event":   {EventIDs: []string{"e1", "unknown"}},
		"by session": {SessionID: "s1"},
		"by time":    {From: "2026-01-12T10:00:00.1+01:00", To: "2026-01-12T09:00:00.9Z"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			record(t, h, at("e0", "s0", "2026-01-11T09:00:00Z", "I like tea"))
			record(t, h, at("e1", "s1", "2026-01-12T09:00:00.5Z", "My cat is called Zorvex", "I like milk"))
			record(t, h, at("e10", "s10", "2026-01-13T09:00:00Z", "I like milk", "I live in Oslo"))
			must(t, h, "create_branch", `{"name":"b"}`)
			record(t, h, at("e11", "s10", "2026-01-14T09:00:00Z", "I like cocoa"))
			require.NotEmpty(t, h.Find(scope, "Zorvex"))
			r := mustForget(t, h, request)
			assert.Len(t, r.Removed["event"], 1)
			assert.Len(t, r.Removed["commit"], 1)
			assert.Contains(t, r.DerivedMayRemain, "facts that other turns said too: 1")
			for _, text := range []string{"Zorvex", "s1/", "t-e1\"", "T09:00:00Z/1"} {
				assert.Empty(t, h.Find(scope, text), text)
			}
			assert.NotContains(t, h.Keys(scope), "source/e1")
			sound(t, h, "main", "b")
			context := retrievedContext(t, h)
			for _, text := range []string{"tea", "milk", "Oslo", "cocoa"} {
				assert.Contains(t, context, text)
			}
			assert.Empty(t, mustForget(t, h, request).Removed["commit"], "the second time there is nothing left")
			for _, id := range []string{"e0", "e10", "e11"} {
				p, err := sdktest.Do(h, abi.OpProvenance, scope, provenance, &abi.ProvenanceRequest{Scope: scope, EventID: id})
				require.NoError(t, err)
				assert.NotEmpty(t, p.Items, id)
			}
			found, err := sdktest.Do(h, abi.OpFindEvent, scope, findEvent, &abi.FindEventRequest{EventID: "e1"})
			require.NoError(t, err)
			assert.Equal(t, "absent", found.Found)
			assert.True(t, record(t, h, at("e10", "s10", "2026-01-13T09:00:00Z", "I like milk", "I live in Oslo")).Duplicate)
		})
	}
}

func TestASingleFactIsErasedByItsID(t *testing.T) {
	h := newHost(t)
	record(t, h, turn("e1", "s1", "My cat is called Zorvex", "I like tea"))
	id := add(t, h, "Zorvex food", "")
	must(t, h, "memory_forget", `{"id":"`+id+`"}`)
	known := record(t, h, turn("e2", "s1", "I like milk"))
	e, err := sdktest.Do(h, abi.OpProvenance, scope, provenance, &abi.ProvenanceRequest{Scope: scope, EventID: "e1"})
	require.NoError(t, err)
	var zorvex string
	for _, item := range e.Items {
		if strings.Contains(item.Evidence.Text, "Zorvex") {
			zorvex = item.Evidence.NativeID
		}
	}
	r := mustForget(t, h, abi.ForgetRequest{NativeIDs: []string{zorvex, id, "none"}})
	assert.Len(t, r.Removed["event"], 3, "what the ledger was told to forget of it goes too")
	assert.Empty(t, h.Find(scope, "Zorvex"))
	sound(t, h, "main")
	assert.Contains(t, retrievedContext(t, h), "tea")
	mustForget(t, h, abi.ForgetRequest{NativeIDs: known.NativeIDs})
	assert.NotContains(t, retrievedContext(t, h), "milk")
	sound(t, h, "main")
}

func TestWhatWaitsForTheModelIsErased(t *testing.T) {
	h, stub := withModel(t, "")
	record(t, h, turn("e1", "s1", "My cat is called Zorvex"))
	record(t, h, turn("e2", "s2", "I like tea"))
	r := mustForget(t, h, abi.ForgetRequest{SessionID: "s1"})
	assert.Equal(t, []string{"e1"}, r.Removed["waiting"])
	assert.Empty(t, h.Find(scope, "Zorvex"))
	assert.NotContains(t, h.Keys(scope), "source/e1")
	answerNext(t, stub, `[{"event_type":"add","subject":"user","predicate":"likes","object":"tea","evidence":"I like tea"}]`)
	wait(t, h)
	assert.Contains(t, retrievedContext(t, h), "tea")
	for _, call := range stub.Log() {
		assert.NotContains(t, call.Prompt, "Zorvex")
	}
}

// TestAnErasedLedgerIsAsIfTheRestHadComeAlone compares with a ledger in which only the rest was recorded, and checks
// branches, merges and picked commits too.
func TestAnErasedLedgerIsAsIfTheRestHadComeAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, rest := newHost(t), newHost(t)
		must(t, h, "create_branch", `{"name":"b"}`)
		must(t, rest, "create_branch", `{"name":"b"}`)
		var gone []string
		for n := range rapid.IntRange(1, 12).Draw(t, "turns") {
			id := fmt.Sprint("e", n)
			e := turn(id, "s", "said in "+id+".", rapid.SampledFrom([]string{"tea", "milk", "rain"}).Draw(t, "shared"))
			goes := rapid.Bool().Draw(t, "goes")
			if goes {
				gone = append(gone, id)
			}
			r := record(t, h, e)
			if !goes {
				record(t, rest, e)
			}
			switch rapid.IntRange(0, 4).Draw(t, "then") {
			case 0:
				must(t, h, "merge", `{"source":"main","target":"b"}`)
			case 1:
				var commitID string
				require.NoError(t, json.Unmarshal(r.Trace.Details["commit_id"], &commitID))
				must(t, h, "cherry_pick", `{"id":"`+commitID+`","target":"b"}`)
			case 2:
				add(t, h, "fact "+id, "")
				add(t, rest, "fact "+id, "")
			}
		}
		mustForget(t, h, abi.ForgetRequest{EventIDs: append(gone, "unknown")})
		sound(t, h, "main", "b")
		for _, id := range gone {
			require.Empty(t, h.Find(scope, "said in "+id+"."))
			require.NotContains(t, h.Keys(scope), sourceKey(id))
		}
		texts := func(h *sdktest.Host) (list []string) {
			for _, part := range strings.Split(ask(t, h, "view", `{}`), `"object":"`)[1:] {
				object, _, _ := strings.Cut(part, `"`)
				list = append(list, object)
			}
			slices.Sort(list)
			return list
		}
		require.Equal(t, texts(rest), texts(h))
	})
}
