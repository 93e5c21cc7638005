package host_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/host/extism"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
	"github.com/stretchr/testify/require"
)

// recordCassette runs a script against a recording slot, and returns the cassette.
func recordCassette(t *testing.T, o host.Options, config host.ProviderConfig, script func(s *host.Slot)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.cassette")
	if o.DataDir == "" {
		o.DataDir = t.TempDir()
	}
	if o.Cassette == nil {
		o.Cassette = &host.CassetteOptions{}
	}
	o.CacheDir, o.Cassette.Path = testcache.Dir(), path
	o.Engines = []host.Engine{extism.Engine()}
	h, err := host.New(context.Background(), o)
	require.NoError(t, err)
	host.AddSlack(h)
	s, err := h.Open(context.Background(), config)
	require.NoError(t, err)
	script(s)
	require.NoError(t, s.Close(context.Background()))
	require.NoError(t, h.Close(context.Background()))
	return path
}

// replayOf replays a cassette against a module.
func replayOf(t *testing.T, path string, wasm []byte) *host.ReplayReport {
	t.Helper()
	r, err := host.Replay(context.Background(), host.ReplayOptions{Engines: []host.Engine{extism.Engine()}, Path: path,
		CacheDir: testcache.Dir(), Module: func(cassette.Load) ([]byte, error) { return wasm, nil }})
	require.NoError(t, err)
	return r
}

func requireSame(t *testing.T, path string, wasm []byte, operations int64) *host.ReplayReport {
	t.Helper()
	r := replayOf(t, path, wasm)
	if r.Difference != nil {
		t.Fatal(r.Difference.String())
	}
	require.Equal(t, operations, r.Operations)
	return r
}

func operationsOf(t *testing.T, path string) []*cassette.Operation {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	r, err := cassette.NewReader(path, f)
	require.NoError(t, err)
	var list []*cassette.Operation
	for {
		o, err := r.Next()
		if err == io.EOF {
			return list
		}
		require.NoError(t, err)
		list = append(list, o)
	}
}

func ok[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// countingBackend answers slowly, and never the same way twice.
func countingBackend(t *testing.T) *httptest.Server {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Count", fmt.Sprint(n.Add(1)))
		if strings.HasPrefix(r.URL.Path, "/items/") {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = fmt.Fprintf(w, "answer %d to %s %s, key %s", n.Load(), r.URL.Path, body, r.Header.Get("x-api-key"))
	}))
	t.Cleanup(s.Close)
	return s
}

func withBackend(url string) host.ProviderConfig {
	c := host.ProbeConfig(`{"url": "` + url + `", "api_key": {"secret": "key"}}`)
	c.Secrets = map[string]host.Secret{"key": {Origin: url, Value: func() (string, error) {
		return "sesame-open-1234", nil
	}}}
	return c
}

