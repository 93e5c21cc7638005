package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testenv/llm"
	"github.com/memhost/memhost/plugins/conditions/internal/nanobot/nanobottest"
)

func TestMain(m *testing.M) { testcache.Run(m) }

func TestConformance(t *testing.T) {
	for name, block := range map[string]string{"relevant": `{}`, "time": `{"order":"time"}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			brief.Leave(t)
			conformance.TestWith(t, conformance.Target{Provider: nanobottest.ProviderConfig(t, "bm25", block)},
				conformance.Options{CacheDir: testcache.Dir()})
		})
	}
	t.Run("recall", func(t *testing.T) {
		t.Parallel()
		provider := nanobottest.ProviderConfig(t, "bm25", "{}")
		provider.Name = "recall"
		conformance.TestWith(t, conformance.Target{Provider: provider}, conformance.Options{CacheDir: testcache.Dir()})
	})
	for _, name := range []string{"hybrid", "recall"} {
		t.Run(name+" with an embedder", func(t *testing.T) {
			t.Parallel()
			if name == "recall" { // hybrid is the fast one
				brief.Leave(t)
			}
			conformance.TestWith(t, conformance.Target{Provider: withEmbedder(t, name, llm.New(llm.Options{Dimensions: 384}))},
				conformance.Options{CacheDir: testcache.Dir()})
		})
	}
}

// withEmbedder is a provider of the built module in front of a stub.
func withEmbedder(t testing.TB, name string, stub *llm.Server) host.ProviderConfig {
	t.Helper()
	server := httptest.NewServer(stub)
	t.Cleanup(server.Close)
	provider := nanobottest.ProviderConfig(t, "bm25", fmt.Sprintf(`{"embedder":{"base_url":"%s/v1","model":"stub","api_key":{"secret":"K"}}}`, server.URL))
	provider.Name = name
	provider.Secrets = map[string]host.Secret{"K": {Value: func() (string, error) { return "a-key-of-the-test", nil }, Origin: server.URL}}
	return provider
}

// TestHybridWithoutAnEmbedderIsNotOpened: the host says what is missing.
func TestHybridWithoutAnEmbedderIsNotOpened(t *testing.T) {
	provider := nanobottest.ProviderConfig(t, "bm25", "{}")
	provider.Name = "hybrid"
	h, err := host.New(t.Context(), host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close(context.Background())) })
	_, err = h.Open(t.Context(), provider)
	require.ErrorContains(t, err, "embedder is missing; hybrid ranks by words and by vectors")
}

// BenchmarkQuery runs ten-word queries on 100,000 messages of 5 to 40 words, with word frequencies as in natural
// language. Goal: p50 of at most 100 ms.
func BenchmarkQuery(b *testing.B) {
	const messages = 100_000
	s := nanobottest.Open(b, nanobottest.ProviderConfig(b, "bm25", `{}`))
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 5, 50_000)
	text := func(words int) string {
		var list []string
		for range words {
			list = append(list, fmt.Sprintf("w%d", zipf.Uint64()))
		}
		return strings.Join(list, " ")
	}
	for n := 0; n < messages; n += 500 {
		batch := new(abi.EventBatch)
		for i := range 100 {
			e := testEvent(fmt.Sprint("e", n, ".", i), n, text(5+random.IntN(36)), text(5+random.IntN(36)),
				text(5+random.IntN(36)),
				text(5+random.IntN(36)),
				text(5+random.IntN(36)))
			batch.Events = append(batch.Events, *e)
		}
		_, err := s.RecordEvents(context.Background(), batch)
		require.NoError(b, err)
	}
	b.Run("record", func(b *testing.B) {
		n := 0
		for b.Loop() {
			n++
			_, err := s.RecordEvent(context.Background(), testEvent(fmt.Sprint("r", n, ".", b.N), 1, text(20)))
			require.NoError(b, err)
		}
	})
	b.Run("query", func(b *testing.B) {
		var times []time.Duration
		most := int64(4000)
		for b.Loop() {
			began := time.Now()
			_, err := s.Retrieve(context.Background(),
				&abi.RetrieveRequest{Query: text(10), Scope: scope, SessionID: "s",
					Budget: abi.ContextBudget{MaxTokens: &most}})
			require.NoError(b, err)
			times = append(times, time.Since(began))
		}
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(times[len(times)*95/100].Microseconds())/1000, "p95-ms")
	})
}
