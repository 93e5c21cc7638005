package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/sdktest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// table is a turn with two people.
func table(id, session string) *abi.MemoryEvent {
	e := turn(id, session, "I am allergic to peanuts.", "Noted.", "I love peanut butter.")
	e.Messages[0].Name, e.Messages[2].Name = "Ann Lee", "Bob"
	return e
}

// requireTold checks that a context attributes each sentence correctly: to the person named last before it, in its line
// or in the heading above.
func requireTold(t *testing.T, context string) {
	t.Helper()
	for sentence, want := range map[string]string{"allergic to peanuts": "Ann", "love peanut butter": "Bob"} {
		require.Contains(t, context, sentence)
		for rest := context; ; {
			before, after, more := strings.Cut(rest, sentence)
			if !more {
				break
			}
			section := context[:len(context)-len(rest)+len(before)]
			other := map[string]string{"Ann": "Bob", "Bob": "Ann"}[want]
			require.Greater(t, strings.LastIndex(section, want), strings.LastIndex(section, other), "%q in %s", sentence, context)
			rest = after
		}
	}
}

func TestTheContextSaysWhoSaidWhat(t *testing.T) {
	for name, block := range map[string]string{
		"a peer for each":                   "",
		"a peer for each, in one workspace": `,"fixed_workspace":"lab"`,
		"names before the text":             `,"speakers":"names"`,
		"peers, messages searched":          `,"read":"search"`,
		"in one workspace, searched":        `,"read":"search","fixed_workspace":"lab"`,
		"peers, conclusions searched":       `,"supplements":["conclusions"]`,
		"peers, all supplements":            `,"supplements":["representation","peer_context","conclusions","search","summaries"]`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, quick, block)
			b.setup(t)
			assert.Empty(t, b.mustRecord(t, table("e1", "s1")).Warnings)
			b.pass(time.Minute)
			assert.Equal(t, abi.ReadinessReady, b.ready(t).Status)
			result := b.mustAsk(t, "peanut", func(r *abi.RetrieveRequest) { r.SessionID = "s2" })
			requireTold(t, result.FormattedContext)
		})
	}
}

// TestPeopleShareABudget: a small context has something about each person, not only about the first.
func TestPeopleShareABudget(t *testing.T) {
	b := newBench(t, quick, "")
	b.setup(t)
	names := []string{"Ann", "Bob", "Cleo", "Dan", "Eve"}
	for i, name := range names {
		for j, thing := range []string{"maps", "rain", "cellos", "tents", "figs", "trains"} {
			e := turn(fmt.Sprint("e", i, j), "s1", "I like "+thing+".", "Noted.")
			e.Messages[0].Name = name
			b.mustRecord(t, e)
		}
	}
	b.pass(time.Minute)
	require.Equal(t, abi.ReadinessReady, b.ready(t).Status)
	limit := int64(300)
	context := b.mustAsk(t, "maps", func(r *abi.RetrieveRequest) {
		r.SessionID, r.Budget.MaxTokens = "s2", &limit
	}).FormattedContext
	for _, name := range names {
		assert.Contains(t, context, headRepresentation+name)
	}
}

func TestWithoutASpeakerOptionTheReceiptWarns(t *testing.T) {
	b := newBench(t, quick, `,"speakers":"off"`)
	b.setup(t)
	warnings := b.mustRecord(t, table("e1", "s1")).Warnings
	assert.Contains(t, strings.Join(warnings, "\n"), "speaker_lost:")
	assert.Empty(t, b.mustRecord(t, turn("e2", "s1", "I like tea.")).Warnings, "nobody is named")
}

// TestAScopeFromBeforeTheOptionKeepsItsPeer: its memory belongs to the user's peer, and names are written before the
// text.
func TestAScopeFromBeforeTheOptionKeepsItsPeer(t *testing.T) {
	b := newBench(t, quick, "")
	b.setup(t)
	b.mustRecord(t, turn("e0", "s1", "My cat is called Tom."))
	_, err := sdktest.Do(b.Host, abi.OpRecordEvent, scope, func(c *sdk.Call, _ *abi.Empty) (*abi.Empty, error) {
		_, err := c.Delete(keySpeakers)
		return &abi.Empty{}, err
	}, &abi.Empty{})
	require.NoError(t, err)
	b.mustRecord(t, table("e1", "s1"))
	b.pass(time.Minute)
	result := b.mustAsk(t, "peanut", func(r *abi.RetrieveRequest) { r.SessionID = "s2" })
	requireTold(t, result.FormattedContext)
	assert.Contains(t, b.mustAsk(t, "cat").FormattedContext, "My cat is called Tom.")
	for _, m := range b.messages(t, "s-s1") {
		assert.NotContains(t, m["peer_id"], speakerPeers)
	}
}

// TestANewDataFolderFindsTheSpeakers by the peers that Honcho has.
func TestANewDataFolderFindsTheSpeakers(t *testing.T) {
	b := newBench(t, quick, "")
	b.setup(t)
	b.mustRecord(t, table("e1", "s1"))
	b.pass(time.Minute)
	again := newBench(t, quick, "")
	again.server, again.backend, again.at = b.server, b.backend, b.at
	b = again
	b.setup(t)
	requireTold(t, b.mustAsk(t, "peanut", func(r *abi.RetrieveRequest) { r.SessionID = "s2" }).FormattedContext)
}

func TestSpeakersAreCountedAndReset(t *testing.T) {
	for _, block := range []string{"", `,"fixed_workspace":"lab"`} {
		b := newBench(t, quick, block)
		b.setup(t)
		b.mustRecord(t, table("e1", "s1"))
		b.pass(time.Minute)
		for _, kind := range b.inventory(t).Kinds {
			if kind.Kind == "conclusion" {
				assert.EqualValues(t, 2, kind.Count, block)
			}
		}
		made := b.provenance(t, &abi.ProvenanceRequest{From: "2026-01-01T00:00:00Z", To: "2027-01-01T00:00:00Z"})
		assert.Len(t, made.Items, 2, block)
		b.reset(t)
		b.setup(t)
		assert.NotContains(t, b.mustAsk(t, "peanut").FormattedContext, "peanut", block)
	}
}