func TestReplayReproducesEveryAnswer(t *testing.T) {
	ctx := context.Background()
	t.Run("a guest with native calls, state, time and randomness, and no backend any more", func(t *testing.T) {
		b := countingBackend(t)
		path := recordCassette(t, host.Options{}, withBackend(b.URL), func(s *host.Slot) {
			host.RunCommands(t, s, "e1", "echo one;put k v;append log entry;random;random;now;deadline;tokens some words;fit 2 "+
				"some more words;log a line")
			host.RunCommands(t, s, "e2", "http post body={\"a\":1} h:x-api-key={{secret:api_key}};get k;get none;list k;read "+
				"log;del k")
			// again
			host.RunCommands(t, s, "e1", "echo one;put k v;append log entry;random;random;now;deadline;tokens some words;fit 2 "+
				"some more words;log a line")
			host.Retrieved(t, s, "http get q:a=b;random;http item id=a/b")
			_, err := s.Retrieve(ctx, host.Ask("echo x;http item id="))
			host.RequireCode(t, err, abi.CodeInvalidArgument)
			_, err = s.RecordEvent(ctx, host.Event("e3", "http nowhere"))
			host.RequireCode(t, err, abi.CodeDenied)
			_, err = s.RecordEvent(ctx, host.Event("e1", "echo other content"))
			host.RequireCode(t, err, abi.CodeConflict)
			_, err = s.RecordEvent(ctx, host.Event("e4", "panic on purpose"))
			host.RequireCode(t, err, abi.CodeInternal)
			host.RunCommands(t, s, "e5", "count;random") // in a new instance
			_, err = s.RecordEvents(ctx, &abi.EventBatch{Events: []abi.MemoryEvent{*host.Event("b1", "random"),
				*host.Event("b2", "fail backend broken"), *host.Event("b3", "now")}})
			require.NoError(t, err)
			ok[*abi.ModeReceipt](t)(s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "test"}))
			require.Equal(t, abi.StatusSkippedReadOnly,
				ok[*abi.WriteReceipt](t)(s.RecordEvent(ctx, host.Event("e6", "echo x"))).Status)
			_, err = s.ResetScope(ctx, host.TestScope)
			host.RequireCode(t, err, abi.CodeReadOnly)
			ok[*abi.ModeReceipt](t)(s.SetMode(ctx, &abi.AdapterMode{Reason: "test"}))
			ok[*abi.Inventory](t)(s.Inventory(ctx, &abi.InventoryRequest{Scope: host.TestScope}))
			ok[*abi.BackendReadiness](t)(s.Readiness(ctx, &abi.ReadinessRequest{Scope: host.TestScope}))
			ok[*abi.BackendHealth](t)(s.Health(ctx))
			ok[*abi.SetupReceipt](t)(s.SetupScope(ctx, host.TestScope))
			ok[*abi.ResetReceipt](t)(s.ResetScope(ctx, host.TestScope))
			_, err = s.Retrieve(ctx, host.Ask("overbudget"))
			require.NoError(t, err)
			_, err = s.Retrieve(ctx, &abi.RetrieveRequest{Scope: host.TestScope})
			host.RequireCode(t, err, abi.CodeInvalidArgument)
			_, err = s.Provenance(ctx, &abi.ProvenanceRequest{Scope: host.TestScope, NativeID: "x"})
			host.RequireCode(t, err, abi.CodeUnsupported)
		})
		b.Close()
		r := requireSame(t, path, host.ProbeModule, 23)
		require.Greater(t, r.Calls, int64(25))
	})
	t.Run("a guest that was stopped while it waited, and one that span", func(t *testing.T) {
		release := make(chan struct{})
		slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}))
		defer slow.Close()
		defer close(release)
		short := func() context.Context {
			ctx, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}
		path := recordCassette(t, host.Options{}, withBackend(slow.URL), func(s *host.Slot) {
			host.RunCommands(t, s, "e1", "echo set up")
			r, err := s.RecordEvent(short(), host.Event("e2", "echo before;http post;echo behind"))
			require.NoError(t, err)
			require.Equal(t, abi.StatusUncertain, r.Status)
			_, err = s.Retrieve(short(), host.Ask("spin"))
			host.RequireCode(t, err, abi.CodeTimeout)
			require.Equal(t, []string{"fine"}, host.RunCommands(t, s, "e3", "echo fine"))
		})
		requireSame(t, path, host.ProbeModule, 5)
	})
	t.Run("a slot that was swapped meanwhile", func(t *testing.T) {
		modules := map[string][]byte{"probe": host.ProbeModule}
		for _, m := range plugins.Builtin() {
			modules[m.Name] = m.Wasm
		}
		path := recordCassette(t, host.Options{}, host.ProviderConfig{Name: "full_history", Module: modules["full_history"]},
			func(s *host.Slot) {
				ok[*abi.WriteReceipt](t)(s.RecordEvent(ctx, host.Event("e1", "tea")))
				_, err := s.Swap(ctx, host.ProbeConfig(`{"health": "error"}`))
				require.Error(t, err)
				_, err = s.Swap(ctx, host.ProbeConfig(`{}`))
				require.NoError(t, err)
				host.RunCommands(t, s, "e1", "random")
				_, err = s.Swap(ctx, host.ProviderConfig{Name: "full_history", Module: modules["full_history"]})
				require.NoError(t, err)
				require.True(t, ok[*abi.WriteReceipt](t)(s.RecordEvent(ctx, host.Event("e1", "tea"))).Duplicate)
			})
		r, err := host.Replay(ctx, host.ReplayOptions{Engines: []host.Engine{extism.Engine()}, Path: path, CacheDir: testcache.Dir(),
			Module: func(l cassette.Load) ([]byte, error) { return modules[l.Provider], nil }})
		require.NoError(t, err)
		require.Nil(t, r.Difference, "%v", r.Difference)
		require.Equal(t, r.Recorded.SHA256, r.Replayed.SHA256, "of the first load")
		require.EqualValues(t, 7, r.Operations)
	})
	t.Run("a recording that began on a folder with a past", func(t *testing.T) {
		dir := t.TempDir()
		h := host.Open(t, host.Options{DataDir: dir})
		s := host.OpenSlot(t, h, host.ProbeConfig(`{}`))
		host.RunCommands(t, s, "e1", "echo before")
		ok[*abi.ResetReceipt](t)(s.ResetScope(ctx, host.TestScope))
		host.RunCommands(t, s, "e2", "put k old")
		ok[*abi.ModeReceipt](t)(s.SetMode(ctx, &abi.AdapterMode{ReadOnly: true, Reason: "left so"}))
		require.NoError(t, s.Close(ctx))
		require.NoError(t, h.Close(ctx))
		path := recordCassette(t, host.Options{DataDir: dir}, host.ProbeConfig(`{}`), func(s *host.Slot) {
			require.Equal(t, []string{"old", "run/persona//2"}, host.Retrieved(t, s, "get k;scope"))
			ok[*abi.ModeReceipt](t)(s.SetMode(ctx, &abi.AdapterMode{Reason: "on again"}))
			require.True(t, ok[*abi.WriteReceipt](t)(s.RecordEvent(ctx, host.Event("e2", "put k old"))).Duplicate)
			ok[*abi.ResetReceipt](t)(s.ResetScope(ctx, host.TestScope))
			require.Equal(t, []string{"absent", "run/persona//3"}, host.Retrieved(t, s, "get k;scope"))
		})
		requireSame(t, path, host.ProbeModule, 6)
	})
}

