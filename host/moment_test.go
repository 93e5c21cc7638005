package host_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testenv/llm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestARetrieveSeesOneMomentOfAMemoryThatIsWritten: one writer and four readers on each local memory. A retrieval
// returns everything that was acknowledged before it started, and none fails. MEMHOST_MOMENT=60s runs each memory for
// that long.
func TestARetrieveSeesOneMomentOfAMemoryThatIsWritten(t *testing.T) {
	brief.Leave(t)
	lasts := time.Second
	if text := os.Getenv("MEMHOST_MOMENT"); text != "" {
		var err error
		lasts, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	stub := httptest.NewServer(llm.New(llm.Options{}))
	t.Cleanup(stub.Close)
	model := `"llm":{"base_url":"` + stub.URL + `/v1","model":"stub"}`
	scope := abi.MemoryScope{RunID: "r", PersonaID: "p"}
	turn := func(s *host.Slot, i int) error {
		at := time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC).Format(time.RFC3339)
		_, err := s.RecordEvent(t.Context(), eventAt(fmt.Sprintf("e%d", i), at,
			fmt.Sprintf("My cat is called Zorvex%d.", i)))
		return err
	}
	fact := func(i int) string { return fmt.Sprintf("Zorvex%d.", i) }
	for _, memory := range []struct {
		name, provider, block string
		write                 func(s *host.Slot, i int) error
		want                  func(acknowledged int) string
	}{
		{"full_history", "full_history", `{"max_tokens":2000}`, turn, fact},
		{"bm25", "bm25", `{"max_items":20}`, turn, fact},
		{"rolling_summary", "rolling_summary", `{` + model +
			`,"include_tail":true,"update_policy":"window","memory_window":20,"max_context_tokens":1000000}`, turn,
			fact},
		{"layered_memory", "layered_memory", `{` + model +
			`,"include_tail":true,"update_policy":"window","memory_window":20,"max_context_tokens":1000000}`, turn,
			fact},
		{"ledger_memory", "ledger_memory", `{"max_context_tokens":null}`, func(s *host.Slot, i int) error {
			params := map[string]abi.Raw{"subject": abi.Raw(`"user"`), "predicate": abi.Raw(`"lives in"`),
				"object": abi.Raw(strconv.Quote("Zorvex" + strconv.Itoa(i)))}
			name := "memory_update"
			if i == 0 {
				name = "memory_add"
			}
			r := &abi.NativeMutation{Scope: scope, Name: name, Params: params, Reason: "test"}
			_, err := s.NativeMutation(t.Context(), r)
			return err
		}, func(int) string { return "lives in" }},
	} {
		t.Run(memory.name, func(t *testing.T) {
			s := builtinSlot(t, memory.provider, memory.block)
			require.NoError(t, memory.write(s, 0))
			var acknowledged, retrieves, missing, failed atomic.Int64
			until := time.Now().Add(lasts)
			var all sync.WaitGroup
			all.Go(func() {
				for i := 1; time.Now().Before(until); i++ {
					if err := memory.write(s, i); !assert.NoError(t, err) {
						return
					}
					acknowledged.Store(int64(i))
				}
			})
			all.Go(func() { // a consolidation moves texts from one place in the state to another
				for time.Now().Before(until) {
					_, err := s.Readiness(t.Context(), &abi.ReadinessRequest{Scope: scope, TimeoutMS: 100})
					assert.NoError(t, err)
				}
			})
			for range 4 {
				all.Go(func() {
					for time.Now().Before(until) {
						want := memory.want(int(acknowledged.Load()))
						r, err := s.Retrieve(t.Context(),
							&abi.RetrieveRequest{Query: "What is my cat " + want + " called?",
								Scope: scope, SessionID: "s"})
						retrieves.Add(1)
						switch {
						case err != nil:
							failed.Add(1)
							t.Log(err)
						case !strings.Contains(r.FormattedContext, want):
							missing.Add(1)
						}
					}
				})
			}
			all.Wait()
			t.Logf("%d writes, %d retrieves: %d lack what was acknowledged, %d failed", acknowledged.Load(),
				retrieves.Load(), missing.Load(), failed.Load())
			assert.Zero(t, missing.Load())
			assert.Zero(t, failed.Load())
		})
	}
}

// TestAReadThatIsOvertakenTwiceTakesTheTurn: a write between two state reads makes the operation repeat, at most twice;
// then it takes the scope's lock, and the write waits.
func TestAReadThatIsOvertakenTwiceTakesTheTurn(t *testing.T) {
	server, _ := host.Backend(t)
	var s *host.Slot
	var calls int
	var written []error
	s = host.NetSlot(t, server.URL, host.Options{Intercept: func(ctx context.Context, _ host.NativeCall,
		next func(context.Context) (host.NativeAnswer, error)) (host.NativeAnswer, error) {
		calls++
		patience := time.Minute
		if calls == 4 {
			patience = 300 * time.Millisecond // this write waits for the scope's lock, which the read holds
		}
		soon, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		text := fmt.Sprintf("put k %d; put l %[1]d", calls)
		_, err := s.RecordEvent(soon, host.Event(fmt.Sprintf("e%d", calls), text))
		written = append(written, err)
		return next(ctx)
	}})
	host.RunCommands(t, s, "e", "put k 0; put l 0")
	said := host.Retrieved(t, s, "get k; http get; get l")
	assert.Equal(t, []string{"3", "3"}, []string{said[0], said[2]}, "both are of one commit")
	require.Equal(t, 4, calls, "the read ran, was repeated twice, and ran in the scope's turn")
	for _, err := range written[:3] {
		assert.NoError(t, err)
	}
	host.RequireCode(t, written[3], abi.CodeTimeout, "an earlier write of the same scope was still running")
}

// TestAReadIsNotRepeatedForAWriteBehindItsLastRead: a write after the last state read does not affect the result.
func TestAReadIsNotRepeatedForAWriteBehindItsLastRead(t *testing.T) {
	server, _ := host.Backend(t)
	var s *host.Slot
	var calls int
	s = host.NetSlot(t, server.URL, host.Options{Intercept: func(ctx context.Context, _ host.NativeCall,
		next func(context.Context) (host.NativeAnswer, error)) (host.NativeAnswer, error) {
		calls++
		host.RunCommands(t, s, fmt.Sprintf("e%d", calls), "put k 1")
		return next(ctx)
	}})
	host.RunCommands(t, s, "e", "put k 0; put l 0")
	said := host.Retrieved(t, s, "get k; get l; http get")
	assert.Equal(t, []string{"0", "0"}, said[:2])
	assert.Equal(t, 1, calls)
}
