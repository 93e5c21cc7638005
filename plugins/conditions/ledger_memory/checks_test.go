package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/testenv/llm"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
)

// withModel is a host in memory with the stub as its model. more is the rest of the block after llm:
// `,"profile":"local"`.
func withModel(t *testing.T, more string) (*sdktest.Host, *llm.Server) {
	t.Helper()
	stub := llm.New(llm.Options{})
	manifest, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	return sdktest.New(t, sdktest.Options{Provider: "ledger_memory",
		Config: `{"llm":{"base_url":"http://llm/v1","model":"stub"}` + more + `}`, Manifest: manifest,
		HTTP: sdktest.Handler(t, manifest, nil, stub)}), stub
}

func turn(id, session string, texts ...string) *abi.MemoryEvent {
	e := &abi.MemoryEvent{EventID: id, RunID: "run", UserID: "mara", SessionID: session, TurnID: "t-" + id,
		Timestamp: "2026-01-12T09:00:00Z"}
	for i := range texts {
		e.Messages = append(e.Messages, abi.Message{Role: abi.RoleUser, Content: &texts[i]})
	}
	return e
}

func record(t test, h *sdktest.Host, e *abi.MemoryEvent) *abi.WriteReceipt {
	r, err := sdktest.Do(h, abi.OpRecordEvent, scope, recordEvent, e)
	require.NoError(t, err)
	return r
}

func wait(t test, h *sdktest.Host) *abi.BackendReadiness {
	r, err := sdktest.Do(h, abi.OpWaitUntilReady, scope, waitUntilReady, &abi.WaitRequest{DeadlineMS: 30000})
	require.NoError(t, err)
	return r
}

func ready(t test, h *sdktest.Host, markers ...string) *abi.BackendReadiness {
	r, err := sdktest.Do(h, abi.OpReadiness, scope, readiness, &abi.ReadinessMarkers{Markers: markers})
	require.NoError(t, err)
	return r
}

func mustRetrieve(t test, h *sdktest.Host, sessionID string) *abi.RetrieveResult {
	r, err := sdktest.Do(h, abi.OpRetrieve, scope, retrieve, &abi.RetrieveRequest{Query: "x", Scope: scope,
		SessionID: sessionID})
	require.NoError(t, err)
	return r
}

func answerNext(t *testing.T, stub *llm.Server, content string) {
	stub.ClearFaults()
	require.NoError(t, stub.Fail(llm.Fault{Mode: llm.Say, Content: content}))
}

// independentID computes the id in another way: with the standard library's encoder, undoing what it escapes beyond RFC
// 8785.
func independentID(t test, i *identity) string {
	fields := map[string]any{"event_type": i.Type, "kind": "event", "object": i.Object, "parent_id": nil,
		"predicate": i.Predicate, "scope": i.Scope,
		"sensitivity": i.Sensitivity, "subject": i.Subject, "topic": i.Topic, "v": 1}
	if i.ParentID != "" {
		fields["parent_id"] = i.ParentID
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	require.NoError(t, encoder.Encode(fields))
	text := strings.TrimSuffix(out.String(), "\n")
	text = strings.ReplaceAll(text, `\\`, "\x00")
	text = strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(text)
	return sdk.Digest256(strings.ReplaceAll(text, "\x00", `\\`))[:16]
}

func TestC1IdsAgreeWithAnotherImplementation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		i := &identity{Type: typeAdd, Subject: text.Draw(t, "subject"), Predicate: text.Draw(t, "predicate"),
			Object: text.Draw(t, "object") + "<&>\u2028\u2029\\u2028",
			Scope:  permanent, Topic: text.Draw(t, "topic"), Sensitivity: normal,
			ParentID: rapid.SampledFrom([]string{"",
				"41fc2ca5c871bf7f"}).Draw(t, "parent")}
		require.Equal(t, independentID(t, i), i.id())
	})
}

