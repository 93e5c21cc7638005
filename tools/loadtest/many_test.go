//go:build load && unix

package loadtest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/client"
)

const (
	checkpoints = 20  // of the fill
	perPerson   = 50  // events of one person in a batch
	people      = 20  // in a batch
	batches     = 4   // sent at once: a host mostly waits for the disk while it records one
	constant    = 100 // people who get perPerson events at the start and no more
	asked       = 300 // requests of a kind at each checkpoint
	textBytes   = 150 // of an event

	step = perPerson * people * batches // events that are sent at once
)

// many is a run that fills a store.
type many struct {
	*load
	arm     *arm
	client  *client.Client
	rows    [][]string
	probes  []probe
	resides series
}

// TestMany records many events through one host into a file or a PostgreSQL database. During the run it measures the
// host's memory, the size of the store, and response times for people whose own memory does not change. After a tenth
// of the events and at the end it restarts the host, and measures records, listings and forgetting. It fails if the
// host's memory grows.
//
// MANY_EVENTS is the number of events, MANY_STORE is postgres or file, LOAD_PERSONAS the number of people in the events,
// LOAD_OUT the folder of the report. With MANY_FOLDER a file store stays in this folder, and a later run with more
// events, or after MANY_TIME, continues with it.
func TestMany(t *testing.T) {
	l := &load{t: t, out: setting("LOAD_OUT", t.TempDir())}
	events, err := strconv.Atoi(setting("MANY_EVENTS", "1000000"))
	require.NoError(t, err, "MANY_EVENTS")
	l.personas, err = strconv.Atoi(setting("LOAD_PERSONAS", "10000"))
	require.NoError(t, err, "LOAD_PERSONAS")
	require.GreaterOrEqual(t, events, checkpoints*step, "MANY_EVENTS")
	l.build()
	m := &many{load: l}
	store := setting("MANY_STORE", "postgres")
	switch store {
	case "postgres":
		m.arm = l.onDatabase("PostgreSQL", 1)
	case "file":
		m.arm = l.onFile("file", "power", setting("MANY_FOLDER", t.TempDir()))
	default:
		t.Fatalf("MANY_STORE is %q, want postgres or file", store)
	}
	m.resides = series{name: "memory", share: 0.1, amount: 4}
	m.connect()
	first := m.done()
	if first == 0 {
		m.record(-constant, constant)
	}
	limit, err := time.ParseDuration(setting("MANY_TIME", "24h"))
	require.NoError(t, err, "MANY_TIME")
	began, next := time.Now(), first
	for sent := first; sent < events; sent += step {
		if sent >= next {
			next += events / checkpoints
			m.addRow(sent, time.Since(began))
		}
		if sent <= events/10 && events/10 < sent+step {
			m.probe(sent)
		}
		if time.Since(began) > limit {
			m.note(sent)
			t.Skipf("%d events are recorded; run it again to go on", sent)
		}
		m.record(sent/perPerson%l.personas, people*batches)
	}
	m.addRow(events, time.Since(began))
	m.note(events)
	m.probe(events)
	m.report(events)
	require.True(t, m.resides.flat(), "the host's memory is not flat: %.1f MiB", m.resides.thirds())
}

// counted is the file in MANY_FOLDER that says how many events were sent.
const counted = "sent"

// done returns how many events an earlier run sent.
func (m *many) done() (sent int) {
	text, err := os.ReadFile(filepath.Join(os.Getenv("MANY_FOLDER"), counted))
	if err == nil {
		sent, err = strconv.Atoi(string(text))
		require.NoError(m.t, err)
	}
	m.arm.events.Store(2 * int64(sent)) // probes have used numbers, too
	return sent
}

// note writes how many events were sent.
func (m *many) note(sent int) {
	if folder := os.Getenv("MANY_FOLDER"); folder != "" {
		require.NoError(m.t, os.WriteFile(filepath.Join(folder, counted), []byte(strconv.Itoa(sent)), 0o600))
	}
}

func (m *many) connect() {
	c, err := client.New(m.arm.hosts[0].url, "")
	require.NoError(m.t, err)
	m.client = c
}

// words are the vocabulary of the events' texts.
var words = strings.Fields(`I you we they had would like to go see buy cook read write hear about the a my your our old
	new small green quiet tea coffee bread garden mountain river train bicycle guitar letter book doctor sister brother
	neighbour friend office school summer winter morning evening yesterday tomorrow Lisbon Vienna Oslo because and but
	when after before with without never always again slowly together`)

