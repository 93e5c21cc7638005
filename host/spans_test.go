package host_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/base/traceparent"
)

// treeOfSpans is a Tracer that keeps ended spans.
type treeOfSpans struct {
	mu    sync.Mutex
	begun byte
	ended []*notedSpan
}

type notedSpan struct {
	tree       *treeOfSpans
	id, parent byte // 0 means none
	start      host.SpanStart
	name       string
	failure    string
	texts      map[string]string
	numbers    map[string]int64
}

func (tree *treeOfSpans) Begin(ctx context.Context, start host.SpanStart) (context.Context, host.Span) {
	parent := traceparent.Of(ctx)
	if !parent.Present() && (start.Kind == host.SpanPart || start.Kind == host.SpanCall) {
		return ctx, host.NoSpan{}
	}
	tree.mu.Lock()
	defer tree.mu.Unlock()
	tree.begun++
	s := &notedSpan{tree: tree, id: tree.begun, parent: parent.Span[0], start: start, name: start.Name,
		texts: map[string]string{}, numbers: map[string]int64{}}
	return traceparent.With(ctx, traceparent.Parent{Trace: [16]byte{1}, Span: [8]byte{s.id}, Sampled: true}), s
}

func (tree *treeOfSpans) Traceparent(ctx context.Context) string { return traceparent.Of(ctx).String() }

func (s *notedSpan) SetName(name string)            { s.name = name }
func (s *notedSpan) Text(key, value string)         { s.texts[key] = value }
func (s *notedSpan) Number(key string, value int64) { s.numbers[key] = value }

func (s *notedSpan) End(failure string) {
	s.tree.mu.Lock()
	defer s.tree.mu.Unlock()
	s.failure = failure
	s.tree.ended = append(s.tree.ended, s)
}

func (tree *treeOfSpans) spans() []*notedSpan {
	tree.mu.Lock()
	defer tree.mu.Unlock()
	return append([]*notedSpan{}, tree.ended...)
}

func (tree *treeOfSpans) forget() {
	tree.mu.Lock()
	defer tree.mu.Unlock()
	tree.ended = nil
}

// text formats the ended spans, each below its parent, in order of their start.
func (tree *treeOfSpans) text() string {
	var b strings.Builder
	spans := tree.spans()
	var draw func(parent byte, depth int)
	draw = func(parent byte, depth int) {
		for id := range tree.begun {
			for _, s := range spans {
				if s.id == id+1 && s.parent == parent {
					line := strings.TrimSpace(s.name + " " + s.failure)
					fmt.Fprintf(&b, "%s%s\n", strings.Repeat("  ", depth), line)
					draw(s.id, depth+1)
				}
			}
		}
	}
	draw(0, 0)
	return b.String()
}

// named returns the first span with a name.
func (tree *treeOfSpans) named(t testing.TB, name string) *notedSpan {
	t.Helper()
	for _, s := range tree.spans() {
		if s.name == name {
			return s
		}
	}
	require.FailNow(t, "there is no such span", "%s in\n%s", name, tree.text())
	return nil
}

func TestAnOperationsSpans(t *testing.T) {
	tree := new(treeOfSpans)
	s, b, _ := host.ScriptedSlot(t, host.Options{Tracer: tree, NoReadinessPolls: true})
	host.RunCommands(t, s, "0", "deliver first") // makes the scope ready
	tree.forget()
	host.RunCommands(t, s, "e", "deliver a")
	assert.Equal(t, "record_event\n  lock\n  plugin\n    POST /post\n  commit\n  commit\n", tree.text())
	record := tree.named(t, "record_event")
	assert.Equal(t, host.SpanOperation, record.start.Kind)
	assert.Equal(t, "ok", record.texts["memhost.outcome"])
	assert.Equal(t, "write", record.texts["memhost.mode"])
	assert.Len(t, record.texts["memhost.scope"], 32)
	assert.Equal(t, int64(1), record.numbers["memhost.generation"])
	call := tree.named(t, "POST /post")
	assert.Equal(t, host.SpanCall, call.start.Kind)
	assert.Equal(t, int64(200), call.numbers["http.response.status_code"])

	tree.forget()
	b.Set(func() { b.Post = func(string) int { return 422 } })
	_, err := s.RecordEvent(context.Background(), host.Event("f", "deliver a"))
	host.RequireCode(t, err, abi.CodeBackend)
	assert.Equal(t, "backend", tree.named(t, "record_event").failure)
	assert.Equal(t, "plugin_error", tree.named(t, "plugin").failure)
	assert.Equal(t, "Unprocessable Entity", tree.named(t, "POST /post").failure)
	for _, span := range tree.spans() {
		for key, text := range span.texts {
			for _, secret := range []string{host.Event("f", "").UserID, "deliver a", host.Event("f", "").SessionID} {
				assert.NotContains(t, text, secret, key)
			}
		}
	}
}