func TestReplayReproducesWhatTheControlsAnswer(t *testing.T) {
	blocks := map[string]string{"static_profile": `{"profiles": [{"run_id": "run", "persona_id": "persona", "text": "Likes tea."}]}`, "no_memory": `{}`, "full_history": `{}`,
		"oracle_ipas": `{"entries": []}`}
	for _, m := range plugins.Builtin() {
		if blocks[m.Name] == "" {
			continue // modules with a backend are recorded where their fake backend is
		}
		t.Run(m.Name, func(t *testing.T) {
			path := recordCassette(t, host.Options{}, host.ProviderConfig{Name: m.Name, Module: m.Wasm, Source: "builtin",
				Block: abi.Raw(blocks[m.Name])}, conversation(t))
			requireSame(t, path, m.Wasm, 9)
		})
	}
}

// conversation makes the same requests to every control: nine operations including the opening.
func conversation(t *testing.T) func(*host.Slot) {
	return func(s *host.Slot) {
		ctx := context.Background()
		for i, text := range []string{"I like green tea.", "Äpfel & <b>tags</b>   \"quotes\"",
			"No more coffee since April."} {
			ok[*abi.WriteReceipt](t)(s.RecordEvent(ctx, host.Event(fmt.Sprint("e", i), text)))
		}
		most := int64(60)
		for _, r := range []*abi.RetrieveRequest{host.Ask("tea?"),
			{Query: "tea?", Scope: host.TestScope, SessionID: "s3", Budget: abi.ContextBudget{MaxTokens: &most}}} {
			result := ok[*abi.RetrieveResult](t)(s.Retrieve(ctx, r))
			ok[*abi.FormatResult](t)(s.FormatContext(ctx,
				&abi.FormatRequest{Result: *result, Budget: r.Budget, Scope: host.TestScope}))
		}
		ok[*abi.ResetReceipt](t)(s.ResetScope(ctx, host.TestScope))
	}
}

func TestSecretsAreInNoCassette(t *testing.T) {
	ctx := context.Background()
	b := countingBackend(t)
	path := recordCassette(t, host.Options{}, withBackend(b.URL), func(s *host.Slot) {
		// The backend echoes the key that the host put into the header, and a user says it aloud.
		said := host.RunCommands(t, s, "e1", "http post h:x-api-key={{secret:api_key}}")
		require.Contains(t, said[0], "key [secret removed]")
		_, err := s.RecordEvent(ctx, host.Event("e2", "echo sesame-open-1234"))
		require.NoError(t, err)
		_, err = s.RecordEvent(ctx, host.Event("e3", "fail backend it said sesame-open-1234"))
		require.Error(t, err)
	})
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), "sesame")
	require.Contains(t, string(text), `{\"secret\":\"key\"}`)
	marked := 0
	for _, o := range operationsOf(t, path) {
		if o.Redacted {
			marked++
		}
	}
	require.Equal(t, 2, marked, "operations from which a secret was removed say so")

	t.Run("a block that holds a credential is not recorded at all", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "c")
		h, err := host.New(ctx, host.Options{Engines: []host.Engine{extism.Engine()}, DataDir: t.TempDir(), CacheDir: testcache.Dir(),
			Cassette: &host.CassetteOptions{Path: file}})
		require.NoError(t, err)
		_, err = h.Open(ctx, host.ProbeConfig(`{"note": "https://user:pass@example.org"}`))
		host.RequireCode(t, err, abi.CodeInvalidArgument, "looks like a credential", "{secret: NAME}")
		require.NoError(t, h.Close(ctx))
		require.NoFileExists(t, file, "a cassette that never began leaves no file")
	})
}