func TestC5AModifyOfTheFirstRevisionIsOfTheSameLineage(t *testing.T) {
	h := newHost(t)
	first := add(t, h, "A", "")
	must(t, h, "memory_update", `{"id":"`+first+`","object":"B"}`)
	must(t, h, "memory_update", `{"id":"`+first+`","object":"C"}`)
	must(t, h, "memory_update", `{"id":"`+first+`","object":"D"}`)
	view := ask(t, h, "view", `{"all":true}`)
	assert.Equal(t, 1, strings.Count(view, `"lineage_id":"`+first+`"`))
	assert.Contains(t, view, `"revisions":3`)
}

func TestC6AModifyOfNothingIsAFactOfItsOwnAndAForgetOfNothingIsAWarning(t *testing.T) {
	h := newHost(t)
	call := h.Call(abi.OpNativeMutation, scope)
	s, err := settingsOf(call)
	require.NoError(t, err)
	l := &ledger{State: state.Of(call), s: s}
	commit := func(e *event) (*commit, []string) {
		require.NoError(t, e.normalise())
		k, warnings := l.commitOn(&step{events: []*event{e}, message: "x"})
		require.NoError(t, l.Err())
		return k, warnings
	}
	commit(&event{identity: identity{Type: typeModify, Subject: "user", Predicate: "likes", Object: "tea",
		ParentID: "0123456789abcdef"}, Source: "agent", Timestamp: l.now()})
	_, warnings := commit(&event{identity: identity{Type: typeForget, Subject: "user", Predicate: "owns",
		ParentID: "0123456789abcdef"}, Source: "agent", Timestamp: l.now()})
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], "forget_miss: ")
	_, v := l.onView("")
	e := v.get((&identity{Type: typeModify, Subject: "user", Predicate: "likes", Object: "tea", Scope: permanent,
		Sensitivity: normal, ParentID: "0123456789abcdef"}).id())
	require.NoError(t, l.Err())
	assert.True(t, e.OrphanModify)

	// The tool makes no commit for what it does not find.
	other := newHost(t)
	r := must(t, other, "memory_forget", `{"subject":"user","predicate":"owns"}`)
	assert.Equal(t, noChange, r.Status)
	assert.Equal(t, "[]", ask(t, other, "log", `{}`))
}

func TestC8AnObservationCountsAndNeverBecomesAFact(t *testing.T) {
	h := newHost(t)
	must(t, h, "memory_add", `{"subject":"user","predicate":"said","object":"tea is fine"}`)
	for n := range 3 {
		record(t, h, turn(fmt.Sprint("e", n), "s", "I had tea."))
	}
	assert.Contains(t, ask(t, h, "memory_search", `{"query":"had tea","limit":1}`), `"count":3`)
	facts := ask(t, h, "memory_search", `{"query":"tea is fine","limit":1}`)
	assert.Contains(t, facts, `"event_type":"add"`)
	assert.NotContains(t, facts, `"revisions"`)
}

func TestC9AScopeThatIsNoneIsTheTopic(t *testing.T) {
	h := newHost(t)
	must(t, h, "memory_add", `{"subject":"user","predicate":"prefers","object":"Go","scope":"work/technical"}`)
	view := ask(t, h, "view", `{}`)
	assert.Contains(t, view, `"topic":"work/technical"`)
	assert.Contains(t, view, `"scope":"permanent"`)
}

func TestC10ScopesOfAFactHideAndDoNotDelete(t *testing.T) {
	h := newHost(t)
	must(t, h, "memory_add",
		`{"subject":"user","predicate":"sits in","object":"Oslo today","scope":"session","session_id":"s1"}`)
	must(t, h, "memory_add", `{"subject":"user","predicate":"has","object":"a cold","scope":"temporary"}`)
	before := h.Keys(scope)
	assert.Contains(t, mustRetrieve(t, h, "s1").FormattedContext, "Oslo today")
	assert.NotContains(t, mustRetrieve(t, h, "s2").FormattedContext, "Oslo today")
	assert.Contains(t, mustRetrieve(t, h, "s2").FormattedContext, "a cold")
	h.Now = "2026-07-02T12:00:01Z"
	assert.NotContains(t, mustRetrieve(t, h, "s2").FormattedContext, "a cold")
	assert.Equal(t, before, h.Keys(scope))
}

