package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	fake "github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/sdk/sdktest"
)

// recordTurns records n turns of a session, an hour apart, of two messages each.
func (b *bench) recordTurns(t testing.TB, session string, turns int) {
	t.Helper()
	for i := range turns {
		e := turn(fmt.Sprint(session, "-", i), session, fmt.Sprintf("My cat ate %d mice.", i),
			fmt.Sprintf("Noted, %d.", i))
		e.Timestamp = fmt.Sprintf("2026-03-01T%02d:00:00Z", i)
		b.mustRecord(t, e)
	}
	b.pass(time.Minute)
}

func TestTheCardComesFirstAndTheSessionsMessagesLastInOrderOfTime(t *testing.T) {
	b := newBench(t, quick, "")
	b.setup(t)
	b.recordTurns(t, "s-new", 10)
	b.mutate(t, "card_set", `{"lines":["IDENTITY: Alice"]}`)
	result := b.mustAsk(t, "cat mice")
	text := result.FormattedContext
	at := -1
	for _, heading := range []string{headCard, headRepresentation, headSummary, headMessages} {
		next := strings.Index(text, heading)
		require.Greater(t, next, at, heading)
		at = next
	}
	messages := text[at:]
	assert.Less(t, strings.Index(messages, "ate 0 mice"), strings.Index(messages, "ate 9 mice"))
	last := result.Evidence[len(result.Evidence)-1]
	assert.Contains(t, last.Text, "ate 0 mice", "the newest has the better rank")

	short := int64(600)
	for {
		result = b.mustAsk(t, "cat", func(r *abi.RetrieveRequest) { r.Budget.MaxTokens = &short })
		messages = result.FormattedContext[strings.Index(result.FormattedContext, headMessages):]
		require.LessOrEqual(t, *result.Trace.TokenCount, short)
		if !strings.Contains(messages, "ate 0 mice") {
			break
		}
		short -= 20
	}
	assert.Contains(t, messages, "Noted, 9.", "the newest are chosen")
	assert.Less(t, strings.Index(messages, "ate 9 mice"), strings.Index(messages, "Noted, 9."),
		"and shown in order of time")
}

func TestASummaryHasTheTimeOfItsLastMessage(t *testing.T) {
	b := newBench(t, quick, "")
	b.setup(t)
	b.recordTurns(t, "s-new", 10)
	summary := func(r *abi.RetrieveResult) abi.Evidence {
		for _, e := range r.Evidence {
			if e.Group == "summary" {
				return e
			}
		}
		require.Fail(t, "no summary")
		return abi.Evidence{}
	}
	b.Sent = nil
	e := summary(b.mustAsk(t, "cat"))
	assert.Equal(t, []string{"context"}, b.routes(), "its last message is among the session's")
	assert.Equal(t, "2026-03-01T09:00:00.000001Z", e.CreatedAt)
	assert.Equal(t, abi.TimeEvent, e.TimeBasis)
	assert.True(t, strings.HasPrefix(e.UpdatedAt, "2026-07-01"), "when it was made: %s", e.UpdatedAt)

	b.recordTurns(t, "s-long", 13)
	result := b.mustAsk(t, "cat", func(r *abi.RetrieveRequest) {
		r.SessionID, r.Budget.MaxItems = "s-long", new(int64(5))
		r.Budget.MaxTokens = new(int64(200)) // no room for the messages up to the 20th
	})
	require.Equal(t, 2, len(result.Raw.Calls))
	assert.Equal(t, "message", result.Raw.Calls[1].Route)
	assert.Equal(t, "2026-03-01T09:00:00.000001Z", summary(result).CreatedAt)
}

