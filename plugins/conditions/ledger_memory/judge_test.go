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

const (
	livesInOslo   = `[{"event_type":"add","subject":"user","predicate":"lives in","object":"Oslo"}]`
	livesInBergen = `[{"event_type":"add","subject":"user","predicate":"lives in","object":"Bergen"}]`
)

// remembered extracts one turn: the model answers the extraction, and the purpose if it is asked, with these texts.
func remembered(t *testing.T, h *sdktest.Host, stub *llm.Server, id, items, purpose, answer string) {
	t.Helper()
	stub.ClearFaults()
	require.NoError(t, stub.Fail(llm.Fault{Purpose: "nanobot.ledger", Mode: llm.Say, Content: items},
		llm.Fault{Purpose: purpose, Mode: llm.Say, Content: answer}))
	record(t, h, turn(id, "s", "I told you where I live."))
	require.Equal(t, abi.ReadinessReady, wait(t, h).Status)
}

// Section 5.4: the model is asked about a contradiction; an unclear answer keeps both.
func TestTheModelJudgesAContradiction(t *testing.T) {
	for answer, want := range map[string][]string{"keep_old": {"Oslo"}, "replace": {"Bergen"},
		"Keep_both.": {"Oslo", "Bergen"}, "**replace**": {"Bergen"},
		"replace, or keep_old": {"Oslo", "Bergen"}, "It depends.": {"Oslo", "Bergen"}, "": {"Oslo", "Bergen"}} {
		t.Run(answer, func(t *testing.T) {
			h, stub := withModel(t, `,"update_policy":"every_event","conflict_policy":"llm"`)
			remembered(t, h, stub, "e1", livesInOslo, "nanobot.judge", "unasked")
			remembered(t, h, stub, "e2", livesInBergen, "nanobot.judge", answer)
			text := mustRetrieve(t, h, "s").FormattedContext
			for _, city := range []string{"Oslo", "Bergen"} {
				assert.Equal(t, strings.Contains(strings.Join(want, " "), city), strings.Contains(text, city),
					"%s in %s", city,
					text)
			}
			log := stub.Log()
			assert.Contains(t, log[len(log)-1].Prompt,
				`new: {"subject":"user","predicate":"lives in","object":"Bergen"`)
		})
	}
	t.Run("a model that cannot be reached leaves the turn waiting", func(t *testing.T) {
		h, stub := withModel(t, `,"update_policy":"every_event","conflict_policy":"llm"`)
		remembered(t, h, stub, "e1", livesInOslo, "nanobot.judge", "unasked")
		stub.ClearFaults()
		require.NoError(t, stub.Fail(llm.Fault{Purpose: "nanobot.ledger", Mode: llm.Say, Content: livesInBergen},
			llm.Fault{Purpose: "nanobot.judge", Mode: llm.Status, Status: 400}))
		record(t, h, turn("e2", "s", "I moved."))
		assert.Equal(t, abi.ReadinessFailed, wait(t, h).Status)
		assert.NotContains(t, mustRetrieve(t, h, "s").FormattedContext, "Bergen")
	})
	t.Run("what is confidential is shown to no model", func(t *testing.T) {
		h, stub := withModel(t, `,"update_policy":"every_event","conflict_policy":"llm"`)
		must(t, h, "memory_add", `{"subject":"user","predicate":"lives in","object":"Oslo","sensitivity":"confidential"}`)
		remembered(t, h, stub, "e2", livesInBergen, "nanobot.judge", "replace")
		for _, entry := range stub.Log() {
			assert.NotContains(t, entry.Prompt, "Oslo")
		}
		assert.Contains(t, mustRetrieve(t, h, "s").FormattedContext, "Bergen")
	})
}

// Section 5.5: with on_conflict llm each conflict is chosen, and an unclear answer leaves it open (C15, C16).
func TestTheModelJudgesAMerge(t *testing.T) {
	for answer, want := range map[string]string{"ours": "coffee", "Theirs.": "cocoa", "ours or theirs?": "open",
		"no idea": "open"} {
		t.Run(answer, func(t *testing.T) {
			h, stub := withModel(t, "")
			id := add(t, h, "tea", "")
			must(t, h, "create_branch", `{"name":"b"}`)
			must(t, h, "memory_update", `{"id":"`+id+`","object":"coffee"}`)
			must(t, h, "memory_update", `{"id":"`+id+`","object":"cocoa","branch":"b"}`)
			answerNext(t, stub, answer)
			r := must(t, h, "merge", `{"source":"b","on_conflict":"llm"}`)
			assert.Contains(t, string(r.Trace.Details["conflicts"]), modifyModify)
			settled := map[string]string{"coffee": `"settled":"ours"`, "cocoa": `"settled":"theirs"`,
				"open": `"settled":null`}
			assert.Contains(t, string(r.Trace.Details["conflicts"]), settled[want])
			again := string(must(t, h, "merge", `{"source":"b"}`).Trace.Details["conflicts"])
			if want == "open" {
				assert.Contains(t, again, modifyModify, "C16: it is met again")
				want = "coffee"
			} else {
				assert.NotContains(t, again, modifyModify)
			}
			assert.Contains(t, retrievedContext(t, h), want)
			assert.Equal(t, 1, stub.Counts().LLM)
		})
	}
	_, err := do(newHost(t), "merge", `{"source":"b","on_conflict":"llm"}`)
	assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), "without a model there is nobody to ask")
}