func TestC17TheSameChangeOnBothSidesIsNoConflict(t *testing.T) {
	h := newHost(t)
	id := add(t, h, "tea", "")
	must(t, h, "create_branch", `{"name":"b"}`)
	must(t, h, "memory_update", `{"id":"`+id+`","object":"coffee"}`)
	must(t, h, "memory_update", `{"id":"`+id+`","object":"coffee","branch":"b"}`)
	r := must(t, h, "merge", `{"source":"b"}`)
	if conflicts := r.Trace.Details["conflicts"]; conflicts != nil {
		assert.Equal(t, "[]", string(conflicts))
	}
}

func TestC18ACherryPickTakesOneCommit(t *testing.T) {
	h := newHost(t)
	id := add(t, h, "tea", "")
	must(t, h, "create_branch", `{"name":"b","orphan":true}`)
	add(t, h, "cocoa", "b")
	r := must(t, h, "memory_add", `{"subject":"user","predicate":"owns","object":"a cat","branch":"b"}`)
	var commitID string
	require.NoError(t, json.Unmarshal(r.Trace.Details["commit_id"], &commitID))
	picked := must(t, h, "cherry_pick", `{"id":"`+commitID+`"}`)
	assert.Equal(t, r.NativeIDs, picked.NativeIDs)
	assert.Contains(t, retrievedContext(t, h), "a cat")
	assert.NotContains(t, retrievedContext(t, h), "cocoa")
	assert.Equal(t, noChange, must(t, h, "cherry_pick", `{"id":"`+commitID+`"}`).Status, "again: no commit")

	r = must(t, h, "memory_update", `{"id":"`+id+`","object":"milk"}`)
	require.NoError(t, json.Unmarshal(r.Trace.Details["commit_id"], &commitID))
	picked = must(t, h, "cherry_pick", `{"id":"`+commitID+`","target":"b"}`)
	assert.Contains(t, string(picked.Trace.Details["conflicts"])+ask(t, h, "view", `{"branch":"b"}`), "milk")
}

// Covers S4 too: an operation's writes are stored with its answer, or not at all.
func TestC19ACrashLeavesNothingHalfDone(t *testing.T) {
	h := newHost(t)
	add(t, h, "tea", "")
	before, view := h.Keys(scope), ask(t, h, "view", `{"all":true}`)
	_, err := sdktest.Do(h, abi.OpNativeMutation, scope, func(c *sdk.Call, m *abi.NativeMutation) (*abi.MutationReceipt,
		error) {
		_, err := nativeMutation(c, m)
		require.NoError(t, err)
		return nil, errors.New("killed")
	}, &abi.NativeMutation{Scope: scope, Name: "memory_add", Params: map[string]abi.Raw{"subject": abi.Raw(`"user"`),
		"predicate": abi.Raw(`"owns"`), "object": abi.Raw(`"a cat"`)}})
	require.Error(t, err)
	assert.Equal(t, before, h.Keys(scope))
	assert.Equal(t, view, ask(t, h, "view", `{"all":true}`))
	for range 2 {
		must(t, h, "memory_add", `{"subject":"user","predicate":"owns","object":"a cat"}`)
	}
	assert.Equal(t, 1, strings.Count(ask(t, h, "view", `{"all":true}`), `"object":"a cat"`))
	assert.Contains(t, ask(t, h, "fsck", `{}`), `"ok":true`)
}

