package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

// test is a *testing.T or a *rapid.T.
type test interface {
	sdktest.TB
	require.TestingT
}

var scope = abi.MemoryScope{RunID: "run", PersonaID: "mara"}

func newHost(t test) *sdktest.Host {
	manifest, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	return sdktest.New(t, sdktest.Options{Provider: "ledger_memory", Manifest: manifest})
}

// do runs a mutation; params is a JSON object.
func do(h *sdktest.Host, name, params string) (*abi.MutationReceipt, error) {
	m := &abi.NativeMutation{Scope: scope, Name: name}
	var e abi.NativeMutation
	if err := abi.Unmarshal([]byte(`{"scope":{"run_id":"run","persona_id":"mara"},"name":"x","reason":"","params":`+params+`}`), &e); err != nil {
		return nil, err
	}
	m.Params = e.Params
	return sdktest.Do(h, abi.OpNativeMutation, scope, nativeMutation, m)
}

func must(t test, h *sdktest.Host, name, params string) *abi.MutationReceipt {
	r, err := do(h, name, params)
	require.NoError(t, err)
	return r
}

func add(t test, h *sdktest.Host, object, branch string) string {
	r := must(t, h, "memory_add", fmt.Sprintf(`{"subject":"user","predicate":"likes","object":%q,"branch":%q}`, object,
		branch))
	return r.NativeIDs[0]
}

func ask(t test, h *sdktest.Host, name, params string) string {
	var q abi.NativeQuery
	require.NoError(t, abi.Unmarshal([]byte(`{"scope":{"run_id":"run","persona_id":"mara"},"name":"`+name+`","params":`+params+`}`), &q))
	r, err := sdktest.Do(h, abi.OpNativeQuery, scope, nativeQuery, &q)
	require.NoError(t, err)
	return string(r.Result)
}

func retrievedContext(t test, h *sdktest.Host) string {
	r, err := sdktest.Do(h, abi.OpRetrieve, scope, retrieve, &abi.RetrieveRequest{Query: "x", Scope: scope,
		SessionID: "s"})
	require.NoError(t, err)
	return r.FormattedContext
}

func TestC1Vectors(t *testing.T) {
	for _, tt := range []struct {
		identity
		want string
	}{
		{identity{"add", "user", "prefers", "Python for backend", permanent, "work/technical", normal, ""},
			"41fc2ca5c871bf7f"},
		{identity{"modify", "user", "prefers", "Go for backend", permanent, "work/technical", normal,
			"41fc2ca5c871bf7f"},
			"e94a598c48540f9a"},
		{identity{"forget", "user", "prefers", "", permanent, "work/technical", normal, "41fc2ca5c871bf7f"},
			"d4f8043911c81f68"},
		{identity{"add", "用户", "喜欢", "深色模式", permanent, "", normal, ""}, "cae80fe8d9b7dd0e"},
		{identity{"observe", "user", "said", "a \"b\" <c>\n\u2028&", session, "", private, ""}, "4a169acdc58a1b3a"},
	} {
		assert.Equal(t, tt.want, tt.id())
	}
	k := commit{Branch: "main", Events: []string{"41fc2ca5c871bf7f"}, Message: "Remember backend preference",
		Timestamp: "2026-02-03T16:29:35Z", Metadata: []byte(`{"conversation_id":"s1"}`)}
	k.seal()
	assert.Equal(t, "a7b2c3c8df8e4986", k.ID)
	k = commit{Branch: "main", Events: []string{"e94a598c48540f9a"}, Message: "Correct backend preference",
		ParentID: k.ID, Timestamp: "2026-02-04T09:00:00Z", Metadata: []byte(`{"conversation_id":"s2"}`)}
	k.seal()
	assert.Equal(t, "c21636957fca00c9", k.ID)
}

func TestC2TheSameFactTwiceIsADuplicate(t *testing.T) {
	h := newHost(t)
	add(t, h, "tea", "")
	before := h.Keys(scope)
	r := must(t, h, "memory_add", `{"subject":"user","predicate":"likes","object":"tea","confidence":0.3}`)
	assert.Equal(t, noChange, r.Status)
	assert.Equal(t, before, h.Keys(scope))
}

func TestC3AndC7ForgottenIsNotShownAndComesBack(t *testing.T) {
	h := newHost(t)
	id := add(t, h, "tea", "")
	must(t, h, "memory_forget", `{"id":"`+id+`"}`)
	assert.NotContains(t, retrievedContext(t, h), "tea")
	assert.Equal(t, "[]", ask(t, h, "memory_search", `{"query":"tea"}`))
	assert.Contains(t, ask(t, h, "memory_search", `{"query":"tea","include_forgotten":true}`), id)
	add(t, h, "tea", "")
	assert.Contains(t, retrievedContext(t, h), "tea")
	assert.Equal(t, 3, strings.Count(ask(t, h, "log", `{}`), `"kind":"commit"`))
}

