//go:build load && unix

package loadtest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/client"
)

const (
	checkpoints = 20  // of the fill
	perPerson   = 50  // events of one person in a batch
	people      = 20  // in a batch
	constant    = 100 // people who get perPerson events at the start and no more
	asked       = 300 // retrievals at each checkpoint and group
)

// many is a run that fills a database.
type many struct {
	*load
	arm     *arm
	client  *client.Client
	rows    [][]string
	resides series
}

// TestMany records many events into a PostgreSQL database through one host. During the run it measures the host's
// memory, the tables, and response times for people whose own memory does not change; at the end, how long the host
// takes to restart. It fails if the host's memory grows.
//
// MANY_EVENTS is the number of events, LOAD_PERSONAS the number of people in them, LOAD_OUT the folder of the report.
func TestMany(t *testing.T) {
	l := &load{t: t, out: setting("LOAD_OUT", t.TempDir())}
	events, err := strconv.Atoi(setting("MANY_EVENTS", "1000000"))
	require.NoError(t, err, "MANY_EVENTS")
	l.personas, err = strconv.Atoi(setting("LOAD_PERSONAS", "10000"))
	require.NoError(t, err, "LOAD_PERSONAS")
	require.GreaterOrEqual(t, events, checkpoints*perPerson*people, "MANY_EVENTS")
	l.build()
	m := &many{load: l, arm: l.onDatabase("PostgreSQL", 1)}
	m.resides = series{name: "memory", share: 0.1, amount: 4}
	m.connect()
	for first := -constant; first < 0; first += people {
		m.record(first)
	}
	began, next := time.Now(), 0
	for sent := 0; sent < events; sent += perPerson * people {
		if sent >= next {
			next += events / checkpoints
			m.look(sent, time.Since(began))
		}
		m.record(sent / perPerson % l.personas)
	}
	m.look(events, time.Since(began))
	m.report(events)
	require.True(t, m.resides.flat(), "the host's memory is not flat: %.1f MiB", m.resides.thirds())
}

func (m *many) connect() {
	c, err := client.New(m.arm.hosts[0].url, "")
	require.NoError(m.t, err)
	m.client = c
}

// record sends events of some people, starting with the first-th one, in one batch.
func (m *many) record(first int) {
	batch := &abi.EventBatch{}
	for who := first; who < first+people; who++ {
		for range perPerson {
			e := m.arm.next(0)
			e.UserID = person(who)
			batch.Events = append(batch.Events, *e)
		}
	}
	receipts, err := m.client.RecordEvents(m.t.Context(), batch)
	require.NoError(m.t, err)
	for _, r := range receipts.Receipts {
		require.Nil(m.t, r.Error)
	}
}

// person is a person's name. Those below 0 get no events after the start.
func person(n int) string { return fmt.Sprint("persona ", n) }

// look adds a row to the report.
func (m *many) look(sent int, took time.Duration) {
	memory := m.arm.hosts[0].metrics(m.t)["process_resident_memory_bytes"] / (1 << 20)
	m.resides.samples = append(m.resides.samples, memory)
	d := askDatabase(m.t, m.arm.database)
	p50, p99 := m.ask(func(i int) int { return -constant + i%constant })
	grown, _ := m.ask(func(i int) int { return i * 37 % m.personas })
	each := (d.bytes - float64(m.arm.before)) / float64(m.arm.events.Load())
	row := []string{strconv.Itoa(sent), fmt.Sprintf("%.0f", took.Seconds()), fmt.Sprintf("%.0f", memory),
		fmt.Sprintf("%.0f", d.bytes/(1<<20)), fmt.Sprintf("%.0f", each),
		fmt.Sprintf("%.1f", 100*d.dead/max(1, d.dead+d.live)), fmt.Sprintf("%.2f", p50), fmt.Sprintf("%.2f", p99),
		fmt.Sprintf("%.2f", grown)}
	m.rows = append(m.rows, row)
	m.t.Log(row)
}

// ask makes retrievals one after another, and returns p50 and p99 in ms.
func (m *many) ask(who func(i int) int) (p50, p99 float64) {
	budget := int64(1000)
	var took []float64
	for i := range asked {
		began := time.Now()
		_, err := m.client.Retrieve(m.t.Context(), &abi.RetrieveRequest{Query: "tea?", SessionID: "s",
			Scope: abi.MemoryScope{RunID: "load", PersonaID: person(who(i))}, Budget: abi.ContextBudget{MaxTokens: &budget}})
		require.NoError(m.t, err)
		took = append(took, ms(time.Since(began)))
	}
	slices.Sort(took)
	return took[asked/2], took[asked*99/100]
}

// report writes many.md.
func (m *many) report(events int) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d events of %d people, recorded by one host over PostgreSQL, in batches of %d people with %d "+
		"events each. Retrievals are one after another; constant are %d people with %d events each, grown are the "+
		"others.\n\n", events, m.personas, people, perPerson, constant, perPerson)
	b.WriteString("| events | after s | memory of the host, MiB | tables, MiB | bytes an event | dead rows, % | " +
		"retrieve constant, p50 ms | p99 ms | grown, p50 ms |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, row := range m.rows {
		b.WriteString("| ")
		for i, cell := range row {
			if i > 0 {
				b.WriteString(" | ")
			}
			b.WriteString(cell)
		}
		b.WriteString(" |\n")
	}
	h := m.arm.hosts[0]
	require.NoError(m.t, h.Process.Signal(syscall.SIGTERM))
	_ = h.Wait()
	began := time.Now()
	again := m.open("again", filepath.Dir(h.Args[3])) // --config FILE
	response, err := http.Get(again.hosts[0].url + "/readyz")
	require.NoError(m.t, err)
	require.NoError(m.t, response.Body.Close())
	require.Equal(m.t, http.StatusOK, response.StatusCode)
	fmt.Fprintf(&b, "\nThe host was stopped and started again: ready after %.1f s.\n\n", time.Since(began).Seconds())
	b.WriteString("| table | MiB, indexes included | rows | dead rows | vacuumed |\n|---|---|---|---|---|\n")
	conn, err := pgconn.Connect(m.t.Context(), m.arm.database)
	require.NoError(m.t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(m.t.Context())) }()
	results, err := conn.Exec(m.t.Context(), `SELECT relname, pg_total_relation_size(relid) >> 20, n_live_tup, n_dead_tup,
		autovacuum_count FROM pg_stat_user_tables WHERE schemaname = 'memhost' ORDER BY 2 DESC, 1`).ReadAll()
	require.NoError(m.t, err)
	for _, row := range results[0].Rows {
		fmt.Fprintf(&b, "| %s |\n", bytes.Join(row, []byte(" | ")))
	}
	m.t.Logf("%s", b.Bytes())
	require.NoError(m.t, os.WriteFile(filepath.Join(m.out, "many.md"), b.Bytes(), 0o644))
}
