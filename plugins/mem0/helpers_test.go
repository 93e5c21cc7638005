package main

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/sdk/sdktest"
)

//go:embed manifest.json
var manifest []byte

var maria = abi.MemoryScope{RunID: "maria_c1", PersonaID: "maria"}

// rig is the module's functions on standard Go, with a server behind them.
type rig struct {
	*sdktest.Host
	t testing.TB
}

// newRig merges a block over preset and defaults, as the host does. more is added to the block: `"infer":false`.
func newRig(t testing.TB, provider, more string, server http.Handler) *rig {
	t.Helper()
	m, schema, err := host.ParseManifest(manifest)
	require.NoError(t, err)
	block := `{"url":"http://backend","api_key":{"secret":"K"}`
	if more != "" {
		block += "," + more
	}
	for _, p := range m.Providers {
		if p.Name != provider {
			continue
		}
		effective, err := schema.Apply(p.Preset, abi.Raw(block+"}"))
		require.NoError(t, err)
		return &rig{t: t, Host: sdktest.New(t, sdktest.Options{Provider: provider, Kind: p.Kind,
			Config: string(effective), Secrets: []string{"api_key"},
			Manifest: manifest, HTTP: emptyAsDeclared(m,
				sdktest.Handler(t, manifest, map[string]string{"api_key": key}, server))})}
	}
	t.Fatalf("no provider %s", provider)
	return nil
}

// emptyAsDeclared marks the answers that the manifest declares to mean "nothing there".
func emptyAsDeclared(m *abi.ModuleManifest, send func(sdktest.Request) sdktest.Reply) func(
	sdktest.Request) sdktest.Reply {
	return func(r sdktest.Request) sdktest.Reply {
		reply := send(r)
		for _, e := range m.Empty {
			reply.Empty = reply.Empty || e.Route == r.Route && e.Status == reply.Status &&
				regexp.MustCompile(e.Body).MatchString(reply.Body)
		}
		return reply
	}
}

// ossRig is a rig with a self-hosted server, and that server.
func ossRig(t testing.TB, provider, more string, o mem0.Options) (*rig, *mem0.OSS) {
	t.Helper()
	o.AdminKey = key
	server := mem0.New(o)
	return newRig(t, provider, more, server), server
}

func turn(id string, texts ...string) *abi.MemoryEvent {
	e := &abi.MemoryEvent{EventID: id, RunID: maria.RunID, UserID: maria.PersonaID, SessionID: "s3", TurnID: "t-" + id,
		Timestamp: "2025-03-10T09:30:00Z"}
	for i, text := range texts {
		e.Messages = append(e.Messages, abi.Message{Role: []abi.Role{abi.RoleUser, abi.RoleAssistant}[i%2],
			Content: &text})
	}
	return e
}

func (r *rig) record(e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	r.t.Helper()
	return sdktest.Do(r.Host, abi.OpRecordEvent, maria, withBackend(recordEvent), e)
}

func (r *rig) mustRecord(e *abi.MemoryEvent) *abi.WriteReceipt {
	r.t.Helper()
	receipt, err := r.record(e)
	require.NoError(r.t, err)
	return receipt
}

func (r *rig) retrieve(q *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	r.t.Helper()
	q.Scope, q.SessionID = maria, "s9"
	return sdktest.Do(r.Host, abi.OpRetrieve, maria, withBackend(retrieve), q)
}

func (r *rig) mustRetrieve(q *abi.RetrieveRequest) *abi.RetrieveResult {
	r.t.Helper()
	result, err := r.retrieve(q)
	require.NoError(r.t, err)
	return result
}

// findEvent calls find_event, ms after the event was sent.
func (r *rig) findEvent(id string, ms string, markers ...string) *abi.FindEventAnswer {
	r.t.Helper()
	answer, err := sdktest.Do(r.Host, abi.OpFindEvent, maria, withBackend(findEvent),
		&abi.FindEventRequest{EventID: id, Markers: markers, SentAt: ms})
	require.NoError(r.t, err)
	return answer
}

// Times of sending: the rigs' clock is 2026-07-01T12:00:00Z.
const (
	longAgo = "2026-07-01T10:00:00Z"
	justNow = "2026-07-01T11:59:59Z"
)

func (r *rig) setUp() *abi.SetupReceipt {
	r.t.Helper()
	receipt, err := sdktest.Do(r.Host, abi.OpSetupScope, maria, withBackend(setupScope), &abi.Empty{})
	require.NoError(r.t, err)
	return receipt
}

// lastBody is the body of the last request by a route, parsed.
func (r *rig) lastBody(route string) map[string]any {
	r.t.Helper()
	for i := len(r.Sent) - 1; i >= 0; i-- {
		if r.Sent[i].Route == route {
			var body map[string]any
			require.NoError(r.t, json.Unmarshal([]byte(r.Sent[i].Body), &body))
			return body
		}
	}
	r.t.Fatalf("nothing was sent by route %s", route)
	return nil
}

// routes returns the routes of the requests so far; the argument the argument forget empties the list.
func (r *rig) routes() string {
	var list []string
	for _, s := range r.Sent {
		list = append(list, s.Route)
	}
	return strings.Join(list, " ")
}

func (r *rig) forget() { r.Sent = nil }

func warns(t testing.TB, warnings []string, code string) {
	t.Helper()
	for _, w := range warnings {
		if strings.HasPrefix(w, code+": ") {
			return
		}
	}
	assert.Fail(t, "no warning "+code, "%q", warnings)
}

func texts(result *abi.RetrieveResult) []string {
	list := []string{}
	for _, e := range result.Evidence {
		list = append(list, e.Text)
	}
	return list
}

func text(s string) *string { return &s }
func count(n int64) *int64  { return &n }