func TestSummariesOfEarlierSessions(t *testing.T) {
	for _, block := range []string{"", `,"fixed_workspace":"lab"`} {
		b := newBench(t, quick, `,"supplements":["summaries"],"past_sessions":2`+block)
		b.setup(t)
		for _, s := range []string{"a", "b", "c", "s-new"} {
			b.recordTurns(t, s, 10)
		}
		b.Sent = nil
		result := b.mustAsk(t, "cat")
		var asked []string
		for _, call := range result.Raw.Calls {
			asked = append(asked, call.Route)
		}
		assert.Equal(t, []string{"context", "summaries", "message", "summaries", "message"}, asked,
			"the two newest before this one")
		assert.Equal(t, 2, strings.Count(result.FormattedContext, "First: My cat ate 0 mice.")-1, "and this one's own")
		assert.Contains(t, result.FormattedContext, headPast)
		for _, e := range result.Evidence {
			if e.Group == "summary" {
				assert.Equal(t, "2026-03-01T09:00:00.000001Z", e.CreatedAt, e.Pointer)
			}
		}
	}
}

func TestTheSupplementSearchFindsWhatTheAssistantSaid(t *testing.T) {
	for _, block := range []string{"", `,"fixed_workspace":"lab"`} {
		b := newBench(t, quick, `,"supplements":["search"]`+block)
		b.setup(t)
		b.mustRecord(t, turn("e1", "s1", "What shall I cook?", "Try a saffron risotto with peas."))
		b.pass(time.Second)
		result := b.mustAsk(t, "saffron risotto")
		assert.Contains(t, result.FormattedContext, "saffron risotto with peas", block)
		assert.Equal(t, "context", effective(t, result, "read"))
	}
}

// TestASmallBudgetHasRoomForEachSection: a long representation used to take all of it, or the conclusions that were found
// what was there for supplements, and the messages that were found were lost.
func TestASmallBudgetHasRoomForEachSection(t *testing.T) {
	for supplements, messages := range map[string]int{`"search"`: 2, `"conclusions","search"`: 1} {
		b := newBench(t, quick, `,"supplements":[`+supplements+`]`)
		b.setup(t)
		for i := range 30 {
			b.mustRecord(t, turn(fmt.Sprint("e", i), "s-old", "I own "+strings.Repeat(fmt.Sprintf("boat%d mast%d ", i, i), 12)))
		}
		b.mustRecord(t, turn("e-last", "s-old", "What shall I cook?", "Try a saffron risotto with peas."))
		b.pass(time.Second)
		result := b.mustAsk(t, "", func(r *abi.RetrieveRequest) { r.Budget.MaxTokens = new(int64(300)) })
		shown := map[string]int{}
		for _, e := range result.Evidence {
			if e.Shown != nil {
				shown[e.NativeType]++
			}
		}
		assert.GreaterOrEqual(t, shown["conclusion"], 2, supplements)
		assert.GreaterOrEqual(t, shown["message"], messages, supplements)
	}
}

func effective(t testing.TB, r *abi.RetrieveResult, name string) string {
	t.Helper()
	var v map[string]any
	require.NoError(t, jsonOf(r.Trace.Effective, &v))
	return fmt.Sprint(v[name])
}

func TestReadChatAsksHonchosModelAndMakesNothing(t *testing.T) {
	b := newBench(t, quick, `,"read":"chat"`)
	b.ReadOnly = true
	result := b.mustAsk(t, "Where do I live?")
	assert.Equal(t, abi.ResultEmpty, result.Trace.ResultState)
	assert.Equal(t, []string{"peers_list", "peers_list"}, b.routes(), "a scope that does not exist, under another name "+
		"neither, is not asked: chat would make it")
	assert.Empty(t, b.server.Workspaces())

	b.ReadOnly = false
	b.setup(t)
	b.mustRecord(t, turn("e1", "s1", "I live in Bergen."))
	b.pass(time.Second)
	b.ReadOnly = true
	b.Sent = nil
	result = b.mustAsk(t, "Where do I live?")
	assert.Equal(t, []string{"peers_list", "dialectic"}, b.routes())
	assert.Contains(t, result.FormattedContext, "Bergen")
	assert.Contains(t, result.FormattedContext, headChat)
	assert.Equal(t, "chat", effective(t, result, "read"))
	assert.Equal(t, "low", effective(t, result, "reasoning_level"))
	_, err := b.ask("")
	assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
	b.server.Set(func(m *fake.Mood) { m.LLMDown = true })
	_, err = b.ask("Where do I live?")
	assert.Equal(t, abi.CodeBackend, abi.CodeOf(err), "an outage is no empty result")
	for _, r := range b.manifest.Routes {
		if r.Name == "dialectic" {
			assert.Equal(t, abi.ClassRead, r.Class)
			assert.Contains(t, r.SideEffects, "model", "the trace tells of the model call")
		}
	}
}

