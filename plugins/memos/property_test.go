package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/sdk/sdktest"
)

// anyID draws ids as callers may write them, including those that break naive mappings.
func anyID() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom([]string{"*", "..", "a:b", "a", ":b", `"`, "'", `\`, "🙂", " ", "mh1s-x",
		"default_session", "a#0", strings.Repeat("x", 500)}),
		rapid.StringMatching(`[a-c:'-]{1,4}`), rapid.StringN(1, 40, 120))
}

func TestCubesAreInjectiveAndPlain(t *testing.T) {
	s := &settings{config: &abi.GuestConfig{Provider: "memos", Namespace: "lab"}}
	type key struct {
		scope      abi.MemoryScope
		generation int64
	}
	known := map[string]key{}
	rapid.Check(t, func(t *rapid.T) {
		k := key{abi.MemoryScope{RunID: anyID().Draw(t, "run"), PersonaID: anyID().Draw(t, "persona"),
			AgentID: rapid.OneOf(rapid.Just(""), anyID()).Draw(t, "agent")},
			rapid.Int64Range(1, 3).Draw(t, "generation")}
		cube := s.cubeOf(k.scope, k.generation)
		assert.Regexp(t, `^mh1-[a-z2-7]{52}$`, cube)
		before, seen := known[cube]
		require.True(t, !seen || before == k, "two scopes share %s", cube)
		known[cube] = k
		assert.NotEqual(t, s.canary("a"), cube)
	})
	assert.NotEqual(t, hashedID("x-", "ab", "c"), hashedID("x-", "a", "bc"), "the parts' lengths count")
}

func TestBase32IsThatOfRFC4648(t *testing.T) {
	assert.Equal(t, "4oymiquy7qobjgx36tejs35zeqt24qpemsnzgtfeswmrw6csxbkq",
		base32OfHex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))
}

func TestSessionsAreInjectiveAndPlain(t *testing.T) {
	known := map[string]string{}
	rapid.Check(t, func(t *rapid.T) {
		session := anyID().Draw(t, "session")
		native := sessionOf(session)
		assert.Regexp(t, `^[A-Za-z0-9._-]{1,100}$`, native)
		before, seen := known[native]
		require.True(t, !seen || before == session, "%q and %q share %s", before, session, native)
		known[native] = session
	})
}

func TestLabelTriplesAreInjective(t *testing.T) {
	known := map[string][3]string{}
	label := rapid.OneOf(rapid.Just(""), anyID())
	rapid.Check(t, func(t *rapid.T) {
		triple := [3]string{label.Draw(t, "scenario"), label.Draw(t, "context"), label.Draw(t, "attribute")}
		id := labelTriple(triple[0], triple[1], triple[2])
		before, seen := known[id]
		require.True(t, !seen || before == triple, "%q and %q share %s", before, triple, id)
		known[id] = triple
		assert.Equal(t, triple == [3]string{}, id == "")
	})
}

func TestMessageIDsLeadBackToTheirEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		event := anyID().Draw(t, "event")
		assert.Equal(t, event, eventOf(messageID(event, rapid.IntRange(0, 99).Draw(t, "i"))))
	})
	for _, none := range []string{"", "e", "#0", "e#", "e#x", "e#1x"} {
		assert.Empty(t, eventOf(none), none)
	}
}

func TestMarkersComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := marker{anyID().Draw(t, "event"), sessionOf(anyID().Draw(t, "session")), "2026-07-01T12:00:00Z"}
		back, ok := readMarker(m.String())
		require.True(t, ok)
		assert.Equal(t, m, back)
	})
}

func TestABudgetIsSharedAmongTheGroupsThatCame(t *testing.T) {
	for name, tt := range map[string]struct {
		came [4]int // texts, preferences, tool memories, skills
		n    int64
		want [4]int // how many of each are kept
	}{
		"texts alone have all of it":              {[4]int{60}, 50, [4]int{50}},
		"what other groups lack goes to texts":    {[4]int{60, 1}, 50, [4]int{49, 1}},
		"full groups have their configured share": {[4]int{60, 6, 12, 3}, 30, [4]int{15, 6, 6, 3}},
		"what texts lack goes to other groups":    {[4]int{2, 6, 12, 3}, 20, [4]int{2, 6, 9, 3}},
		"preferences alone have all of it":        {[4]int{0, 6}, 4, [4]int{0, 4}},
		"one place is a text's":                   {[4]int{5, 5, 5, 5}, 1, [4]int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			var items []*item
			for group, n := range tt.came {
				for range n {
					items = append(items, &item{group: groupNames[group]})
				}
			}
			var got [4]int
			for _, m := range (limits{10, 6, 6, 3}).first(items, &tt.n) {
				got[slices.Index(groupNames, m.group)]++
			}
			assert.Equal(t, tt.want, got)
		})
	}
}

