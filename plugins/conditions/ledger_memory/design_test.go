package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk/sdktest"
)

// Tests of the published design of the ledger beyond its checks.

func TestAPartOfAWordFinds(t *testing.T) {
	h := newHost(t)
	must(t, h, "memory_add", `{"subject":"User","predicate":"prefers","object":"dark mode themes","scope":"permanent"}`)
	must(t, h, "memory_add", `{"subject":"User","predicate":"has","object":"a preference for tea"}`)
	must(t, h, "memory_add", `{"subject":"Mara","predicate":"lives in","object":"Oslo"}`)
	found := ask(t, h, "memory_search", `{"query":"preference","scope":"permanent"}`)
	assert.Contains(t, found, "dark mode themes", "the design's own example")
	assert.NotContains(t, found, "Oslo")
	found = ask(t, h, "memory_search", `{"query":"preference","limit":1}`)
	assert.Contains(t, found, "tea", "the word itself goes first")
	for _, c := range []struct {
		a, b string
		kin  bool
	}{{"preference", "preferences", true}, {"prefers", "preference", true}, {"work", "workspace", true},
		{"internet", "international", false}, {"user", "uses", false}, {"in", "tin", false}, {"the", "other", false},
		{"work", "homework", true}, {"猫", "黑猫", true}} {
		assert.Equal(t, c.kin, kin(c.a, c.b), "%s %s", c.a, c.b)
		assert.Equal(t, c.kin, kin(c.b, c.a), "%s %s", c.b, c.a)
	}
}

func TestABranchHasMetadata(t *testing.T) {
	h := newHost(t)
	must(t, h, "create_branch", `{"name":"work","metadata":{"team":"blue","n":1}}`)
	must(t, h, "create_branch", `{"name":"home"}`)
	list := ask(t, h, "branches", `{}`)
	assert.Contains(t, list, `"metadata":{"team":"blue","n":1}`)
	assert.Contains(t, list, `"metadata":{}`)
	must(t, h, "memory_add", `{"subject":"user","predicate":"likes","object":"tea","branch":"work"}`)
	assert.Contains(t, ask(t, h, "branches", `{}`), `"team":"blue"`, "a commit keeps it")
	_, err := do(h, "create_branch", `{"name":"x","metadata":[1]}`)
	assert.ErrorContains(t, err, "params.metadata")
	b, err := decodeBranch([]byte(`{"name":"old","head":null,"persona":null,"created_at":""}`))
	require.NoError(t, err, "branches of before have none")
	assert.Contains(t, string(b.encode()), `"metadata":{}`)
}

// TestAListIsFoundBehindProse: a citation or an empty list before the list is not taken for the answer.
func TestAListIsFoundBehindProse(t *testing.T) {
	const item = `[{"event_type":"add","subject":"Ann","predicate":"owns","object":"an otter called Quill"}]`
	for _, answer := range []string{item, "From line [1] I take this:\n```json\n" + item + "\n```",
		"Often I answer [] but here is one:\n" + item, "<think>[1] [] [{}]</think>" + item, "[2] says so. {\"items\": " + item + "}"} {
		h, stub := withModel(t, "")
		answerNext(t, stub, answer)
		record(t, h, turn("e1", "s1", "Ann owns an otter called Quill."))
		require.Equal(t, []string{"e1"}, ready(t, h, "e1").EventIDs.Pending, answer)
		require.Equal(t, abi.ReadinessReady, wait(t, h).Status, answer)
		require.Contains(t, ask(t, h, "view", `{}`), "an otter called Quill", answer)
	}
}

func TestTheToolMemoryBranchLists(t *testing.T) {
	h := newHost(t)
	must(t, h, "create_branch", `{"name":"work"}`)
	r := must(t, h, "memory_branch", `{"action":"list"}`)
	assert.Equal(t, noChange, r.Status)
	assert.Contains(t, string(r.Trace.Details["branches"]), `"work"`)
	assert.Equal(t, `"main"`, string(r.Trace.Details["current"]))
}

func TestAFactNamesItsSource(t *testing.T) {
	h := newHost(t)
	must(t, h, "memory_add", `{"subject":"user","predicate":"likes","object":"tea","source":"survey of May"}`)
	must(t, h, "memory_add", `{"subject":"user","predicate":"likes","object":"rye"}`)
	view := ask(t, h, "view", `{}`)
	assert.Contains(t, view, `"source":"survey of May"`)
	assert.Contains(t, view, `"source":"agent"`)
}

