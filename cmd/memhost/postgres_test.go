//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/pgserver"
)

// TestASlotInADatabaseIsKeptThere: two machines, each with its own data folder, share one database.
func TestASlotInADatabaseIsKeptThere(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	cache := cacheHome(t)
	machine := func() memhost {
		m := memhost{t, t.TempDir(), cache, ""}
		yaml := "memory: {condition: full_history, smoke: never}\nstore: {postgres: {url: \"" + server.URL + "\"}}\n"
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, "memhost.yaml"), []byte(yaml), 0o600))
		events := `{"event_id":"e1","run_id":"r","user_id":"u","session_id":"s","turn_id":"t",` +
			`"timestamp":"2026-01-01T09:00:00Z","messages":[{"role":"user","content":"I like oolong."}]}`
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, "turns.jsonl"), []byte(events+"\n"), 0o600))
		return m
	}
	first, second := machine(), machine()
	failure := func(m memhost, args ...string) string {
		out, code := m.run(append(args, "--json")...)
		require.NotZero(t, code)
		var answer struct {
			Error struct{ Message, Hint string }
		}
		require.NoError(t, json.Unmarshal([]byte(out), &answer), out)
		return answer.Error.Message + "; " + answer.Error.Hint
	}
	record := []string{"record", "turns.jsonl"}
	require.Contains(t, failure(first, record...), "has no tables of memhost; run: memhost cluster migrate")
	out, code := first.run("cluster", "migrate")
	require.Zero(t, code)
	require.Equal(t, "migrated: 00001_tables.sql\nmigrated: 00002_commit_numbers.sql\nmigrated: 00003_short_receipts.sql\n", out)
	out, code = second.run("cluster", "migrate")
	require.Zero(t, code)
	require.Equal(t, "the tables are up to date\n", out)

	_, code = first.run(record...)
	require.Zero(t, code)
	require.Contains(t, second.everything().FormattedContext, "oolong", "the other machine has it from the database")
	require.NoFileExists(t, filepath.Join(first.dir, "data", "state.db"))

	slot := first.serve()
	require.Contains(t, second.everything().FormattedContext, "oolong", "beside the slot that runs")
	require.Contains(t, first.everything().FormattedContext, "oolong", "through the slot that runs")
	require.Contains(t, failure(first, "run", "--listen", "127.0.0.1:0"), "give this host a folder of its own")
	other := second.serve()
	out, code = second.run("cluster", "status")
	require.Zero(t, code)
	require.Contains(t, out, "serves full_history, module ")
	require.Contains(t, out, "mode write, 0 scopes being written, 2 hosts\n")
	out, code = second.run("cluster", "status", "--server", other.url)
	require.Zero(t, code)
	require.Equal(t, 1, strings.Count(out, ", answered this\n"), out)
	require.Contains(t, out, "2 hosts\n")
	out, code = second.run("mode", "read-only", "--reason", "test")
	require.Zero(t, code, out)
	out, _ = first.run(append(record, "--json")...)
	require.Contains(t, out, "skipped_read_only")
	out, code = first.run("mode", "write", "--reason", "test")
	require.Zero(t, code, out)
	other.stop()
	slot.stop()
	require.Contains(t, second.everything().FormattedContext, "oolong", "nobody serves any more")

	out, code = first.run("forget", "--event", "e1", "--run", "r", "--user", "u", "--yes")
	require.Zero(t, code, out)
	require.Contains(t, out, "done\n")
	require.Contains(t, out, "  outside: the database's write-ahead log (WAL)")
	out, code = first.run("reset", "--run", "r", "--user", "u", "--yes")
	require.Zero(t, code, out)
	require.Contains(t, out, "  outside: the database's table and index files")
	out, code = first.run("forget", "--persona", "u", "--yes", "--json")
	require.Zero(t, code, out)
	var erased struct {
		MayRemain []string `json:"may_remain"`
		Outside   []string
	}
	require.NoError(t, json.Unmarshal([]byte(out), &erased), out)
	require.Empty(t, erased.MayRemain)
	require.Len(t, erased.Outside, 3)
}