// TestSourcesInAllTheirShapes takes the shapes of recorded answers.
func TestSourcesInAllTheirShapes(t *testing.T) {
	chat := `{"type":"chat","role":"user","chat_time":"2026-05-10T10:00:00Z","message_id":"ev-one#0","content":"I would like to visit Kyoto.","lang":"en"}`
	quote := func(text string) string { b, _ := json.Marshal(text); return string(b) }
	doc := func(content string) string {
		return `{"type":"doc","role":null,"chat_time":null,"message_id":null,"content":` + quote(content) +
			`,"doc_path":null}`
	}
	twice := quote(chat)
	want := []source{{kind: "chat", chatTime: "2026-05-10T10:00:00Z", messageID: "ev-one#0",
		content: "I would like to visit Kyoto."}}
	for name, shape := range map[string]string{
		"community: objects":                         "[" + chat + "]",
		"neo4j, search: a doc with a text in a text": "[" + doc(twice) + "]",
		"neo4j, list: a text in a text":              "[" + quote(twice) + "]",
		"neo4j, list: a text":                        "[" + quote(chat) + "]",
		"neo4j, list after async: a doc inside": "[" +
			quote(quote(`{"type":"doc","content":`+quote(twice)+`}`)) + "]",
		"neo4j, search after async: a doc inside a doc": "[" + doc(quote(`{"type":"doc","content":`+quote(twice)+`}`)) +
			"]",
		"the whole list as a text": quote("[" + chat + "]"),
		"beside what is no source": `[null,7,"no json",` + chat + `]`,
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, want, sourcesOf(shape)) })
	}
	t.Run("a document's own text stays", func(t *testing.T) {
		assert.Equal(t, []source{{kind: "doc", content: "plain"}}, sourcesOf(`[{"type":"doc","content":"plain"}]`))
	})
	t.Run("no end of layers", func(t *testing.T) {
		text := chat
		for range 12 {
			text = quote(text)
		}
		assert.Empty(t, sourcesOf("["+text+"]"))
	})
}

func sourcesOf(text string) (list []source) {
	for _, s := range readItem(abi.Raw(`{"metadata":{"sources":` + text + `}}`)).sources {
		list = append(list, *s)
	}
	return list
}

func FuzzReadSources(f *testing.F) {
	f.Add(`[{"type":"chat","message_id":"e#0"}]`)
	f.Add(`["\"{\\\"type\\\":\\\"chat\\\"}\""]`)
	f.Add(`[{"type":"doc","content":"\"{}\""}]`)
	f.Fuzz(func(_ *testing.T, text string) {
		if abi.ValidJSON([]byte(text)) {
			sourcesOf(text)
		}
	})
}

func FuzzOpenAnswer(f *testing.F) {
	f.Add([]byte(`{"code":200,"message":"ok","data":{"text_mem":[{"cube_id":"c","memories":[{"id":"1","memory":"m","metadata":{"relativity":0.5,"tags":["a"],"sources":[]}}]}]}}`))
	f.Add([]byte(`{"code":200,"data":{"text_mem":[{"memories":[null,1,"x"]}],"pref_mem":{}}}`))
	f.Add([]byte(`{"code":"x"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var r groupReader
		a, ok := openAnswer(body, r.fields())
		if !ok {
			return
		}
		groups, err := r.groups("search_fast", a, "c")
		if err != nil {
			require.Contains(t, []abi.Code{abi.CodeBackend, abi.CodeIsolationBreach}, abi.CodeOf(err))
			return
		}
		for _, m := range distinctItems(groups) {
			require.True(t, m.userID == "" || m.userID == "c")
			m.evidence(1, true)
			m.saidAt()
		}
	})
}

func FuzzCheckFilter(f *testing.F) {
	f.Add(`{"and":[{"a":1}]}`)
	f.Add(`{"or":[{"a":{"in":["x"]}}],"x":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		if !abi.ValidJSON([]byte(text)) || checkFilter(abi.Raw(text)) != nil {
			return
		}
		var top map[string][]map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &top),
			"what passes has the one shape that the server takes: %s", text)
		require.Len(t, top, 1)
		for key, conds := range top {
			require.Contains(t, []string{"and", "or"}, key)
			for _, c := range conds {
				for name := range c {
					require.Regexp(t, `^[A-Za-z0-9_]{1,64}$`, name)
				}
			}
		}
	})
}

func FuzzRenderKeepsTheElement(f *testing.F) {
	f.Add("text </memory-context>", "type\n## pref_mem", "id\"")
	f.Fuzz(func(t *testing.T, text, kind, id string) {
		s := &settings{rerank: true}
		block := strings.ToLower(sdktest.FormattedContent(t, abi.FrameFull, s.block(&item{id: id, memory: text, kind: kind}, id)))
		require.NotContains(t, block, "<memory-context")
		require.NotContains(t, block, "</memory-context")
		for i, line := range strings.Split(strings.TrimSuffix(block, "\n"), "\n") {
			require.True(t, i == 0 == strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "  "),
				"a memory's lines look like no heading and no other memory: %q", line)
		}
	})
}

// TestScopesNeverMix records and retrieves in many similar scopes.
func TestScopesNeverMix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := rapid.SampledFrom([]string{"neo4j", "neo4j-community"}).Draw(t, "store")
		b := newBench(t, `{"add_mode":"sync/fast","graph_store":"`+store+`"}`, memos.Options{Flavour: flavours[store]})
		scopes := rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) abi.MemoryScope {
			return abi.MemoryScope{RunID: anyID().Draw(t, "run"), PersonaID: anyID().Draw(t, "persona")}
		}), 2, 4, func(s abi.MemoryScope) abi.MemoryScope { return s }).Draw(t, "scopes")
		for i, s := range scopes {
			e := turnEvent("e-1", "My cat is called Zorvex"+string(rune('a'+i))+".")
			e.RunID, e.UserID = s.RunID, s.PersonaID
			if e.Validate() != nil {
				t.Skip("not an id")
			}
			_, err := sdktest.Do(b.Host, abi.OpRecordEvent, s, withBackend(recordEvent), e)
			require.NoError(t, err)
		}
		for i, s := range scopes {
			r := retrieveRequest("What is my cat called?")
			r.Scope = s
			result := b.find(r)
			require.Len(t, result.Evidence, 1)
			require.Contains(t, result.Evidence[0].Text, "Zorvex"+string(rune('a'+i))+".")
		}
	})
}
