package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/conformance"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/internal/test/pages"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
)

// module is the built module: make plugins.
func module(t testing.TB) []byte {
	t.Helper()
	m, found := plugins.Find("memos")
	require.True(t, found, "the module is not built")
	return m.Wasm
}

func TestMain(m *testing.M) { testcache.Run(m) }

// provider is the module with a server behind it.
func provider(t testing.TB, url, fields string) host.ProviderConfig {
	t.Helper()
	return host.ProviderConfig{Name: "memos", Module: module(t), Source: "builtin",
		Block: abi.Raw(`{"url":"` + url + `",` + fields + `}`)}
}

// TestConformance runs the kit on each write profile and flavour.
func TestConformance(t *testing.T) {
	for _, tt := range []struct {
		name, fields string
		flavour      memos.Flavour
		long         bool
	}{
		{"neo4j sync/fast", `"graph_store":"neo4j","add_mode":"sync/fast"`, memos.Neo4j, false},
		{"neo4j sync/fine", `"graph_store":"neo4j","add_mode":"sync/fine"`, memos.Neo4j, true},
		{"neo4j async", `"graph_store":"neo4j","add_mode":"async"`, memos.Neo4j, true},
		{"neo4j-community sync/fast", `"add_mode":"sync/fast"`, memos.Community, true},
		{"neo4j-community sync/fine", `"add_mode":"sync/fine"`, memos.Community, true},
		{"neo4j-community async", `"add_mode":"async"`, memos.Community, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.long {
				brief.Skip(t)
			}
			if tt.name != "neo4j sync/fast" {
				brief.Leave(t)
			}
			server := httptest.NewServer(memos.New(memos.Options{Flavour: tt.flavour,
				TaskDelay: 20 * time.Millisecond}))
			t.Cleanup(server.Close)
			conformance.TestWith(t, conformance.Target{Provider: provider(t, server.URL, tt.fields),
				ErrorBodies: map[string]string{"": `{"code":500,"message":"boom","data":null}`}},
				conformance.Options{CacheDir: testcache.Dir()})
		})
	}
}

// slotOn opens a slot on a server.
func slotOn(t *testing.T, config host.ProviderConfig) *host.Slot {
	t.Helper()
	return slotWithin(t, config, host.Limits{})
}

func slotWithin(t *testing.T, config host.ProviderConfig, limits host.Limits) *host.Slot {
	t.Helper()
	h, err := host.New(t.Context(), host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir(),
		Durability: "process", Limits: limits})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close(context.Background())) })
	s, err := h.Open(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	return s
}

// TestAnInventoryNeedsNoMoreMemoryThanAPage: its pages, which contain vectors, have twice the size of the guest's
// memory.
func TestAnInventoryNeedsNoMoreMemoryThanAPage(t *testing.T) {
	const rows, memory = 4000, 16 << 20
	vector := strings.Repeat("0.12345678,", 800) + "1"
	fake := memos.New(memos.Options{Flavour: memos.Community})
	server := pages.Serve(t, fake, func(r *http.Request, body []byte) string {
		var asked struct {
			Cube string `json:"mem_cube_id"`
			Page int    `json:"page"`
			Size int    `json:"page_size"`
		}
		if r.URL.Path != "/product/get_memory" || json.Unmarshal(body, &asked) != nil || asked.Size != inventorySize {
			return ""
		}
		var items []string
		for i := range asked.Size {
			items = append(items, fmt.Sprintf(`{"id":"m-%d","memory":"tea","metadata":{"memory_type":"LongTermMemory","status":"activated","user_id":%q,"embedding":[%s]}}`,
				asked.Page*asked.Size+i, asked.Cube, vector))
		}
		return fmt.Sprintf(`{"code":200,"message":"","data":{"text_mem":[{"cube_id":%q,"total_nodes":%d,"memories":[%s]}]}}`,
			asked.Cube, rows, strings.Join(items, ","))
	})
	s := slotWithin(t, provider(t, server.URL, `"add_mode":"sync/fast"`), host.Limits{MemoryBytes: memory})
	_, err := s.RecordEvent(t.Context(), turnEvent("e-1", "Tea at nine."))
	require.NoError(t, err)
	inventory, err := s.Inventory(t.Context(), &abi.InventoryRequest{Scope: retrieveRequest("").Scope})
	require.NoError(t, err)
	assert.True(t, inventory.Complete)
	require.Len(t, inventory.Kinds, 1)
	assert.EqualValues(t, rows, inventory.Kinds[0].Count)
	server.MoreThan(t, memory)
}