func TestReplayShowsTheFirstDifference(t *testing.T) {
	wasm := map[string][]byte{}
	for _, m := range plugins.Builtin() {
		wasm[m.Name] = m.Wasm
	}
	t.Run("another module", func(t *testing.T) {
		path := recordCassette(t, host.Options{}, host.ProviderConfig{Name: "full_history", Module: wasm["full_history"]},
			conversation(t))
		_, err := host.Replay(context.Background(), host.ReplayOptions{Engines: []host.Engine{extism.Engine()}, Path: path,
			CacheDir: testcache.Dir(), Module: func(cassette.Load) ([]byte, error) { return wasm["no_memory"], nil }})
		host.RequireCode(t, err, abi.CodeInvalidArgument, "no_memory", "cannot take the place of full_history",
			"serves no provider")
	})
	probes := func(t *testing.T, mend func(*cassette.Operation)) *host.Difference {
		path := recordCassette(t, host.Options{}, host.ProbeConfig(`{}`), func(s *host.Slot) {
			host.RunCommands(t, s, "e1", "put k v;get k;tokens abc")
			host.Retrieved(t, s, "get k;echo bye")
		})
		return replayOf(t, rewritten(t, path, mend), host.ProbeModule).Difference
	}
	for name, c := range map[string]struct {
		mend func(*cassette.Operation)
		want host.Difference
	}{
		"another answer of the guest": {func(o *cassette.Operation) {
			if o.N == 3 {
				o.Entries[0].Answer = cassette.Text(strings.Replace(string(o.Entries[0].Answer), "bye", "day", 1))
			}
		}, host.Difference{Operation: 3, Name: "retrieve", Entry: "retrieve", What: "another answer of the guest"}},
		"other arguments": {func(o *cassette.Operation) {
			if o.N == 2 {
				o.Entries[1].Calls[2].In[0] = cassette.Text("other")
			}
		}, host.Difference{Operation: 2, Name: "record_event", Entry: "record_event", Call: 3,
			What: "a host call with other arguments"}},
		"another host call": {func(o *cassette.Operation) {
			if o.N == 2 {
				o.Entries[1].Calls[2].Name = "state_put"
			}
		}, host.Difference{Operation: 2, Name: "record_event", Entry: "record_event", Call: 3, What: "another host call"}},
		"a call more": {func(o *cassette.Operation) {
			if o.N == 2 {
				o.Entries[1].Calls = o.Entries[1].Calls[:3]
			}
		}, host.Difference{Operation: 2, Name: "record_event", Entry: "record_event", Call: 4,
			What: "a host call that was not recorded"}},
		"a call fewer": {func(o *cassette.Operation) {
			if o.N == 2 {
				o.Entries[1].Calls = append(o.Entries[1].Calls, cassette.Call{Name: "deadline"})
			}
		}, host.Difference{Operation: 2, Name: "record_event", Entry: "record_event", Call: 5,
			What: "a host call that was recorded is not made"}},
		"another answer of the slot": {func(o *cassette.Operation) {
			if o.N == 3 {
				o.Answer = cassette.Text(strings.Replace(string(o.Answer), `"operation":"retrieve"`,
					`"operation":"retrieved"`, 1))
			}
		}, host.Difference{Operation: 3, Name: "retrieve", What: "another answer of the slot"}},
		"an entry fewer": {func(o *cassette.Operation) {
			if o.N == 3 {
				o.Entries = append(o.Entries, cassette.Entry{Op: "retrieve", Request: cassette.Text("{}")})
			}
		}, host.Difference{Operation: 3, Name: "retrieve", Entry: "retrieve",
			What: "the guest is not entered where it was"}},
		"an entry more": {func(o *cassette.Operation) {
			if o.N == 3 {
				o.Entries = nil
			}
		}, host.Difference{Operation: 3, Name: "retrieve", What: "the guest is entered once more than it was recorded"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := probes(t, c.mend)
			require.NotNil(t, d)
			require.NotEqual(t, d.Expected, d.Got)
			got := *d
			got.Expected, got.Got, got.Byte = "", "", 0
			require.Equal(t, c.want, got, d.String())
			require.Contains(t, d.String(), c.want.What)
		})
	}
}