// Section 5.4: auto_persona asks which branch fits; HEAD moves there with the turn's commit, which notes it.
func TestThePersonaIsFound(t *testing.T) {
	const from = `"switched_from":"main"`
	for name, tt := range map[string]struct {
		answer, items, want string
	}{
		"a branch that is there":            {`{"branch":"work","confidence":0.9}`, livesInOslo, "work"},
		"a new one":                         {`It is {"branch":"new:travel","confidence":1}`, livesInOslo, "travel"},
		"new, but there":                    {`{"branch":"new:work","confidence":0.8}`, livesInOslo, "work"},
		"not sure":                          {`{"branch":"work","confidence":0.79}`, livesInOslo, "main"},
		"not there, and not said to be new": {`{"branch":"travel","confidence":1}`, livesInOslo, "main"},
		"no name of a branch":               {`{"branch":"new:../x","confidence":1}`, livesInOslo, "main"},
		"no object":                         {`work`, livesInOslo, "main"},
		"nothing to remember":               {`{"branch":"work","confidence":1}`, `[]`, "main"},
	} {
		t.Run(name, func(t *testing.T) {
			h, stub := withModel(t, `,"update_policy":"every_event","auto_persona":true`)
			must(t, h, "create_branch", `{"name":"work","persona":"at the office"}`)
			remembered(t, h, stub, "e1", tt.items, "nanobot.persona", tt.answer)
			assert.Contains(t, ask(t, h, "branches", `{}`), `"current":"`+tt.want+`"`)
			assert.Equal(t, tt.want != "main", strings.Contains(ask(t, h, "log", `{}`), from))
			assert.Contains(t, ask(t, h, "fsck", `{}`), `"ok":true`)
			asked := stub.Log()[0].Prompt
			assert.Contains(t, asked, `{"name":"work","persona":"at the office"}`)
			assert.Contains(t, asked, "USER: I told you where I live.")
		})
	}
	h, stub := withModel(t, `,"update_policy":"every_event"`)
	remembered(t, h, stub, "e1", livesInOslo, "nanobot.persona", `{"branch":"new:work","confidence":1}`)
	assert.Equal(t, 1, stub.Counts().LLM, "off unless it is asked for: it changes what is seen")
}

// Section 2: with update_policy manual nothing is extracted until memory_consolidate.
func TestManualExtractsOnDemandOnly(t *testing.T) {
	h, stub := withModel(t, `,"update_policy":"manual"`)
	record(t, h, turn("e1", "s", "I like oolong tea."))
	record(t, h, turn("e2", "s2", "I live in Oslo."))
	r := wait(t, h)
	assert.Equal(t, abi.ReadinessPending, r.Status)
	assert.Contains(t, strings.Join(r.Warnings, " "),
		"llm_work_waits: events wait for the native mutation memory_consolidate")
	assert.Zero(t, stub.Counts().LLM)
	must(t, h, "memory_consolidate", `{}`)
	assert.Equal(t, abi.ReadinessReady, wait(t, h).Status)
	assert.Contains(t, mustRetrieve(t, h, "s").FormattedContext, "oolong")
}

// TestWhatAPersonSettledStays against everything that runs automatically: the extraction of later turns, the tidying, a
// rebuilt view, and a merge of the same branch.
func TestWhatAPersonSettledStays(t *testing.T) {
	h, stub := withModel(t, `,"update_policy":"every_event","conflict_policy":"llm","consolidate_minutes":1`)
	remembered(t, h, stub, "e1", livesInOslo, "nanobot.judge", "unasked")
	id := add(t, h, "tea", "")
	must(t, h, "create_branch", `{"name":"b"}`)
	must(t, h, "memory_update", `{"id":"`+id+`","object":"coffee"}`)
	must(t, h, "memory_update", `{"id":"`+id+`","object":"cocoa","branch":"b"}`)
	must(t, h, "merge", `{"source":"b","on_conflict":"ours"}`)                               // a conflict settled
	must(t, h, "memory_forget", `{"subject":"user","predicate":"lives in","object":"Oslo"}`) // a fact forgotten
	settled := func(when string) {
		t.Helper()
		view := ask(t, h, "view", `{}`)
		assert.Contains(t, view, "coffee", when)
		assert.NotContains(t, view, "cocoa", when)
		assert.NotContains(t, view, "Oslo", when)
	}
	settled("at once")
	h.Now = "2026-08-01T12:00:00Z"
	remembered(t, h, stub, "e2", `[{"event_type":"add","subject":"user","predicate":"owns","object":"a cat"}]`,
		"nanobot.judge", "replace")
	settled("after a later turn and the tidying")
	must(t, h, "memory_consolidate", `{"apply":true}`)
	must(t, h, "rebuild", `{}`)
	settled("in a rebuilt view")
	must(t, h, "merge", `{"source":"b","on_conflict":"theirs"}`)
	settled("after the same branch is merged again")
}