func TestC4AModifyBackIsAnEventOfItsOwn(t *testing.T) {
	h := newHost(t)
	add(t, h, "A", "")
	must(t, h, "memory_update", `{"subject":"user","predicate":"likes","object":"B"}`)
	must(t, h, "memory_update", `{"subject":"user","predicate":"likes","object":"A"}`)
	assert.Contains(t, ask(t, h, "view", `{}`), `"revisions":2`)
}

func TestC11ConfidentialNeverLeaves(t *testing.T) {
	h := newHost(t)
	must(t, h, "memory_add", `{"subject":"user","predicate":"has","object":"a secret","sensitivity":"confidential"}`)
	for _, text := range []string{retrievedContext(t, h), ask(t, h, "view", `{"all":true}`), ask(t, h, "log", `{}`),
		ask(t, h, "memory_search", `{"query":"secret"}`)} {
		assert.NotContains(t, text, "secret")
	}
}

func TestC13BranchNames(t *testing.T) {
	h := newHost(t)
	for _, name := range []string{"../x", "Main", "", strings.Repeat("x", 65)} {
		_, err := do(h, "create_branch", fmt.Sprintf(`{"name":%q}`, name))
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), name)
	}
	must(t, h, "create_branch", `{"name":"b","orphan":true}`)
	_, err := do(h, "create_branch", `{"name":"b"}`)
	assert.Equal(t, abi.CodeConflict, abi.CodeOf(err))
}

func TestC12C14C15C16Merges(t *testing.T) {
	h := newHost(t)
	id := add(t, h, "tea", "")
	must(t, h, "create_branch", `{"name":"b"}`)
	must(t, h, "memory_add", `{"subject":"user","predicate":"owns","object":"a cat","branch":"b"}`)
	assert.NotContains(t, retrievedContext(t, h), "a cat", "C12")
	must(t, h, "memory_update", `{"id":"`+id+`","object":"coffee"}`)
	must(t, h, "memory_update", `{"id":"`+id+`","object":"cocoa","branch":"b"}`)
	for range 2 {
		r := must(t, h, "merge", `{"source":"b"}`)
		assert.Contains(t, string(r.Trace.Details["conflicts"]), modifyModify, "C16: reported again")
		assert.Contains(t, retrievedContext(t, h), "coffee")
		assert.Contains(t, retrievedContext(t, h), "a cat", "C14")
	}
	must(t, h, "merge", `{"source":"b","on_conflict":"ours"}`)
	r := must(t, h, "merge", `{"source":"b"}`)
	assert.Equal(t, abi.Raw("true"), r.Trace.Details["up_to_date"])
	for _, key := range h.Keys(scope) {
		assert.NotContains(t, key, "~base")
	}
}

func TestC20AFlippedByteIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHost(t)
		id := add(t, h, "tea", "")
		c := h.Call(abi.OpRecordEvent, scope)
		stored, version, err := c.Get(eventPrefix + id)
		require.NoError(t, err)
		stored = append([]byte(nil), stored...)
		stored[rapid.IntRange(0, len(stored)-1).Draw(t, "at")] ^= 1
		require.NoError(t, c.Put(eventPrefix+id, stored, version))
		assert.Contains(t, ask(t, h, "fsck", `{}`), `"corrupt":["event/`+id+`"]`)
		_, err = do(h, "rebuild", `{}`)
		assert.Equal(t, reasonCorrupt, abi.AsError(err).Reason)
	})
}

func TestC25BadArgumentsChangeNothing(t *testing.T) {
	h := newHost(t)
	add(t, h, "tea", "")
	before := h.Keys(scope)
	for _, tt := range [][2]string{{"memory_add", `{"subject":"a","predicate":"b"}`},
		{"memory_update", `{"id":"abc","object":"x"}`}, {"memory_add", `{"subjekt":"a"}`}} {
		_, err := do(h, tt[0], tt[1])
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
	}
	assert.Equal(t, before, h.Keys(scope))
}