func TestC21WhatTheModelAnswers(t *testing.T) {
	item := `{"event_type":"add","subject":"user","predicate":"owns","object":"a cat","confidence":"0.9"}`
	for name, answer := range map[string]string{
		"bare": `[` + item + `]`, "fenced": "```json\n[" + item + "]\n```", "events": `{"events":[` + item +
			`]}`, "memories": `{"memories":[` + item + `]}`,
		"items": `{"items":[` + item + `]}`, "prose": "Here you are (see [1 for more): [" + item +
			"] That is all.", "thinking": "<think>[]</think>[" + item + "]",
	} {
		t.Run(name, func(t *testing.T) {
			h, stub := withModel(t, "")
			answerNext(t, stub, answer)
			assert.Equal(t, abi.StatusPending, record(t, h, turn("e1", "s", "I own a cat.")).Status)
			assert.Empty(t, stub.Log(), "recording asks no model")
			assert.Equal(t, []string{"e1"}, ready(t, h, "e1").EventIDs.Pending)
			assert.Equal(t, abi.ReadinessReady, wait(t, h).Status)
			view := ask(t, h, "view", `{}`)
			assert.Contains(t, view, "a cat")
			assert.Contains(t, view, `"confidence":0.9`)
			assert.Contains(t, view, `"source_event_ids":["e1"]`)
		})
	}
	t.Run("what cannot be used is tried again, and the sixth time put among the dead", func(t *testing.T) {
		h, stub := withModel(t, "")
		record(t, h, turn("e1", "s", "I own a cat."))
		answerNext(t, stub, `[{"event_type":`)
		for n := range 6 {
			assert.Empty(t, ready(t, h, "e1").EventIDs.Failed, n)
			wait(t, h)
			h.Now = fmt.Sprintf("2026-07-%02dT12:00:00Z", n+2)
		}
		r := ready(t, h, "e1")
		assert.Equal(t, abi.ReadinessFailed, r.Status)
		assert.Equal(t, []string{"e1"}, r.EventIDs.Failed)
		assert.Contains(t, ask(t, h, "memory_consolidate", `{}`), `"dead_letters":1`)
		assert.Equal(t, "[]", ask(t, h, "log", `{}`), "nothing was committed")

		answerNext(t, stub, `[`+item+`]`)
		assert.Equal(t, abi.StatusPending, record(t, h, turn("e1", "s", "I own a cat.")).Status,
			"recorded again it is tried again")
		assert.Equal(t, abi.ReadinessReady, wait(t, h).Status)
		assert.Contains(t, retrievedContext(t, h), "a cat")
	})
	t.Run("a turn that the endpoint refuses is put among the dead with its words", func(t *testing.T) {
		h, stub := withModel(t, "")
		record(t, h, turn("e1", "s", "I own a cat."))
		require.NoError(t, stub.Fail(llm.Fault{Mode: llm.Status, Status: 400, Content: "prompt is too long: 9000 > 4096"}))
		for n := range 9 {
			wait(t, h)
			h.Now = fmt.Sprintf("2026-07-%02dT12:00:00Z", n+2)
		}
		assert.Equal(t, 6, stub.Counts().LLM)
		assert.Contains(t, strings.Join(ready(t, h).Warnings, "\n"), "llm_refused: the endpoint answered 400: prompt is too long")
	})
	t.Run("an endpoint that is down loses nothing, however long", func(t *testing.T) {
		h, stub := withModel(t, "")
		record(t, h, turn("e1", "s", "I like oolong tea."))
		require.NoError(t, stub.Fail(llm.Fault{Mode: llm.Status, Status: 503}))
		for n := range 9 {
			r := wait(t, h)
			assert.NotEqual(t, abi.ReadinessReady, r.Status)
			h.Now = fmt.Sprintf("2026-07-%02dT12:00:00Z", n+2)
		}
		r := wait(t, h)
		assert.Equal(t, abi.ReadinessFailed, r.Status)
		assert.Contains(t, strings.Join(r.Warnings, "\n"), "nothing is lost")
		stub.ClearFaults()
		h.Now = "2026-08-01T12:00:00Z"
		assert.Equal(t, abi.ReadinessReady, wait(t, h).Status)
		assert.Contains(t, retrievedContext(t, h), "oolong")
	})
}