// event is a new event of a person, with a text of textBytes.
func (m *many) event(who int) *abi.MemoryEvent {
	e := m.arm.next(0)
	e.UserID = person(who)
	e.SessionID = fmt.Sprint("s ", 1+m.arm.events.Load()/25%2)
	draw := rand.New(rand.NewPCG(uint64(m.arm.events.Load()), 1))
	text := fmt.Sprintf("Turn %d:", m.arm.events.Load())
	for len(text) < textBytes {
		text += " " + words[draw.IntN(len(words))]
	}
	text = text[:textBytes]
	e.Messages[0].Content = &text
	return e
}

// record sends events of some people, starting with the first-th one: a batch for each 20 people, all batches at once.
func (m *many) record(first, count int) {
	var sent sync.WaitGroup
	for ; count > 0; first, count = first+people, count-people {
		batch := &abi.EventBatch{}
		for who := first; who < first+people; who++ {
			for range perPerson {
				batch.Events = append(batch.Events, *m.event(who))
			}
		}
		sent.Go(func() {
			receipts, err := m.client.RecordEvents(m.t.Context(), batch)
			if !assert.NoError(m.t, err) {
				return
			}
			for _, r := range receipts.Receipts {
				assert.Nil(m.t, r.Error)
			}
		})
	}
	sent.Wait()
	require.False(m.t, m.t.Failed())
}

// person is a person's name. Those below 0 get no events after the start.
func person(n int) string { return fmt.Sprint("persona ", n) }

func scopeOf(who int) abi.MemoryScope { return abi.MemoryScope{RunID: "load", PersonaID: person(who)} }

// addRow adds a row to the report.
func (m *many) addRow(sent int, took time.Duration) {
	memory := float64(m.arm.hosts[0].status("RssAnon:")) / (1 << 20) // the mapped pages of a file do not count
	m.resides.samples = append(m.resides.samples, memory)
	stored := m.arm.stored()
	constants := m.times(asked, func(i int) error { return m.retrieve(-constant + i%constant) })
	grown := m.times(asked, func(i int) error { return m.retrieve(i * 37 % m.personas) })
	row := []string{strconv.Itoa(sent), fmt.Sprintf("%.0f", took.Seconds()), fmt.Sprintf("%.0f", memory),
		fmt.Sprintf("%d", stored>>20), fmt.Sprintf("%.0f", float64(stored)/float64(sent+constant*perPerson)),
		fmt.Sprintf("%.2f", constants[0]), fmt.Sprintf("%.2f", constants[1]), fmt.Sprintf("%.2f", grown[0])}
	m.rows = append(m.rows, row)
	m.t.Log(row)
}

// times calls do several times, one after another, and returns p50 and p99 in ms.
func (m *many) times(n int, do func(i int) error) [2]float64 {
	var took []float64
	for i := range n {
		began := time.Now()
		require.NoError(m.t, do(i))
		took = append(took, ms(time.Since(began)))
	}
	slices.Sort(took)
	return [2]float64{took[n/2], took[n*99/100]}
}

func (m *many) retrieve(who int) error {
	budget := int64(1000)
	_, err := m.client.Retrieve(m.t.Context(), &abi.RetrieveRequest{Query: "tea?", SessionID: "s", Scope: scopeOf(who),
		Budget: abi.ContextBudget{MaxTokens: &budget}})
	return err
}

// probe is what single requests cost at some number of events, in ms: p50 and p99.
type probe struct {
	events int
	of     map[string][2]float64
}

// probed are the rows of the report about probes, in order.
var probed = []string{"start after a clean end", "start after kill -9", "record", "retrieve", "list 100 scopes",
	"list 100 events of a person", "forget one event", "forget one session of 25 events", "erase one person"}