func TestASenselessCassetteIsAnErrorOrADifference(t *testing.T) {
	path := recordCassette(t, host.Options{}, host.ProbeConfig(`{}`), func(s *host.Slot) { host.RunCommands(t, s, "e1", "put k v;get k") })
	first := func(mend func(*cassette.Operation)) func(*cassette.Operation) {
		return func(o *cassette.Operation) {
			if o.N == 1 {
				mend(o)
			}
		}
	}
	second := func(mend func(*cassette.Operation)) func(*cassette.Operation) {
		return func(o *cassette.Operation) {
			if o.N == 2 {
				mend(o)
			}
		}
	}
	for name, mend := range map[string]func(*cassette.Operation){
		"a guest before it was opened": first(func(o *cassette.Operation) { o.Name = cassette.OpBackground }),
		"a contract before it was opened": first(func(o *cassette.Operation) {
			*o = cassette.Operation{Name: abi.OpHealth, Request: cassette.Text("{}")}
		}),
		"an operation that no slot has": second(func(o *cassette.Operation) { o.Name = "dance" }),
		"a request that is no JSON":     second(func(o *cassette.Operation) { o.Request = cassette.Text("{") }),
		"no request":                    second(func(o *cassette.Operation) { o.Request = nil }),
		"an envelope that is no JSON": second(func(o *cassette.Operation) {
			o.Entries[1].Request = cassette.Text("{")
		}),
		"a host call without an answer": second(func(o *cassette.Operation) { o.Entries[1].Calls[1].Head = nil }),
		"a host call that answers rubbish": second(func(o *cassette.Operation) {
			o.Entries[1].Calls[1].Head = cassette.Text("\xff")
		}),
		"a number for an answer": second(func(o *cassette.Operation) {
			n := int64(-1)
			o.Entries[1].Calls[1].Result = &n
		}),
		"a record without a key": second(func(o *cassette.Operation) {
			o.Records = []cassette.Record{{Table: "ledger"}}
		}),
		"a ledger that is rubbish": second(func(o *cassette.Operation) {
			o.Records = []cassette.Record{{Table: "modes", Key: cassette.Text("slot"), Value: cassette.Text("?")}}
			o.Name, o.Entries = abi.OpHealth, nil
		}),
		"a time that is none": second(func(o *cassette.Operation) {
			o.Entries[1].At = "yesterday"
			o.At = ""
			o.Answer = nil
		}),
		"no entries": second(func(o *cassette.Operation) { o.Entries = nil }),
	} {
		t.Run(name, func(t *testing.T) {
			r, err := host.Replay(context.Background(),
				host.ReplayOptions{Engines: []host.Engine{extism.Engine()}, Path: rewritten(t, path, mend),
					CacheDir: testcache.Dir(),
					Module:   func(cassette.Load) ([]byte, error) { return host.ProbeModule, nil }})
			if err != nil {
				host.RequireCode(t, err, abi.CodeInvalidArgument)
				return
			}
			require.NotNil(t, r.Difference)
		})
	}
}

