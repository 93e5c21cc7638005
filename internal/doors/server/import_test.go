package server_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/importing"
	"github.com/memhost/memhost/internal/doors/page"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

const importLine = `{"event_id": "e1", "run_id": "r", "user_id": "ann", "session_id": "s", "turn_id": "t", ` +
	`"timestamp": "2026-03-02T09:00:00Z", "messages": [{"role": "user", "content": "I moved to Lyon."}]}`

func withImporter(t *testing.T) func(o *server.Options) {
	i, err := importing.New(t.TempDir(), nil)
	require.NoError(t, err)
	return func(o *server.Options) { o.Importer = i }
}

// TestAFileIsRecordedAfterItsConfirmation goes the whole way, through the door alone.
func TestAFileIsRecordedAfterItsConfirmation(t *testing.T) {
	var mu sync.Mutex
	var recorded []string
	slot := &servertest.Slot{Answer: func(_ context.Context, op string, request any) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		recorded = append(recorded, op+" "+request.(*abi.MemoryEvent).EventID)
		return &abi.WriteReceipt{EventID: "e1", Status: abi.StatusCommitted}, nil
	}}
	s, _ := newServer(t, slot, withImporter(t))
	var check wire.ImportCheck
	decodeAnswer(t, ask(s.Handler(), "POST", wire.PathImport, importLine), &check)
	require.Equal(t, int64(1), check.Events)
	assert.Equal(t, []abi.MemoryScope{{RunID: "r", PersonaID: "ann"}}, check.Scopes)
	assert.Empty(t, recorded, "nothing before the confirmation")

	var progress wire.ImportProgress
	decodeAnswer(t, ask(s.Handler(), "POST", wire.PathImportConfirm, `{"confirmation": "`+check.Confirmation+`"}`), &progress)
	require.Eventually(t, func() bool {
		decodeAnswer(t, ask(s.Handler(), "GET", wire.PathImport, ""), &progress)
		return progress.State == wire.ImportDone
	}, importWithin, importPoll)
	assert.Equal(t, int64(1), progress.Recorded)
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, []string{"record_event e1"}, recorded)
}

// TestWhoMayNotImport: a form on another page, a file above the limit, a scope that the slot does not serve, a
// read-only page, and a scoped token.
func TestWhoMayNotImport(t *testing.T) {
	upload := func(body string, headers ...string) func(*testing.T, *server.Server) *httptest.ResponseRecorder {
		return func(_ *testing.T, s *server.Server) *httptest.ResponseRecorder {
			return ask(s.Handler(), "POST", wire.PathImport, body, headers...)
		}
	}
	reading := page.New(page.Read, true)
	for _, c := range []struct {
		name   string
		change func(o *server.Options)
		ask    func(t *testing.T, s *server.Server) *httptest.ResponseRecorder
		status int
	}{
		{"a form", nil, upload(importLine, "Content-Type", "", "Content-Type", "multipart/form-data; boundary=x"), 415},
		{"a plain text", nil, upload(importLine, "Content-Type", "", "Content-Type", "text/plain"), 415},
		{"another origin", nil, upload(importLine, "Origin", "https://evil.example"), 403},
		{"another host", nil, upload(importLine, "Host", "evil.example"), 403},
		{"a file beyond the limit", nil, func(*testing.T, *server.Server) *httptest.ResponseRecorder { return nil }, 413},
		{"a slot without an importer", func(o *server.Options) { o.Importer = nil }, upload(importLine), 501},
		{"a scope that is not served", func(o *server.Options) {
			o.Scopes.Only = &abi.MemoryScope{RunID: "r", PersonaID: "bob"}
		}, func(t *testing.T, s *server.Server) *httptest.ResponseRecorder {
			return ask(s.Handler(), "POST", wire.PathImportConfirm,
				`{"confirmation": "x", "scope": {"run_id": "r", "persona_id": "ann"}}`)
		}, 403},
		{"a page that reads only", func(o *server.Options) { o.Token, o.Page = "0123456789abcdef", reading },
			func(t *testing.T, s *server.Server) *httptest.ResponseRecorder {
				_, code, _ := strings.Cut(reading.Link("http://127.0.0.1:7077"), "code=")
				w := ask(s.Handler(), "POST", wire.PathPage+"session", `{"code": "`+code+`"}`)
				key := strings.Split(w.Body.String(), `"`)[3]
				return ask(s.Handler(), "POST", wire.PathImport, importLine, "Authorization", "Bearer "+key)
			}, 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			change := []func(o *server.Options){withImporter(t)}
			if c.change != nil {
				change = append(change, c.change)
			}
			s, _ := newServer(t, untouchable(t), change...)
			w := c.ask(t, s)
			if w == nil {
				w = askFrom(s.Handler(), "POST", wire.PathImport, io.LimitReader(spaces{}, wire.MaxImport+1))
			}
			assert.Equal(t, c.status, w.Code, w.Body.String())
		})
	}
}

// TestOtherScopesOfAFileAreNotRecorded: if one scope is served, events of others fail, whatever the confirmation says.
func TestOtherScopesOfAFileAreNotRecorded(t *testing.T) {
	s, _ := newServer(t, untouchable(t), withImporter(t), func(o *server.Options) {
		o.Scopes.Only = &abi.MemoryScope{RunID: "r", PersonaID: "bob"}
	})
	var check wire.ImportCheck
	decodeAnswer(t, ask(s.Handler(), "POST", wire.PathImport, importLine), &check)
	var progress wire.ImportProgress
	decodeAnswer(t, ask(s.Handler(), "POST", wire.PathImportConfirm, `{"confirmation": "`+check.Confirmation+`"}`), &progress)
	require.Eventually(t, func() bool {
		decodeAnswer(t, ask(s.Handler(), "GET", wire.PathImport, ""), &progress)
		return progress.State == wire.ImportStopped
	}, importWithin, importPoll)
	assert.Equal(t, int64(1), progress.Failed)
	assert.Zero(t, progress.Recorded)
}

// spaces is an endless file.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

const (
	importWithin = 30 * time.Second
	importPoll   = time.Millisecond
)

func decodeAnswer(t *testing.T, w *httptest.ResponseRecorder, to any) {
	t.Helper()
	require.Equal(t, 200, w.Code, w.Body.String())
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), to))
}