func TestC22OneBadItemAndNone(t *testing.T) {
	h, stub := withModel(t, "")
	answerNext(t, stub, `[{"event_type":"add","subject":"user","predicate":"owns","object":"a cat"},{"event_type":"dance","subject":"user","predicate":"owns","object":"x"},
		{"event_type":"observe","subject":"user","predicate":"seems","object":{"mood":"glad"}}]`)
	record(t, h, turn("e1", "s", "I own a cat."))
	wait(t, h)
	view := ask(t, h, "view", `{}`)
	assert.Equal(t, 2, strings.Count(view, `"lineage_id"`))
	assert.Contains(t, view, `{\"mood\":\"glad\"}`)
	require.Len(t, h.Logs, 1)
	assert.Contains(t, h.Logs[0].Text, "item_dropped: event_type")

	answerNext(t, stub, `[]`)
	log := ask(t, h, "log", `{}`)
	record(t, h, turn("e2", "s", "Well."))
	assert.Equal(t, abi.ReadinessReady, wait(t, h).Status)
	assert.Equal(t, []string{"e2"}, ready(t, h, "e2").EventIDs.Empty)
	assert.Equal(t, log, ask(t, h, "log", `{}`), "no commit")
}

func TestExtractionSettlesWithWhatIsThere(t *testing.T) {
	h, stub := withModel(t, `,"conflict_policy":"replace"`)
	id := add(t, h, "tea", "")
	answerNext(t, stub, `[{"event_type":"add","subject":"user","predicate":"likes","object":"coffee"},{"event_type":"forget","subject":"user","predicate":"hates","object":"rain"},
		{"event_type":"modify","subject":"user","predicate":"owns","object":"a dog","parent_id":"0123456789abcdef"}]`)
	record(t, h, turn("e1", "s", "I like coffee now."))
	wait(t, h)
	view := ask(t, h, "view", `{}`)
	assert.Contains(t, view,
		`"lineage_id":"`+id+`","event_type":"modify","subject":"user","predicate":"likes","object":"coffee"`)
	assert.Contains(t, view, `"event_type":"add","subject":"user","predicate":"owns","object":"a dog"`,
		"a modify of nothing becomes an add")
	assert.NotContains(t, view, "rain")
}

func TestControlWaitsForTheEndOfTheSession(t *testing.T) {
	h, stub := withModel(t, `,"profile":"control"`)
	background := func() {
		_, err := sdktest.Do(h, abi.OpWaitUntilReady, scope, waitUntilReady,
			&abi.WaitRequest{DeadlineMS: 30000, Background: true})
		require.NoError(t, err)
	}
	record(t, h, turn("e1", "s1", "I own a cat."))
	background()
	assert.Zero(t, stub.Counts().LLM)
	record(t, h, turn("e2", "s2", "I like tea."))
	background()
	assert.Equal(t, 1, stub.Counts().LLM)
	assert.Equal(t, []string{"e2"}, ready(t, h, "e1", "e2").EventIDs.Pending)
	wait(t, h)
	assert.Equal(t, 2, stub.Counts().LLM)
}

func TestAnExportLeavesOutWhatWaits(t *testing.T) {
	h, _ := withModel(t, "")
	record(t, h, turn("e1", "s", "I like oolong tea."))
	wait(t, h)
	record(t, h, turn("e2", "s", "I live in Oslo."))
	other, _ := withModel(t, "")
	must(t, other, "import_files", `{"files":`+ask(t, h, "files", `{}`)+`,"done":true}`)
	assert.True(t, record(t, other, turn("e1", "s", "I like oolong tea.")).Duplicate)
	assert.False(t, record(t, other, turn("e2", "s", "I live in Oslo.")).Duplicate,
		"it is not lost: recorded again it is stored")
	assert.Equal(t, abi.ReadinessReady, wait(t, other).Status)
}