func TestExactlyOneReadStrategyIsPinned(t *testing.T) {
	for block, want := range map[string]string{
		``:                                 "",
		`,"read":"search"`:                 "",
		`,"context":false`:                 "older word for read: search",
		`,"context":false,"read":"search"`: "",
		`,"context":true`:                  "",
		`,"context":false,"read":"chat"`:   "older word",
		`,"read":"chat","supplements":["search"]`:                   "read: context only",
		`,"read":"search","supplements":["search"]`:                 "read: context only",
		`,"peer_names":{"users":{"alice":"agent-7"}}`:               "another role",
		`,"peer_names":{"users":{"alice":"Ann"},"assistant":"Ann"}`: "another role",
		`,"peer_names":{"assistant":"user-alice"}`:                  "another role",
	} {
		b := newBench(t, quick, block)
		_, err := sdktest.Do(b.Host, abi.OpHealth, abi.MemoryScope{}, withBackend(health), &abi.Empty{})
		if want == "" {
			assert.NoError(t, err, block)
			continue
		}
		assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), block)
		assert.ErrorContains(t, err, want, block)
	}
}

func TestPeersMayHaveNames(t *testing.T) {
	const names = `,"peer_names":{"users":{"alice":"Alice"},"assistant":"Bot"}`
	for _, block := range []string{"", `,"fixed_workspace":"lab"`} {
		b := newBench(t, quick, names+block)
		b.setup(t)
		b.mustRecord(t, turn("e1", "s1", "I live in Bergen.", "Noted."))
		b.pass(time.Second)
		assert.Contains(t, b.mustAsk(t, "Bergen").FormattedContext, "] Alice")
		assert.Equal(t, "present", b.find(t, "e1").Found)
	}
	// The same server with another name: what was derived would not be found.
	b := newBench(t, quick, "")
	b.setup(t)
	named := newBench(t, quick, names)
	named.server = b.server
	named.backend = b.backend
	for _, readOnly := range []bool{false, true} {
		named.ReadOnly = readOnly
		_, err := sdktest.Do(named.Host, abi.OpSetupScope, scope, withBackend(setupScope), &abi.Empty{})
		assert.Equal(t, abi.CodeConflict, abi.CodeOf(err), "%v", err)
		assert.Equal(t, "peer_renamed", abi.AsError(err).Reason)
	}
	_, err := named.ask("Bergen")
	assert.Equal(t, "peer_renamed", abi.AsError(err).Reason, "an unknown peer is not an empty memory")
}

func TestAnEmbeddingOutageIsNeverAnEmptyResult(t *testing.T) {
	b := newBench(t, quick, "")
	b.setup(t)
	b.server.Set(func(m *fake.Mood) { m.EmbedDown = true })
	assert.Equal(t, abi.ResultEmpty, b.mustAsk(t, "cat").Trace.ResultState, "nothing is held, so nothing is hidden")
	b.server.Set(func(m *fake.Mood) { m.EmbedDown = false })
	b.mustRecord(t, turn("e1", "s-new", "My cat is called Zorvex."))
	b.pass(time.Second)
	b.Sent = nil
	b.mustAsk(t, "cat")
	assert.Equal(t, []string{"context"}, b.routes(), "one call where it works")
	b.server.Set(func(m *fake.Mood) { m.EmbedDown = true })
	_, err := b.ask("cat")
	e := abi.AsError(err)
	require.Error(t, err)
	assert.Equal(t, abi.CodeUnavailable, e.Code)
	assert.Equal(t, "embeddings_down", e.Reason)
	assert.True(t, e.Retryable)
	b.server.Set(func(m *fake.Mood) { m.EmbedDown = false })
	assert.Contains(t, b.mustAsk(t, "cat").FormattedContext, "Zorvex")

	far := newBench(t, quick, `,"search_max_distance":0`)
	far.setup(t)
	far.mustRecord(t, turn("e1", "s1", "My cat is called Zorvex."))
	far.pass(time.Second)
	assert.Equal(t, abi.ResultEmpty, far.mustAsk(t, "piano").Trace.ResultState,
		"all is farther than search_max_distance")
}

