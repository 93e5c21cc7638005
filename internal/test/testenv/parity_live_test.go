//go:build live

package testenv

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/examples/demo"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/chats"
	"github.com/memhost/memhost/internal/test/testcache"
)

// Native parity: what memhost returns in raw for at least 50 questions is, field by field, what the backend's own
// client gets for the same scope and parameters. The conversation is that of package chats: examples/demo, or with
// CHATS=DIR the chats in that folder.

// minQueries of a parity run.
const minQueries = 50

// conversation is what is recorded, and what is then asked of whom.
type conversation struct {
	events  []*abi.MemoryEvent
	queries []parityQuery
	// least is how many items all the questions must find: equal emptiness proves nothing.
	least int
}

type parityQuery struct {
	scope abi.MemoryScope
	text  string
}

// parity records the conversation through memhost and asks each question through memhost and through native, which is
// given the scope's native ids. pick takes from raw what native answers. Rows with equal scores have no order in any
// store: runs of them are compared as sets, by score's value.
func parity(t *testing.T, config host.ProviderConfig, pick func(raw abi.RawResult) (any, error),
	native func(t *testing.T, asked []parityQuery, scopes map[abi.MemoryScope]map[string]string) []any,
	score func(row any) any) {
	t.Helper()
	talk := loadConversation(t)
	if config.Profile == abi.ProfileSourceDesign {
		// MemOS then leaves out what is less like the question than its own limit, so whole turns are asked; they find
		// little but themselves.
		talk = conversationOf(t, 1000)
		talk.least /= 2
	}
	open(t, config, func(slot *host.Slot) {
		compare(t, slot, talk, recordAll(t, slot, talk), pick, native, score)
	})
}

// open runs something with a slot of its own.
func open(t *testing.T, config host.ProviderConfig, run func(*host.Slot)) {
	t.Helper()
	ctx := t.Context()
	h, err := host.New(ctx, host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir()})
	require.NoError(t, err)
	defer h.Close(context.WithoutCancel(ctx))
	slot, err := h.Open(ctx, config)
	require.NoError(t, err)
	defer slot.Close(context.WithoutCancel(ctx))
	run(slot)
}

// recordAll records the conversation and waits until it can be retrieved. It gives the native ids of each scope.
func recordAll(t *testing.T, slot *host.Slot, talk conversation) map[abi.MemoryScope]map[string]string {
	t.Helper()
	ctx := t.Context()
	scopes := map[abi.MemoryScope]map[string]string{}
	for _, e := range talk.events {
		scope := abi.MemoryScope{RunID: e.RunID, PersonaID: e.UserID}
		if scopes[scope] == nil {
			set, err := slot.SetupScope(ctx, scope)
			require.NoError(t, err)
			scopes[scope] = set.NativeScope
		}
	}
	began := time.Now()
	for start := 0; start < len(talk.events); start += 20 {
		batch := &abi.EventBatch{}
		for _, e := range talk.events[start:min(start+20, len(talk.events))] {
			batch.Events = append(batch.Events, *e)
		}
		receipts, err := slot.RecordEvents(ctx, batch)
		require.NoError(t, err)
		for i, r := range receipts.Receipts {
			require.Nil(t, r.Error, "event %d", start+i)
		}
	}
	for scope := range scopes {
		ready, err := slot.Readiness(ctx, &abi.ReadinessRequest{Scope: scope,
			TimeoutMS: (10 * time.Minute).Milliseconds()})
		require.NoError(t, err)
		t.Logf("%s: readiness %s after %.0f s (%s)", scope.PersonaID, ready.Status, time.Since(began).Seconds(),
			ready.Method)
	}
	return scopes
}

