//go:build live

package honcho_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	fake "github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/plugins"
)

// provider is the module at a server.
func provider(t *testing.T, url, key, more string) host.ProviderConfig {
	t.Helper()
	m, ok := plugins.Find("honcho")
	require.True(t, ok, "build it: make plugins")
	p := host.ProviderConfig{Name: "honcho", Module: m.Wasm, Source: "builtin", Secrets: map[string]host.Secret{}}
	if key != "" {
		more += `,"api_key":{"secret":"HONCHO"}`
		p.Secrets["HONCHO"] = host.Secret{Value: func() (string, error) { return key, nil }, Origin: url}
	}
	p.Block = abi.Raw(fmt.Sprintf(`{"url":%q%s}`, url, more))
	return p
}

func TestLive_honcho(t *testing.T) {
	url, key := os.Getenv("HONCHO_URL"), os.Getenv("HONCHO_KEY")
	if url == "" {
		t.Fatal("HONCHO_URL is not set: start a Honcho server as docs/backends/honcho.md says, with " +
			"DERIVER_FLUSH_ENABLED=true, and give its address")
	}
	t.Run("conformance", func(t *testing.T) {
		conformance.Test(t, conformance.Target{Provider: provider(t, url, key, ""), ReadyWithin: 3 * time.Minute})
	})
	t.Run("conformance, source-design", func(t *testing.T) {
		p := provider(t, url, key, "")
		p.Profile = abi.ProfileSourceDesign
		conformance.TestWith(t, conformance.Target{Provider: p, ReadyWithin: 3 * time.Minute},
			conformance.Options{Clauses: []int{1, 2, 5, 8, 9, 14}})
	})
	t.Run("parity", func(t *testing.T) { parity(t, url, key, 3*time.Minute) })
}

// TestLive_honcho_fake holds the parity script itself to the fake: it needs the Python client, and no server.
func TestLive_honcho_fake(t *testing.T) {
	server := httptest.NewServer(fake.New(fake.Options{Mood: fake.Mood{Flush: true}}))
	defer server.Close()
	parity(t, server.URL, "", time.Minute)
}

const tokens, conclusions = 8000, 25

// parity asks the same through memhost and through Honcho's own client, and compares what memhost has in raw, field by
// field.
func parity(t *testing.T, url, key string, within time.Duration) {
	ctx := context.Background()
	h, err := host.New(ctx, host.Options{DataDir: t.TempDir()})
	require.NoError(t, err)
	defer func() { assert.NoError(t, h.Close(ctx)) }()
	s, err := h.Open(ctx, provider(t, url, key, fmt.Sprintf(`,"supplements":["representation","peer_context"],"context_tokens":%d,"max_conclusions":%d`, tokens, conclusions)))
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close(ctx)) }()
	scope := abi.MemoryScope{RunID: fmt.Sprint("parity ", time.Now().UnixNano()), PersonaID: "alice"}
	setup, err := s.SetupScope(ctx, scope)
	require.NoError(t, err)
	defer func() {
		_, err := s.ResetScope(ctx, scope)
		assert.NoError(t, err)
	}()
	subjects := []string{"cat", "boat", "garden", "bicycle", "sister", "piano", "office", "kitchen", "holiday",
		"neighbour"}
	for i, subject := range subjects {
		text := fmt.Sprintf("My %s has a name: %s%d. I think of it on every day that begins with rain.", subject,
			"Zorvex", i)
		_, err := s.RecordEvent(ctx, &abi.MemoryEvent{EventID: fmt.Sprint("e", i), RunID: scope.RunID,
			UserID: scope.PersonaID, SessionID: fmt.Sprint("s", i%3), TurnID: fmt.Sprint(i),
			Timestamp: fmt.Sprintf("2026-03-%02dT09:00:00Z", i+1),
			Messages: []abi.Message{{Role: abi.RoleUser, Content: &text},
				{Role: abi.RoleAssistant, Content: new("Noted.")}},
			Metadata: map[string]abi.Raw{"i": abi.Raw(fmt.Sprint(i))}})
		require.NoError(t, err)
	}
	ready, err := s.Readiness(ctx, &abi.ReadinessRequest{Scope: scope, TimeoutMS: within.Milliseconds()})
	require.NoError(t, err)
	require.Equal(t, abi.ReadinessReady, ready.Status, "%v", ready.Warnings)

	type query struct {
		Text           string `json:"text"`
		Session        string `json:"session"`
		Tokens         int    `json:"tokens"`
		TopK           int    `json:"top_k"`
		MaxConclusions int    `json:"max_conclusions"`
	}
	task := map[string]any{"url": url, "key": key, "workspace": setup.NativeScope["workspace"],
		"user": setup.NativeScope["user_peer"]}
	var queries []query
	var ours [][]abi.RawCall
	for i, subject := range subjects {
		for j, wording := range []string{"What is my %s called?", "Tell me about my %s", "%s", "name of the %s, rain",
			"Zorvex %s", "我的 %s"} {
			text := fmt.Sprintf(wording, subject)
			session := fmt.Sprint("s", (i+j)%3)
			result, err := s.Retrieve(ctx, &abi.RetrieveRequest{Query: text, Scope: scope, SessionID: session})
			require.NoError(t, err)
			ours = append(ours, result.Raw.Calls)
			queries = append(queries, query{text, "s-" + session, tokens, conclusions, conclusions})
		}
	}
	require.GreaterOrEqual(t, len(queries), 50)
	task["queries"] = queries
	in, err := json.Marshal(task)
	require.NoError(t, err)
	client := exec.Command(cmp.Or(os.Getenv("HONCHO_PYTHON"), "python3"), "parity.py")
	var said bytes.Buffer
	client.Stdin, client.Stderr = bytes.NewReader(in), &said
	out, err := client.Output()
	require.NoError(t, err, "the Python client (pip install honcho-ai): %s", said.String())
	var theirs []map[string]map[string]any
	require.NoError(t, json.Unmarshal(out, &theirs))
	require.Len(t, theirs, len(queries))
	compared := 0
	for i := range queries {
		for _, call := range ours[i] {
			var body map[string]any
			require.NoError(t, json.Unmarshal(call.Body, &body))
			for field, want := range theirs[i][call.Route] {
				assert.Equal(t, comparable(want), comparable(body[field]), "%q: %s.%s", queries[i].Text, call.Route,
					field)
				compared++
			}
		}
	}
	t.Logf("%d queries, %d fields are equal", len(queries), compared)
}

// comparable is a value with its times in one form; of a summary the fields that the client has.
func comparable(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range x {
			if name == "created_at" {
				if x["summary_type"] != nil {
					continue
				}
				text, _ := inner.(string)
				if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
					inner = at.UTC().Format(time.RFC3339Nano)
				}
			}
			out[name] = comparable(inner)
		}
		return out
	case []any:
		out := []any{}
		for _, inner := range x {
			out = append(out, comparable(inner))
		}
		return out
	}
	return v
}