// probe restarts the host, after a clean end and after a kill, and times single requests.
func (m *many) probe(events int) {
	p := probe{events, map[string][2]float64{}}
	for i, end := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		h := m.arm.hosts[0]
		require.NoError(m.t, h.Process.Signal(end))
		_ = h.Wait()
		began := time.Now()
		m.arm.hosts = m.open("again", filepath.Dir(h.Args[3])).hosts // --config FILE
		response, err := http.Get(m.arm.hosts[0].url + "/readyz")
		require.NoError(m.t, err)
		require.NoError(m.t, response.Body.Close())
		require.Equal(m.t, http.StatusOK, response.StatusCode)
		p.of[probed[i]] = [2]float64{ms(time.Since(began)), ms(time.Since(began))}
		m.connect()
	}
	do := func(name string, n int, do func(i int) error) { p.of[name] = m.times(n, do) }
	ctx := m.t.Context()
	known := min(m.personas, events/perPerson)
	spread := func(i int) int { return (i*7919 + 13 + events) % known }
	do("record", asked, func(i int) error {
		_, err := m.client.RecordEvent(ctx, m.event(-constant-1-i))
		return err
	})
	do("record", asked, func(i int) error { // now the slot knows these people
		_, err := m.client.RecordEvent(ctx, m.event(-constant-1-i))
		return err
	})
	do("retrieve", asked, func(i int) error { return m.retrieve(spread(i)) })
	do("list 100 scopes", 20, func(int) error {
		_, err := m.client.ListScopes(ctx, report.ScopeQuery{Limit: 100})
		return err
	})
	var listed *report.EventPage
	do("list 100 events of a person", 20, func(i int) (err error) {
		listed, err = m.client.ListEvents(ctx, report.EventQuery{Scope: scopeOf(spread(i)), Limit: 100})
		return err
	})
	require.NotEmpty(m.t, listed.Events)
	do("forget one event", 5, func(i int) error {
		page, err := m.client.ListEvents(ctx, report.EventQuery{Scope: scopeOf(spread(i)), Limit: 1})
		if err != nil {
			return err
		}
		receipt, err := m.client.Forget(ctx, &abi.ForgetRequest{Scope: scopeOf(spread(i)),
			EventIDs: []string{page.Events[0].EventID}})
		if err == nil {
			require.Equal(m.t, abi.ForgetDone, receipt.Status)
		}
		return err
	})
	do("forget one session of 25 events", 5, func(i int) error {
		receipt, err := m.client.Forget(ctx, &abi.ForgetRequest{Scope: scopeOf(spread(i)), SessionID: "s 1"})
		if err == nil {
			require.Equal(m.t, abi.ForgetDone, receipt.Status)
		}
		return err
	})
	do("erase one person", 3, func(i int) error {
		receipt, err := m.client.ErasePersona(ctx, &report.PersonaRequest{RunID: "load", PersonaID: person(spread(i))})
		if err == nil {
			require.Equal(m.t, abi.ForgetDone, receipt.Status, "%v", receipt.MayRemain)
		}
		return err
	})
	m.probes = append(m.probes, p)
	m.t.Logf("%+v", p)
}

// report writes many.md.
func (m *many) report(events int) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d events of %d people with %d bytes of text each, recorded by one host on %s, in %d batches at once of "+
		"%d people with %d events each. Requests are one after another; constant are %d people with %d events each, grown are "+
		"the others.\n\n", events, m.personas, textBytes, m.arm.name, batches, people, perPerson, constant, perPerson)
	b.WriteString("| events | after s | memory of the host, MiB | store, MiB | bytes an event | " +
		"retrieve constant, p50 ms | p99 ms | grown, p50 ms |\n|---|---|---|---|---|---|---|---|\n")
	for _, row := range m.rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	b.WriteString("\n| ms |")
	for _, p := range m.probes {
		fmt.Fprintf(&b, " %d events: p50 | p99 |", p.events)
	}
	b.WriteString(" p50, last ÷ first |\n|---|" + strings.Repeat("---|---|", len(m.probes)) + "---|\n")
	for _, name := range probed {
		fmt.Fprintf(&b, "| %s |", name)
		for _, p := range m.probes {
			fmt.Fprintf(&b, " %.2f | %.2f |", p.of[name][0], p.of[name][1])
		}
		fmt.Fprintf(&b, " %.2f |\n", m.probes[len(m.probes)-1].of[name][0]/m.probes[0].of[name][0])
	}
	if m.arm.database != "" {
		m.tables(&b)
	}
	m.t.Logf("%s", b.Bytes())
	require.NoError(m.t, os.WriteFile(filepath.Join(m.out, "many.md"), b.Bytes(), 0o644))
}

// tables lists the database's tables.
func (m *many) tables(b *bytes.Buffer) {
	b.WriteString("\n| table | MiB, indexes included | rows | dead rows | vacuumed |\n|---|---|---|---|---|\n")
	conn, err := pgconn.Connect(m.t.Context(), m.arm.database)
	require.NoError(m.t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(m.t.Context())) }()
	results, err := conn.Exec(m.t.Context(), `SELECT relname, pg_total_relation_size(relid) >> 20, n_live_tup, n_dead_tup,
		autovacuum_count FROM pg_stat_user_tables WHERE schemaname = 'memhost' ORDER BY 2 DESC, 1`).ReadAll()
	require.NoError(m.t, err)
	for _, row := range results[0].Rows {
		fmt.Fprintf(b, "| %s |\n", bytes.Join(row, []byte(" | ")))
	}
}