func TestProvenanceNamesTheSources(t *testing.T) {
	h := newHost(t)
	record(t, h, turn("e1", "s", "I had tea.", "And cake."))
	get := func(r *abi.ProvenanceRequest) (*abi.Provenance, error) {
		r.Scope = scope
		return sdktest.Do(h, abi.OpProvenance, scope, provenance, r)
	}
	p, err := get(&abi.ProvenanceRequest{EventID: "e1", Limit: 10})
	require.NoError(t, err)
	require.Len(t, p.Items, 2)
	assert.Equal(t, []string{"e1"}, p.Items[0].Evidence.SourceEventIDs)
	one, err := get(&abi.ProvenanceRequest{NativeID: p.Items[0].Evidence.NativeID, Limit: 10})
	require.NoError(t, err)
	assert.Equal(t, p.Items[0].Evidence.Text, one.Items[0].Evidence.Text)
	page, err := get(&abi.ProvenanceRequest{From: "2026-01-01T00:00:00Z", To: "2026-02-01T00:00:00Z", Limit: 1})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	rest, err := get(&abi.ProvenanceRequest{From: "2026-01-01T00:00:00Z", To: "2026-02-01T00:00:00Z", Limit: 1,
		Cursor: page.NextCursor})
	require.NoError(t, err)
	require.Len(t, rest.Items, 1)
	assert.NotEqual(t, page.Items[0].Evidence.NativeID, rest.Items[0].Evidence.NativeID)
	_, err = get(&abi.ProvenanceRequest{EventID: "e9", Limit: 10})
	assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err))
	must(t, h, "memory_forget", `{"id":"`+one.Items[0].Evidence.NativeID+`"}`)
	_, err = get(&abi.ProvenanceRequest{NativeID: one.Items[0].Evidence.NativeID, Limit: 10})
	assert.Equal(t, abi.CodeNotFound, abi.CodeOf(err), "C7: what is forgotten is not shown")
}

func TestC25TheLimitsOfArguments(t *testing.T) {
	h := newHost(t)
	add(t, h, "tea", "")
	for _, params := range []string{`{"query":"tea","limit":0}`, `{"query":"tea","limit":101}`, `{}`} {
		var q abi.NativeQuery
		require.NoError(t, abi.Unmarshal([]byte(`{"scope":{"run_id":"run","persona_id":"mara"},"name":"memory_search","params":`+params+`}`), &q))
		_, err := sdktest.Do(h, abi.OpNativeQuery, scope, nativeQuery, &q)
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), params)
	}
}

// Covers S3 too. The host enforces read-only mode: no tool call reaches the guest.
func TestC26ReadOnlyLeavesNoTrace(t *testing.T) {
	stub, endpoint := stubModel(t)
	s := slot(t, `{`+endpoint+`}`)
	_, err := s.RecordEvent(t.Context(), turn("e0", "s", "I own a cat."))
	require.NoError(t, err)
	_, err = s.Readiness(t.Context(), &abi.ReadinessRequest{Scope: scope, TimeoutMS: 10000})
	require.NoError(t, err)
	before, err := s.Inventory(t.Context(), &abi.InventoryRequest{Scope: scope})
	require.NoError(t, err)
	calls := stub.Counts().LLM
	_, err = s.SetMode(t.Context(), &abi.AdapterMode{ReadOnly: true, Reason: "test"})
	require.NoError(t, err)
	for n := range 20 {
		r, err := s.RecordEvent(t.Context(), turn(fmt.Sprint("r", n), "s", "I own a dog."))
		require.NoError(t, err)
		assert.Equal(t, abi.StatusSkippedReadOnly, r.Status)
	}
	for _, name := range []string{"memory_add", "memory_update", "memory_forget", "memory_consolidate", "memory_branch",
		"create_branch", "checkout", "merge", "cherry_pick", "rebuild"} {
		r, err := s.NativeMutation(t.Context(), &abi.NativeMutation{Scope: scope, Name: name})
		require.NoError(t, err)
		assert.Equal(t, "skipped_read_only", r.Status, name)
	}
	after, err := s.Inventory(t.Context(), &abi.InventoryRequest{Scope: scope})
	require.NoError(t, err)
	assert.Equal(t, before.Kinds, after.Kinds)
	assert.Equal(t, calls, stub.Counts().LLM)
}