func TestDerivationIsJudgedBySessionAndMayBeRepeated(t *testing.T) {
	for _, block := range []string{"", `,"fixed_workspace":"lab"`} {
		b := newBench(t, quick, block)
		b.setup(t)
		good := b.mustRecord(t, turn("good", "s1", "My cat is called Zorvex."))
		require.Equal(t, abi.ReadinessReady, b.ready(t, good.Markers...).Status)
		b.pass(time.Minute)
		b.server.Set(func(m *fake.Mood) { m.LLMDown = true })
		bad := b.mustRecord(t, turn("bad", "s2", "My boat is called Qumbli."))
		b.pass(5 * time.Second)
		b.ready(t)
		b.server.Set(func(m *fake.Mood) { m.LLMDown = false })
		good = b.mustRecord(t, turn("good2", "s1", "My dog is called Nimbor."))
		b.pass(5 * time.Second)
		r := b.ready(t, bad.Markers[0], good.Markers[0])
		assert.Equal(t, abi.ReadinessDegraded, r.Status, "what was derived in one session clears no other")
		assert.Equal(t, []string{"bad"}, r.EventIDs.Empty)
		for range 2 {
			r = b.ready(t)
			assert.Equal(t, abi.ReadinessDegraded, r.Status, "as long as it is true")
			require.True(t, hasWarning(r.Warnings, "derivation_empty"))
			assert.Contains(t, strings.Join(r.Warnings, " "), "1 sessions have not one conclusion (s2)")
			assert.Empty(t, r.EventIDs.Empty)
		}
		receipt := b.mutate(t, "derive_again", `{"event_id":"bad","session_id":"s2"}`)
		assert.Equal(t, "applied", receipt.Status)
		assert.Len(t, receipt.NativeIDs, 1)
		b.pass(5 * time.Second)
		r = b.ready(t)
		assert.Equal(t, abi.ReadinessReady, r.Status)
		assert.Empty(t, r.Warnings)
		result := b.mustAsk(t, "boat", func(r *abi.RetrieveRequest) { r.SessionID = "s2" })
		assert.Contains(t, result.FormattedContext, "said: My boat is called Qumbli.")
		assert.Len(t, b.messages(t, "s2"), 1, "the session has its message once")
		assert.Equal(t, "present", b.find(t, "bad").Found)
		assert.Equal(t, "no_change", b.mutate(t, "derive_again", `{"event_id":"never"}`).Status)

		b.server.Set(func(m *fake.Mood) { m.LLMDown = true })
		b.mustRecord(t, turn("small", "s3", "Hello."))
		b.pass(5 * time.Second)
		assert.Equal(t, abi.ReadinessDegraded, b.ready(t).Status)
		b.server.Set(func(m *fake.Mood) { m.LLMDown = false })
		b.mutate(t, "session_delete", `{"session_id":"s3"}`)
		b.pass(5 * time.Second)
		assert.Equal(t, abi.ReadinessReady, b.ready(t).Status, "of a session that was deleted nothing is missing")
		assert.Equal(t, abi.ResetDone, b.reset(t).Status, "the other session goes, too")
	}
}

func TestFindEventLooksFirstInTheSessionThatTheEventNames(t *testing.T) {
	b := newBench(t, quick, "")
	b.setup(t)
	for i := range 20 {
		b.mustRecord(t, turn(fmt.Sprint("e", i), fmt.Sprint("s", i), "I sing."))
	}
	b.Sent = nil
	find := func(session string) string {
		answer, err := sdktest.Do(b.Host, abi.OpFindEvent, scope, withBackend(findEvent),
			&abi.FindEventRequest{EventID: "e19", SessionID: session, SentAt: b.Now})
		require.NoError(t, err)
		return answer.Found
	}
	assert.Equal(t, "present", find("s19"))
	assert.Len(t, b.routes(), 1)
	assert.Equal(t, "present", find("s3"), "a wrong name is no harm")
	assert.Greater(t, len(b.routes()), 20)
}