// TestRawEqualsADirectCall runs 50 queries through the slot, and sends each request that the server saw once more
// directly: the results are equal, item by item.
func TestRawEqualsADirectCall(t *testing.T) {
	for store, flavour := range flavours {
		t.Run(store, func(t *testing.T) {
			fake := memos.New(memos.Options{Flavour: flavour})
			server := httptest.NewServer(fake)
			t.Cleanup(server.Close)
			s := slotOn(t, provider(t, server.URL, `"add_mode":"sync/fine","graph_store":"`+store+`"`))
			things := []string{"tea", "jazz", "chess", "the aisle seat", "Lyon", "a red bicycle", "thunder", "old maps",
				"the violin", "green curry"}
			for i, thing := range things {
				_, err := s.RecordEvent(t.Context(),
					withLabels(turnEvent("e-"+strconv.Itoa(i), "I prefer "+thing+". I talk about "+thing+" in Corsica."),
						"likes", "", ""))
				require.NoError(t, err)
			}
			differing := 0
			for i := range 50 {
				fake.Requests()
				r := retrieveRequest("What does the user say about " + things[i%len(things)] + "?")
				if i%2 == 1 {
					r.Scenario = "likes"
				}
				if most := int64(i % 9); most > 0 {
					r.Budget.MaxItems = &most
				}
				result, err := s.Retrieve(t.Context(), r)
				require.NoError(t, err)
				sent := fake.Requests()
				require.Len(t, sent, 1)
				direct, err := server.Client().Post(server.URL+sent[0].Path, "application/json",
					bytes.NewReader(sent[0].Body))
				require.NoError(t, err)
				body, err := io.ReadAll(direct.Body)
				require.NoError(t, err)
				require.NoError(t, direct.Body.Close())
				if !assert.JSONEq(t, string(body), string(result.Raw.Calls[0].Body)) {
					differing++
				}
				require.NotEmpty(t, result.Evidence)
			}
			t.Logf("50 queries, %d differing", differing)
		})
	}
}

func TestTheWallStopsWhatIsNoFastSearch(t *testing.T) {
	for _, mode := range []string{searchFast, searchFine, searchMixture} {
		t.Run(mode, func(t *testing.T) {
			fake := memos.New(memos.Options{})
			server := httptest.NewServer(fake)
			t.Cleanup(server.Close)
			s := slotOn(t, provider(t, server.URL,
				`"add_mode":"sync/fast","graph_store":"neo4j","search_mode":"`+mode+`"`))
			_, err := s.RecordEvent(t.Context(), turnEvent("e-1", "I like jazz."))
			require.NoError(t, err)
			_, err = s.SetMode(t.Context(), &abi.AdapterMode{ReadOnly: true, Reason: "test"})
			require.NoError(t, err)
			fake.Requests()
			result, err := s.Retrieve(t.Context(), retrieveRequest("jazz"))
			if mode == searchFast {
				require.NoError(t, err)
				assert.Contains(t, result.FormattedContext, "jazz")
				return
			}
			assert.Equal(t, abi.CodeReadOnly, abi.CodeOf(err))
			assert.Empty(t, fake.Requests(), "nothing left the host")
		})
	}
}

func TestAKeyReachesTheProxyAndNothingElse(t *testing.T) {
	fake := memos.New(memos.Options{})
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Authorization"))
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	config := provider(t, server.URL, `"add_mode":"sync/fast","api_key":{"secret":"proxy"}`)
	config.Secrets = map[string]host.Secret{"proxy": {Origin: server.URL, Value: func() (string, error) {
		return "s3cr3t-of-the-proxy", nil
	}}}
	s := slotOn(t, config)
	receipt, err := s.RecordEvent(t.Context(), turnEvent("e-1", "I like jazz."))
	require.NoError(t, err)
	for _, key := range keys {
		assert.Equal(t, "Bearer s3cr3t-of-the-proxy", key)
	}
	assert.NotEmpty(t, keys)
	assert.NotContains(t, string(abi.Marshal(receipt)), "s3cr3t")
	for _, r := range fake.Requests() {
		assert.NotContains(t, string(r.Body), "s3cr3t")
	}
}

func TestAFilterOfTheWrongShapeIsNeverSent(t *testing.T) {
	fake := memos.New(memos.Options{})
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	s := slotOn(t, provider(t, server.URL, `"add_mode":"sync/fast"`))
	fake.Requests()
	_, err := s.Retrieve(t.Context(), &abi.RetrieveRequest{Query: "q", Scope: scope, SessionID: "s",
		Filters: map[string]abi.Raw{"x": abi.Raw(`{"y":1}`)}})
	assert.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err))
	assert.Empty(t, fake.Requests(), "a filter of the wrong shape is never sent")
}