func TestWhatHasExpiredIsForgottenByTheClock(t *testing.T) {
	h, _ := withModel(t, `,"consolidate_minutes":30,"temporary_ttl_s":60`)
	idle := func() {
		_, err := sdktest.Do(h, abi.OpWaitUntilReady, scope, waitUntilReady, &abi.WaitRequest{DeadlineMS: 30000,
			Background: true})
		require.NoError(t, err)
	}
	later := func(d time.Duration) {
		now, err := time.Parse(time.RFC3339, h.Now)
		require.NoError(t, err)
		h.Now = now.Add(d).Format(time.RFC3339)
	}
	idle()
	for _, branch := range []string{"main", "work"} {
		if branch != "main" {
			must(t, h, "create_branch", fmt.Sprintf(`{"name":%q,"orphan":true}`, branch))
		}
		must(t, h, "memory_add", fmt.Sprintf(
			`{"subject":"user","predicate":"is in","object":"Graz","scope":"temporary","branch":%q}`, branch))
	}
	later(29 * time.Minute)
	idle()
	assert.NotContains(t, ask(t, h, "log", `{}`), "Consolidate", "not due")
	wait(t, h)
	assert.NotContains(t, ask(t, h, "log", `{}`), "Consolidate", "nor by whoever waits")
	later(time.Minute)
	idle()
	for _, branch := range []string{"main", "work"} {
		assert.Contains(t, ask(t, h, "log", fmt.Sprintf(`{"branch":%q}`, branch)), "Consolidate, as scheduled")
	}
	again := ask(t, h, "log", `{}`)
	later(31 * time.Minute)
	idle()
	assert.Equal(t, again, ask(t, h, "log", `{}`), "nothing to tidy, no commit")
}

// TestTheHeartbeatOfTheDesign: under source-design new facts are extracted, outdated ones are updated, and what is
// redundant is cleaned up every 30 minutes, without a key for it.
func TestTheHeartbeatOfTheDesign(t *testing.T) {
	for profile, want := range map[abi.Profile][]string{abi.ProfileSourceDesign: {"Bergen", "A cat."},
		"": {"Oslo", "Bergen", "a cat", "A cat."}} {
		for _, config := range []string{"", `,"conflict_policy":null,"consolidate_minutes":null`} {
			h, stub := withModel(t, `,"update_policy":"every_event"`+config)
			h.Profile = profile
			remembered(t, h, stub, "e1", livesInOslo, "nanobot.judge", "unasked")
			remembered(t, h, stub, "e2", strings.ReplaceAll(livesInOslo, "Oslo", "Bergen"), "nanobot.judge", "replace")
			must(t, h, "memory_add", `{"subject":"user","predicate":"owns","object":"a cat"}`)
			must(t, h, "memory_add", `{"subject":"user","predicate":"owns","object":"A cat."}`)
			h.Now = "2026-08-01T12:00:00Z"
			_, err := sdktest.Do(h, abi.OpWaitUntilReady, scope, waitUntilReady,
				&abi.WaitRequest{DeadlineMS: 30000, Background: true})
			require.NoError(t, err)
			var objects []string
			for _, m := range regexp.MustCompile(`"object":"([^"]*)"`).FindAllStringSubmatch(ask(t, h, "view", `{}`), -1) {
				objects = append(objects, m[1])
			}
			assert.ElementsMatch(t, want, objects, "%s", profile)
		}
	}
}

// TestTimeIsTheTimelines: months that are replayed on any day give the same ledger. Temporary facts expire by the
// timeline, which advances with the host's clock after the newest event.
func TestTimeIsTheTimelines(t *testing.T) {
	replay := func(days int) string {
		h, stub := withModel(t, `,"update_policy":"every_event","temporary_ttl_s":3600`)
		now, err := time.Parse(time.RFC3339, h.Now)
		require.NoError(t, err)
		later := func(d time.Duration) { h.Now = now.AddDate(0, 0, days).Add(d).Format(time.RFC3339) }
		tell := func(id, at, object, scope string) {
			later(0)
			answerNext(t, stub, fmt.Sprintf(
				`[{"event_type":"add","subject":"user","predicate":"likes","object":%q,"scope":%q}]`, object, scope))
			e := turn(id, "s", "I told you.")
			e.Timestamp = at
			record(t, h, e)
			require.Equal(t, abi.ReadinessReady, wait(t, h).Status)
		}
		tell("e1", "2026-03-01T09:00:00+01:00", "Graz", "temporary")
		for minutes, is := range map[time.Duration]bool{0: true, 59: true, 61: false} {
			later(minutes * time.Minute)
			assert.Equal(t, is, strings.Contains(retrievedContext(t, h), "Graz"), "%d minutes later", minutes)
		}
		tell("e2", "2026-03-01T10:00:01+01:00", "rye", "permanent")
		assert.NotContains(t, retrievedContext(t, h), "Graz", "an hour later on the timeline")
		return ask(t, h, "log", `{}`) + ask(t, h, "view", `{}`)
	}
	one := replay(0)
	assert.Contains(t, one, "2026-03-01T08:00:00Z")
	assert.Equal(t, one, replay(200))
}