func TestC28ConcurrentAddsAreCommitsInALine(t *testing.T) {
	s := slot(t, `{}`)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			_, err := s.NativeMutation(t.Context(), &abi.NativeMutation{Scope: scope, Name: "memory_add",
				Params: map[string]abi.Raw{
					"subject": abi.Raw(`"user"`), "predicate": abi.Raw(`"likes"`),
					"object": abi.Raw(fmt.Sprintf(`"tea %d"`, n))}})
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	r, err := s.NativeQuery(t.Context(), &abi.NativeQuery{Scope: scope, Name: "log",
		Params: map[string]abi.Raw{"limit": abi.Raw("100")}})
	require.NoError(t, err)
	var commits []struct {
		ID       string  `json:"id"`
		ParentID *string `json:"parent_id"`
	}
	require.NoError(t, json.Unmarshal(r.Result, &commits))
	require.Len(t, commits, 8)
	for i := range commits[:7] {
		assert.Equal(t, commits[i+1].ID, *commits[i].ParentID)
	}
}

func TestC29AClockSetBackDoesNotTurnTimeAround(t *testing.T) {
	h := newHost(t)
	add(t, h, "tea", "")
	h.Now = "2026-07-01T11:00:00Z"
	add(t, h, "coffee", "")
	var commits []struct{ Timestamp string }
	require.NoError(t, json.Unmarshal([]byte(ask(t, h, "log", `{}`)), &commits))
	require.Len(t, commits, 2)
	assert.GreaterOrEqual(t, commits[0].Timestamp, commits[1].Timestamp)
}

// TestAnotherWayToWriteAValueIsADuplicate: differences in case, blanks and surrounding punctuation are ignored; other
// differences count.
func TestAnotherWayToWriteAValueIsADuplicate(t *testing.T) {
	h := newHost(t)
	for _, object := range []string{"dark mode", "Dark mode.", " dark  MODE!", `"dark mode"`, "dark mode?", "C", "C++", "5", "-5"} {
		text, err := json.Marshal(object)
		require.NoError(t, err)
		must(t, h, "memory_add", `{"subject":"user","predicate":"likes","object":`+string(text)+`}`)
	}
	assert.Len(t, must(t, h, "memory_consolidate", `{"apply":true}`).NativeIDs, 3)
	view := ask(t, h, "view", `{}`)
	for _, object := range []string{"dark mode?", "C", "C++", "5", "-5"} {
		assert.Contains(t, view, `"object":"`+object+`"`)
	}
	assert.Equal(t, 6, strings.Count(view, `"object":`))
}

func TestC30ConsolidateForgetsOnlyWhatItReported(t *testing.T) {
	h := newHost(t)
	id := add(t, h, "tea", "")
	must(t, h, "memory_add", `{"subject":"user","predicate":"likes","object":"coffee","confidence":0.2}`)
	must(t, h, "memory_update", `{"id":"`+id+`","object":"coffee"}`) // two lineages with one value
	must(t, h, "memory_add", `{"subject":"user","predicate":"has","object":"a cold","scope":"temporary"}`)
	must(t, h, "memory_add", `{"subject":"user","predicate":"owns","object":"a cat"}`)
	h.Now = "2026-07-03T12:00:00Z"
	before := h.Keys(scope)
	report := ask(t, h, "memory_consolidate", `{}`)
	assert.Equal(t, noChange, must(t, h, "memory_consolidate", `{}`).Status)
	assert.Equal(t, before, h.Keys(scope))
	var reported struct{ Duplicates, Expired []string }
	require.NoError(t, json.Unmarshal([]byte(report), &reported))
	assert.Len(t, reported.Duplicates, 1)
	assert.Len(t, reported.Expired, 1)
	r := must(t, h, "memory_consolidate", `{"apply":true}`)
	assert.ElementsMatch(t, append(reported.Duplicates, reported.Expired...), r.NativeIDs)
	view := ask(t, h, "view", `{}`)
	assert.Equal(t, 1, strings.Count(view, `"object":"coffee"`))
	assert.Contains(t, view, "a cat")
	assert.NotContains(t, view, "a cold")
}