// C23, C27 and C28: after any operations, a rebuilt view equals the maintained one, fsck is clean, and exported files
// import to the same files.
func TestTheLedgerHoldsWhateverIsDone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHost(t)
		must(t, h, "create_branch", `{"name":"b"}`)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			on, object := rapid.SampledFrom([]string{"main", "b"}).Draw(t,
				"on"), rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "object")
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				add(t, h, object, on)
			case 1:
				_, _ = do(h, "memory_update", fmt.Sprintf(`{"subject":"user","predicate":"likes","object":%q,"branch":%q}`, object,
					on))
			case 2:
				must(t, h, "memory_forget", fmt.Sprintf(`{"subject":"user","predicate":"likes","object":%q,"branch":%q}`, object,
					on))
			case 3:
				must(t, h, "merge", `{"source":"b","target":"main","on_conflict":"`+rapid.SampledFrom([]string{"report",
					"ours",
					"theirs"}).Draw(t, "policy")+`"}`)
			}
		}
		require.Contains(t, ask(t, h, "fsck", `{}`), `"ok":true`)
		for _, b := range []string{"main", "b"} {
			before := ask(t, h, "view", `{"all":true,"branch":"`+b+`"}`)
			must(t, h, "rebuild", `{"branch":"`+b+`"}`)
			require.Equal(t, before, ask(t, h, "view", `{"all":true,"branch":"`+b+`"}`))
		}
		files := ask(t, h, "files", `{}`)
		other := newHost(t)
		must(t, other, "import_files", `{"files":`+files+`,"done":true}`)
		require.Equal(t, files, ask(t, other, "files", `{}`))
		require.Equal(t, ask(t, h, "view", `{}`), ask(t, other, "view", `{}`))
	})
}

func TestC15EachKindOfConflictIsReportedAndAppliedWhereTheSourceCounts(t *testing.T) {
	for _, policy := range []string{onReport, onOurs, onTheirs} {
		t.Run(policy, func(t *testing.T) {
			h := newHost(t)
			changed, forgotten := add(t, h, "tea", ""), add(t, h, "jazz", "")
			must(t, h, "create_branch", `{"name":"b"}`)
			must(t, h, "memory_update", `{"id":"`+changed+`","object":"coffee"}`)
			must(t, h, "memory_forget", `{"id":"`+changed+`","branch":"b"}`)
			must(t, h, "memory_forget", `{"id":"`+forgotten+`"}`)
			must(t, h, "memory_update", `{"id":"`+forgotten+`","object":"swing","branch":"b"}`)
			must(t, h, "memory_add", `{"subject":"user","predicate":"lives in","object":"Oslo"}`)
			must(t, h, "memory_add", `{"subject":"user","predicate":"lives in","object":"Bergen","branch":"b"}`)
			conflicts := string(must(t, h, "merge",
				`{"source":"b","on_conflict":"`+policy+`"}`).Trace.Details["conflicts"])
			for _, want := range []string{`"type":"modify_forget","severity":"blocking"`,
				`"type":"forget_modify","severity":"blocking"`, `"type":"add_add","severity":"advisory"`,
				`"base":"tea","ours":"coffee","theirs":null`, `"base":"jazz","ours":null,"theirs":"swing"`,
				`"base":null,"ours":"Oslo","theirs":"Bergen"`} {
				assert.Contains(t, conflicts, want)
			}
			text, applied := retrievedContext(t, h), policy == onTheirs
			assert.Equal(t, !applied, strings.Contains(text, "coffee"), "modify_forget")
			assert.Equal(t, applied, strings.Contains(text, "swing"), "forget_modify")
			assert.Contains(t, text, "Oslo", "add_add: both live")
			assert.Contains(t, text, "Bergen", "add_add: both live")
		})
	}
}

func TestC3AndC7OneEventForTheSameFactAndAForgottenOneIsInNoView(t *testing.T) {
	h := newHost(t)
	id := add(t, h, "tea", "")
	must(t, h, "memory_forget", `{"id":"`+id+`"}`)
	assert.NotContains(t, ask(t, h, "view", `{}`), "tea", "the default export is made of this")
	assert.Contains(t, ask(t, h, "view", `{"all":true}`), "tea")
	add(t, h, "tea", "")
	events := 0
	for _, key := range h.Keys(scope) {
		if strings.HasPrefix(key, eventPrefix) {
			events++
		}
	}
	assert.Equal(t, 2, events, "the add once, and the forget")
}

func TestARetrievalCanGoByTheQuery(t *testing.T) {
	h := newHost(t)
	h.Config = `{"order":"query"}`
	add(t, h, "green tea", "")
	for _, other := range []string{"jazz", "skiing", "the sea"} {
		add(t, h, other, "")
	}
	r, err := sdktest.Do(h, abi.OpRetrieve, scope, retrieve, &abi.RetrieveRequest{Query: "Which tea?", Scope: scope,
		SessionID: "s"})
	require.NoError(t, err)
	require.Len(t, r.Evidence, 1, "the newest share no word with the question")
	assert.Contains(t, r.FormattedContext, "green tea")
	assert.Equal(t, abi.Raw(`"query"`), r.Trace.Effective["order"])
	again, err := sdktest.Do(h, abi.OpFormatContext, scope, formatContext, &abi.FormatRequest{Result: *r, Scope: scope})
	require.NoError(t, err)
	assert.Equal(t, r.FormattedContext, again.FormattedContext)
}