// rewritten writes a cassette again with modified operations: as if another module had been recorded.
func rewritten(t *testing.T, path string, mend func(*cassette.Operation)) string {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	r, err := cassette.NewReader(path, f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	to := filepath.Join(t.TempDir(), "mended")
	out, err := cassette.Create(to)
	require.NoError(t, err)
	w, err := cassette.NewWriter(out, r.Header)
	require.NoError(t, err)
	for _, o := range operationsOf(t, path) {
		mend(o)
		require.NoError(t, w.Add(o))
	}
	require.NoError(t, w.End())
	require.NoError(t, out.Close())
	return to
}

func TestVirtualTime(t *testing.T) {
	t.Run("a clock that jumps back never shows in a recording", func(t *testing.T) {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		step := -time.Hour
		clock := func() time.Time { now = now.Add(step); return now }
		path := recordCassette(t, host.Options{Now: clock}, host.ProbeConfig(`{}`), func(s *host.Slot) {
			said := host.RunCommands(t, s, "e1", "now;now;random")
			require.NotEmpty(t, said[0])
			host.RunCommands(t, s, "e2", "now")
			ok[*abi.BackendReadiness](t)(s.Readiness(context.Background(),
				&abi.ReadinessRequest{Scope: host.TestScope, TimeoutMS: 50}))
		})
		var last time.Time
		for _, o := range operationsOf(t, path) {
			at, err := time.Parse(time.RFC3339Nano, o.At)
			require.NoError(t, err)
			require.True(t, at.After(last), "operation %d begins at %s, behind %s", o.N, at, last)
			last = at
		}
		requireSame(t, path, host.ProbeModule, 4)
	})
	t.Run("equal runs with equal seeds and clocks make equal cassettes", func(t *testing.T) {
		var sums [2][32]byte
		for i := range sums {
			now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			path := recordCassette(t, host.Options{Now: func() time.Time {
				now = now.Add(time.Second)
				return now
			},
				Cassette: &host.CassetteOptions{Seed: []byte("seed"), Timeless: true}},
				host.ProbeConfig(`{}`), func(s *host.Slot) { host.RunCommands(t, s, "e1", "random;now;put k v") })
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			sums[i] = sha256.Sum256(text)
		}
		require.Equal(t, sums[0], sums[1])
	})
	t.Run("without a recording a clock that jumps back is harmless", func(t *testing.T) {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		s := host.OpenSlot(t, host.Open(t, host.Options{Now: func() time.Time {
			now = now.Add(-time.Hour)
			return now
		}}), host.ProbeConfig(`{}`))
		host.RequireUsable(t, s, "e1")
		require.True(t, ok[*abi.WriteReceipt](t)(s.RecordEvent(context.Background(),
			host.Event("e1", "echo fine"))).Duplicate)
		ok[*abi.ResetReceipt](t)(s.ResetScope(context.Background(), host.TestScope))
		host.RequireUsable(t, s, "e1")
	})
}

func TestARecordingSlotDoesOneOperationAtATime(t *testing.T) {
	path := recordCassette(t, host.Options{}, host.ProbeConfig(`{}`), func(s *host.Slot) {
		done := make(chan error)
		for i := range 20 {
			go func() {
				_, err := s.RecordEvent(context.Background(), host.Event(fmt.Sprint("e", i), "random;now"))
				done <- err
			}()
		}
		for range 20 {
			require.NoError(t, <-done)
		}
	})
	requireSame(t, path, host.ProbeModule, 21)
}

func TestACassetteThatCannotBeWrittenDoesNotStopTheSlot(t *testing.T) {
	path := recordCassette(t, host.Options{}, host.ProbeConfig(`{}`), func(s *host.Slot) {
		host.RequireUsable(t, s, "e1")
		host.BreakCassette(t, s)
		host.RequireUsable(t, s, "e2")
		h := ok[*abi.BackendHealth](t)(s.Health(context.Background()))
		require.Len(t, h.Warnings, 1)
		require.Contains(t, h.Warnings[0], "cassette_broken: ")
	})
	_, err := host.Replay(context.Background(), host.ReplayOptions{Engines: []host.Engine{extism.Engine()}, Path: path,
		CacheDir: testcache.Dir(), Module: func(cassette.Load) ([]byte, error) { return host.ProbeModule, nil }})
	require.Equal(t, cassette.ReasonCut, host.RequireCode(t, err, abi.CodeInvalidArgument, "cut off",
		"after 3 operations").Reason)
	r, err := host.Replay(context.Background(), host.ReplayOptions{Engines: []host.Engine{extism.Engine()}, Path: path, Partial: true,
		CacheDir: testcache.Dir(), Module: func(cassette.Load) ([]byte, error) { return host.ProbeModule, nil }})
	require.NoError(t, err)
	require.Nil(t, r.Difference)
	require.EqualValues(t, 3, r.Operations)
	require.NotEmpty(t, r.Cut)

	_, err = host.New(context.Background(), host.Options{DataDir: t.TempDir(), CacheDir: testcache.Dir(),
		Cassette: &host.CassetteOptions{Path: path}})
	host.RequireCode(t, err, abi.CodeInvalidArgument, "is there already")
}