// compare asks each question through memhost and natively.
func compare(t *testing.T, slot *host.Slot, talk conversation, scopes map[abi.MemoryScope]map[string]string,
	pick func(raw abi.RawResult) (any, error),
	native func(t *testing.T, asked []parityQuery, scopes map[abi.MemoryScope]map[string]string) []any,
	score func(row any) any) {
	t.Helper()
	ctx := t.Context()
	ours, found := make([]any, len(talk.queries)), 0
	ask := func(n int) *abi.RetrieveResult {
		q := talk.queries[n]
		result, err := slot.Retrieve(ctx, &abi.RetrieveRequest{Query: q.text, Scope: q.scope, SessionID: "parity"})
		require.NoError(t, err, q.text)
		ours[n], err = pick(result.Raw)
		require.NoError(t, err)
		return result
	}
	for n := range ours {
		found += len(ask(n).Evidence)
	}
	require.GreaterOrEqual(t, len(ours), minQueries)
	require.Greater(t, found, talk.least, "hardly anything was found: equal emptiness proves nothing")

	// A backend may not give the same answer twice: rows with equal scores come in any order, and texts are made of
	// them. A full-text index changes the order permanently when it merges its parts. So what differs is asked again,
	// of both, and memhost's answer must be one that the backend's client gets too.
	const tries = 8
	open, again := make([]int, len(ours)), 0
	for i := range open {
		open[i] = i
	}
	var table []string
	for try := range tries {
		asked := make([]parityQuery, len(open))
		for i, n := range open {
			asked[i] = talk.queries[n]
			if try > 0 {
				ask(n)
			}
		}
		theirs := native(t, asked, scopes)
		require.Len(t, theirs, len(asked))
		var rest []int
		table = nil
		for i, n := range open {
			before := len(table)
			differences(&table, fmt.Sprintf("%3d", n+1), "", settle(ours[n], score), settle(theirs[i], score))
			if len(table) > before {
				rest = append(rest, n)
			}
		}
		if try > 0 {
			again += len(open) - len(rest)
		}
		if open = rest; len(open) == 0 {
			break
		}
	}
	fmt.Fprintf(os.Stderr, "parity: %d of %d questions equal (%d of them when asked again), %d items, %d differences\n",
		len(ours)-len(open), len(ours), again, found, len(table))
	if len(table) > 0 {
		t.Errorf("query | field | memhost | the backend's own client\n%s",
			strings.Join(table[:min(len(table), 60)], "\n"))
	}
}

// decode reads JSON into plain values.
func decode(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal(text, &v), "%s", text)
	return v
}

// firstCall is the body of raw's first call.
func firstCall(raw abi.RawResult) (any, error) {
	if len(raw.Calls) == 0 {
		return nil, fmt.Errorf("raw has no call")
	}
	var v any
	return v, json.Unmarshal(raw.Calls[0].Body, &v)
}

// askPython runs a script of parity/ that answers a JSON line for each it is given.
func askPython(t *testing.T, python, script string, env []string, lines []any) []any {
	t.Helper()
	var input bytes.Buffer
	for _, l := range lines {
		require.NoError(t, json.NewEncoder(&input).Encode(l))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, filepath.Join("parity", script))
	cmd.Env = append(cleanEnvironment(t.TempDir()), env...)
	cmd.Stdin = &input
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%s", errs.String())
	var answers []any
	scanner := bufio.NewScanner(bytes.NewReader(out))
	scanner.Buffer(nil, 64<<20)
	for scanner.Scan() {
		answers = append(answers, decode(t, scanner.Bytes()))
	}
	require.NoError(t, scanner.Err())
	return answers
}

// postJSON makes one direct request.
func postJSON(t *testing.T, url string, body any) any {
	t.Helper()
	text, err := json.Marshal(body)
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(text))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	res, err := direct.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, "%s", answer)
	return decode(t, answer)
}

// loadConversation reads examples/demo, or the chats in CHATS.
func loadConversation(t *testing.T) conversation {
	t.Helper()
	return conversationOf(t, 12)
}

// conversationOf is loadConversation with questions of at most so many words of the conversation.
func conversationOf(t *testing.T, most int) conversation {
	t.Helper()
	var talk conversation
	events, err := chats.Events()
	require.NoError(t, err)
	for i := range events {
		talk.events = append(talk.events, &events[i])
	}
	if os.Getenv(chats.Variable) == "" {
		questions, err := demo.Questions()
		require.NoError(t, err)
		for _, q := range questions {
			talk.queries = append(talk.queries, parityQuery{abi.MemoryScope{RunID: demo.RunID, PersonaID: q.PersonaID},
				q.Query})
		}
	}
	// The first words of what was said are questions with an answer in the memory.
	every := max(1, len(talk.events)/90)
	for i, e := range talk.events {
		for _, m := range e.Messages {
			if i%every == 0 && m.Role == abi.RoleUser && m.Content != nil && strings.TrimSpace(*m.Content) != "" {
				words := strings.Fields(*m.Content)
				talk.queries = append(talk.queries,
					parityQuery{abi.MemoryScope{RunID: e.RunID, PersonaID: e.UserID},
						strings.Join(words[:min(len(words), most)], " ")})
				break
			}
		}
	}
	talk.least = len(talk.queries)
	return talk
}