// TestAShadowsSpansAreLinked: the same retrieval at a shadow has its own trace, which links to that of the agent's
// retrieval.
func TestAShadowsSpansAreLinked(t *testing.T) {
	tree := new(treeOfSpans)
	ctx := context.Background()
	s := host.OpenSlot(t, host.Open(t, host.Options{Tracer: tree}), host.History(t, ""))
	require.NoError(t, s.Shadow(ctx, host.History(t, "next"), host.ShadowOptions{SamplePercent: 100}))
	host.Record(t, s, "ann", 0, 3)
	host.Until(t, "it has everything", func() bool { return host.ShadowOf(t, s).State == report.FollowerReady })
	within, door := tree.Begin(ctx, host.SpanStart{Name: "POST /v1/retrieve", Kind: host.SpanRequest})
	_, err := s.Retrieve(within, &abi.RetrieveRequest{Query: "q", Scope: host.PersonScope("ann"), SessionID: "new"})
	require.NoError(t, err)
	door.End("")
	host.Until(t, "it was asked", func() bool { return host.ShadowOf(t, s).Report.Answers == 1 })
	var shadows, agents *notedSpan
	for _, span := range tree.spans() {
		switch {
		case span.name != abi.OpRetrieve:
		case span.texts["memhost.follower"] == report.RoleShadow:
			shadows = span
		default:
			agents = span
		}
	}
	require.NotNil(t, shadows)
	require.NotNil(t, agents)
	assert.Equal(t, tree.named(t, "POST /v1/retrieve").id, agents.parent)
	assert.Zero(t, shadows.parent)
	assert.Equal(t, []string{tree.Traceparent(within)}, shadows.start.Causes)
	assert.Empty(t, agents.start.Causes)
}

// TestADeliverysSpansAreLinked: a delivery to a follower has its own trace, which links to the spans that recorded the
// events.
func TestADeliverysSpansAreLinked(t *testing.T) {
	for _, role := range []string{report.RoleShadow, report.RoleBackfill} {
		t.Run(role, func(t *testing.T) {
			tree := new(treeOfSpans)
			ctx := context.Background()
			s := host.OpenSlot(t, host.Open(t, host.Options{Tracer: tree, Archive: true}), host.History(t, ""))
			host.Record(t, s, "ann", 0, 3)
			require.Len(t, tree.headers(abi.OpRecordEvent, ""), 3)
			if role == report.RoleShadow {
				require.NoError(t, s.Shadow(ctx, host.History(t, "next"), host.ShadowOptions{}))
				host.Until(t, "it has everything", func() bool { return host.ShadowOf(t, s).State == report.FollowerReady })
				host.Record(t, s, "ann", 3, 5)
				host.Until(t, "it has these too", func() bool { return host.ShadowOf(t, s).Progress.Done == 5 })
			} else {
				_, err := s.Backfill(ctx, host.History(t, "next"), host.BackfillOptions{})
				require.NoError(t, err)
				host.Serves(t, s, "next")
			}
			recorded := tree.headers(abi.OpRecordEvent, "")
			var causes []string
			for _, span := range tree.spans() {
				if span.texts["memhost.follower"] == role && strings.HasPrefix(span.name, abi.OpRecordEvent) {
					assert.Zero(t, span.parent)
					causes = append(causes, span.start.Causes...)
				}
			}
			assert.ElementsMatch(t, recorded, causes)
		})
	}
}

// headers returns the headers of an operation's spans, by follower; "" means the agents' own.
func (tree *treeOfSpans) headers(name, follower string) (list []string) {
	for _, s := range tree.spans() {
		if s.name == name && s.texts["memhost.follower"] == follower {
			list = append(list, traceparent.Parent{Trace: [16]byte{1}, Span: [8]byte{s.id}, Sampled: true}.String())
		}
	}
	return list
}