// TestALossIsAccepted: the database is restored from a copy. The host rejects it, the operator accepts the loss and
// learns whose receipts are gone, and the host serves again.
func TestALossIsAccepted(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	m := memhost{t, t.TempDir(), cacheHome(t), ""}
	yaml := "memory: {condition: full_history, smoke: never}\nstore: {postgres: {url: \"" + server.URL + "\"}}\n"
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "memhost.yaml"), []byte(yaml), 0o600))
	record := func(id string) {
		event := `{"event_id":"` + id + `","run_id":"r","user_id":"u","session_id":"s","turn_id":"` + id +
			`","timestamp":"2026-01-01T09:00:00Z","messages":[{"role":"user","content":"` + id + `"}]}`
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, id+".jsonl"), []byte(event+"\n"), 0o600))
		out, code := m.run("record", id+".jsonl")
		require.Zero(t, code, out)
	}
	_, code := m.run("cluster", "migrate")
	require.Zero(t, code)
	out, code := m.run("cluster", "accept-loss", "--json")
	require.NotZero(t, code, "a folder that has seen nothing")
	require.Contains(t, out, "no host saw a database from this folder")
	record("kept")
	out, code = m.run("cluster", "accept-loss")
	require.Zero(t, code, out)
	require.Contains(t, out, "nothing was changed: the database, incarnation 1, ")
	server.Kill()
	restore := server.Copy()
	server.Run()
	record("gone")
	server.Kill()
	restore()
	server.Run()
	out, code = m.run("record", "gone.jsonl", "--json")
	require.NotZero(t, code)
	require.Contains(t, out, "has lost commits")
	require.Contains(t, out, "memhost cluster accept-loss")
	out, code = m.run("cluster", "accept-loss")
	require.Zero(t, code, out)
	require.Contains(t, out, "lost receipt: gone of r / u, ")
	require.NotContains(t, out, "kept")
	require.Contains(t, out, "incarnation 2 begins: 1 receipts known to ")
	out, code = m.run("cluster", "accept-loss")
	require.Zero(t, code, out)
	require.Contains(t, out, "lost receipt: gone of r / u, ")
	require.Contains(t, out, "nothing was changed: the database, incarnation 2, ")
	require.NotContains(t, m.everything().FormattedContext, "gone", "full_history keeps its state in the database")
	record("gone")
	require.Contains(t, m.everything().FormattedContext, "gone")
	out, code = m.run("cluster", "status")
	require.Zero(t, code, out)
	require.Contains(t, out, ", incarnation 2, ")
}

// TestADumpIsRestoredIntoAnotherDatabase: pg_dump and pg_restore. A host that has seen no more than the dump serves it, with
// every receipt; one that has seen a later commit refuses it until the loss is accepted.
func TestADumpIsRestoredIntoAnotherDatabase(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	m := memhost{t, t.TempDir(), cacheHome(t), plainProgram(t)}
	use := func(url string) {
		yaml := "memory: {condition: full_history, smoke: never}\nstore: {postgres: {url: \"" + url + "\"}}\n"
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, "memhost.yaml"), []byte(yaml), 0o600))
	}
	record := func(id string) (string, int) {
		event := `{"event_id":"` + id + `","run_id":"r","user_id":"u","session_id":"s","turn_id":"` + id +
			`","timestamp":"2026-01-01T09:00:00Z","messages":[{"role":"user","content":"said in ` + id + `"}]}`
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, id+".jsonl"), []byte(event+"\n"), 0o600))
		return m.run("record", id+".jsonl", "--json")
	}
	use(server.URL)
	_, code := m.run("cluster", "migrate")
	require.Zero(t, code)
	out, code := record("kept")
	require.Zero(t, code, out)
	restore := server.Dump("postgres")

	use(restore("moved"))
	require.Contains(t, m.everything().FormattedContext, "said in kept")
	out, code = record("kept")
	require.Zero(t, code, out)
	require.Contains(t, out, `"duplicates": 1`, "its receipt is there")
	out, code = record("later")
	require.Zero(t, code, out)
	slot := m.serve()
	require.Contains(t, m.everything().FormattedContext, "said in later")
	slot.stop()

	use(restore("older"))
	out, code = record("more")
	require.NotZero(t, code)
	require.Contains(t, out, "has lost commits")
	out, code = m.run("cluster", "accept-loss")
	require.Zero(t, code, out)
	require.Contains(t, out, "lost receipt: later of r / u, ")
	out, code = record("later")
	require.Zero(t, code, out)
	context := m.everything().FormattedContext
	require.Contains(t, context, "said in kept")
	require.Contains(t, context, "said in later")
}

// TestASlotMovesIntoADatabaseAndBack: events that were recorded before are duplicates afterwards, and the old store
// says where its content is now.
func TestASlotMovesIntoADatabaseAndBack(t *testing.T) {
	brief.Leave(t)
	server := pgserver.Start(t)
	m := memhost{t, t.TempDir(), cacheHome(t), ""}
	configure := func(store string) {
		yaml := "memory: {condition: full_history, smoke: never}\n" + store
		require.NoError(t, os.WriteFile(filepath.Join(m.dir, "memhost.yaml"), []byte(yaml), 0o600))
	}
	event := `{"event_id":"e1","run_id":"r","user_id":"u","session_id":"s","turn_id":"t",` +
		`"timestamp":"2026-01-01T09:00:00Z","messages":[{"role":"user","content":"I like oolong."}]}`
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "turns.jsonl"), []byte(event+"\n"), 0o600))
	again := func() {
		out, code := m.run("record", "turns.jsonl", "--json")
		require.Zero(t, code, out)
		require.Contains(t, out, "\"duplicates\": 1,")
		require.Contains(t, m.everything().FormattedContext, "oolong")
	}
	configure("")
	_, code := m.run("record", "turns.jsonl")
	require.Zero(t, code)
	configure("store: {postgres: {url: \"" + server.URL + "\"}}\n")
	_, code = m.run("cluster", "migrate")
	require.Zero(t, code)
	out, code := m.run("cluster", "import")
	require.Zero(t, code, out)
	require.Contains(t, out, "from data folder ")
	again()
	slot := m.serve()
	out, code = m.run("cluster", "export", "--to", filepath.Join(m.dir, "back"), "--json")
	require.NotZero(t, code, "a host serves")
	require.Contains(t, out, "belongs to another host")
	slot.stop()
	out, code = m.run("cluster", "export", "--to", "back")
	require.Zero(t, code, out)
	out, code = m.run("record", "turns.jsonl", "--json")
	require.NotZero(t, code)
	require.Contains(t, out, "its content was moved to data folder "+filepath.Join(m.dir, "back"))
	out, code = m.run("cluster", "status", "--json")
	require.NotZero(t, code, "no host can serve from it")
	require.Contains(t, out, "its content was moved to data folder ")
	configure("")
	out, code = m.run("record", "turns.jsonl", "--json")
	require.NotZero(t, code, "the folder of before")
	require.Contains(t, out, "its content was moved to database postgres at ")
	require.NoError(t, os.Rename(filepath.Join(m.dir, "data"), filepath.Join(m.dir, "left")))
	require.NoError(t, os.Rename(filepath.Join(m.dir, "back"), filepath.Join(m.dir, "data")))
	again()
}

// TestASlotAnswersAndEndsInTimeWhileTheDatabaseHangs: its server is suspended, as in a live migration or with a stuck
// disk.
func TestASlotAnswersAndEndsInTimeWhileTheDatabaseHangs(t *testing.T) {
	brief.Leave(t)
	const shutdown = 4 * time.Second
	server := pgserver.Start(t)
	m := memhost{t, t.TempDir(), cacheHome(t), ""}
	yaml := fmt.Sprintf("memory: {condition: full_history, smoke: never}\nserver: {shutdown_ms: %d}\n"+
		"store: {postgres: {url: %q}}\n", shutdown.Milliseconds(), server.URL)
	require.NoError(t, os.WriteFile(filepath.Join(m.dir, "memhost.yaml"), []byte(yaml), 0o600))
	_, code := m.run("cluster", "migrate")
	require.Zero(t, code)
	slot := m.serve()
	ask := func(route, body string) (status int, after time.Duration) {
		method, path, _ := strings.Cut(route, " ")
		request, err := http.NewRequest(method, slot.url+path, strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		began := time.Now()
		answer, err := (&http.Client{Timeout: 30 * time.Second}).Do(request)
		if !assert.NoError(t, err, route) {
			return 0, time.Since(began)
		}
		_, err = io.Copy(io.Discard, answer.Body)
		assert.NoError(t, errors.Join(err, answer.Body.Close()), route)
		return answer.StatusCode, time.Since(began)
	}
	const scope = `"scope":{"run_id":"r","persona_id":"u"}`
	const event = `{"event_id":"e1","run_id":"r","user_id":"u","session_id":"s","turn_id":"t",` +
		`"timestamp":"2026-01-01T09:00:00Z","messages":[{"role":"user","content":"I like oolong."}]}`
	// Calls for one scope run one at a time, so these are for several scopes.
	calls := map[string]string{"GET /readyz": "", "GET /healthz": "", "GET /metrics": "", "GET /v1/mode": "",
		"PUT /v1/mode": `{"read_only":true}`, "GET /v1/capabilities": "", "GET /v1/manifest": "", "GET /v1/health": "",
		"POST /v1/readiness": "{" + scope + "}", "POST /v1/retrieve": `{"query":"tea","session_id":"s",` + scope + "}",
		"POST /v1/events": event, "POST /v1/scopes/reset": `{"run_id":"r","persona_id":"another"}`,
		"GET /v1/scopes": "", "GET /v1/cluster": "", "GET /v1/archive": "", "GET /v1/shadows": "", "GET /v1/backfill": "", "GET /v1/modules": "",
		"POST /v1/archive/events": `{"events":[` + event + `]}`, "POST /v1/archive/page": "{}",
		"POST /v1/forget": `{"scope":{"run_id":"r","persona_id":"a third"},"event_ids":["e2"]}`}
	wrong := []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadRequest}
	for route, body := range calls {
		status, _ := ask(route, body)
		require.NotContains(t, wrong, status, route)
	}
	_, _ = ask("PUT /v1/mode", `{"read_only":false}`)
	server.Pause()
	t.Cleanup(server.Continue)

	var wg sync.WaitGroup
	for route, body := range calls {
		wg.Go(func() {
			status, after := ask(route, body)
			t.Logf("%s: %d after %s", route, status, after.Round(time.Millisecond))
			assert.Less(t, after, 9*time.Second, "%s: a read has 5 s", route)
		})
	}
	wg.Wait()
	status, after := ask("GET /readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Less(t, after, 5*time.Second)

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if answer, err := http.Get(slot.url + "/v1/health"); err == nil { // a call in progress
			_ = answer.Body.Close()
		}
	}()
	began := time.Now()
	require.NoError(t, slot.Process.Signal(syscall.SIGTERM))
	_ = slot.Wait()
	t.Logf("ended after %s", time.Since(began))
	require.Less(t, time.Since(began), shutdown+2*time.Second, "2 s for a machine that is busy")
	<-ended
}
