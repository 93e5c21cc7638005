package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/examples/tiny"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testguest"
	"github.com/memhost/memhost/plugins"
)

// takenForUnknown is why the host hides a mistake of find_event.
const takenForUnknown = "the host takes it for unknown, and announces the possible double"

// noTimes is why pages of provenance are not looked at.
const noTimes = "provenance by a range of time gives nothing here, and that is what is read page by page"

// subject is a right provider to which mistakes are applied.
type subject struct {
	name string
	// open returns the provider with a new backend. fault is one of the guest of testguest.
	open func(t *testing.T, fault string) Target
	// faults: the provider has the faults of testguest.
	faults bool
	// survivors are mistakes that the kit does not find here, with the reason.
	survivors map[string]string
}

func subjects() []subject {
	serve := func(t *testing.T, h http.Handler) string {
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		return server.URL
	}
	builtin := func(t *testing.T, name string) []byte {
		m, ok := plugins.Find(name)
		require.True(t, ok, "%s is not built: make plugins", name)
		return m.Wasm
	}
	return []subject{
		{name: "reference", faults: true, open: func(t *testing.T, fault string) Target {
			backend, provider := &tiny.Backend{}, "wrong"
			switch fault {
			case "committed_early":
				backend.QueueLooks = 1
			case "query_writes":
				provider = "wrong_control"
			}
			return Target{Provider: host.ProviderConfig{Name: provider, Module: testguest.Wrong(),
				Block: abi.Raw(fmt.Sprintf(`{"url":%q,"fault":%q}`, serve(t, backend), fault))}}
		}, survivors: map[string]string{"find_word": takenForUnknown,
			"roles_swapped": "the reference sends texts without the roles of their speakers",
		}},
		{name: "memos", open: func(t *testing.T, _ string) Target {
			return Target{ErrorBodies: map[string]string{"": `{"code":500,"message":"boom","data":null}`},
				Provider: host.ProviderConfig{Name: "memos", Module: builtin(t, "memos"), Block: abi.Raw(fmt.Sprintf(
					`{"url":%q,"graph_store":"neo4j","add_mode":"sync/fast"}`,
					serve(t, memos.New(memos.Options{Flavour: memos.Neo4j, TaskDelay: time.Millisecond}))))}}
		}, survivors: map[string]string{"find_word": takenForUnknown,
			"find_absent":     "a turn that is sent again is not there twice, in front of this fake",
			"items_twice":     "a limit of the manifest allows as many on that route",
			"never_truncated": "the check needs two answers with the same items, of which one leaves some out",
		}},
		{name: "mem0", open: func(t *testing.T, _ string) Target {
			url := serve(t, mem0.New(mem0.Options{AdminKey: "key-of-tests"}))
			return Target{Provider: host.ProviderConfig{Name: "mem0", Module: builtin(t, "mem0"),
				Block: abi.Raw(fmt.Sprintf(`{"url":%q,"api_key":{"secret":"K"},"add_timeout_s":2}`, url)),
				Secrets: map[string]host.Secret{"K": {Value: func() (string, error) { return "key-of-tests", nil },
					Origin: url}}}}
		}, survivors: map[string]string{"find_word": takenForUnknown,
			"find_absent":         "a turn that is sent again is not there twice, in front of this fake",
			"never_truncated":     "the check needs two answers with the same items, of which one leaves some out",
			"cut_64k":             "the server refuses a turn of 1 MB",
			"provenance_any_time": noTimes, "provenance_limit": noTimes, "provenance_loops": noTimes,
		}},
	}
}

// attempt is what the kit said of one mistake.
type attempt struct {
	mistake
	// made: the mistake changed something. found: the kit is not green.
	made, found bool
	// At has the parts that are not green, "clause.part".
	At     []string
	Reason string
}

// try runs the kit on a provider that makes a mistake: the clause where it is expected, and all others if that is
// green.
func (s *subject) try(t *testing.T, m mistake) attempt {
	made := &mutant{}
	do, isFault := enterer(nil), true
	if make := mutants()[m.name]; make != nil {
		do, isFault = make(made), false
	}
	made.made.Store(isFault)
	a := attempt{mistake: m}
	for _, clauses := range [][]int{{m.clause}, nil} {
		if m.clause == 0 && clauses != nil {
			continue
		}
		fault := ""
		o := Options{CacheDir: testcache.Dir(), Clauses: clauses}
		if isFault {
			fault = m.name
		} else {
			o.guest = host.GuestInterceptor(do)
		}
		target := s.open(t, fault)
		target.ReadyWithin = 2 * time.Second
		report, err := Run(t.Context(), target, o)
		if err != nil {
			// It cannot even be opened, which only a mistake in health explains.
			assert.Equal(t, abi.OpHealth, m.operation, "%s: %s: %v", s.name, m.name, err)
			return attempt{mistake: m, made: true, found: true, At: []string{"open"}, Reason: err.Error()}
		}
		for _, c := range report.Clauses {
			for _, p := range c.Parts {
				if p.Verdict.Green() {
					continue
				}
				here := fmt.Sprintf("%d.%s", c.Number, p.Name)
				if a.At = append(a.At, here); len(a.At) == 1 || here == m.at() {
					a.Reason = p.Reason
				}
			}
		}
		if a.made, a.found = made.made.Load(), len(a.At) > 0; a.found {
			break
		}
	}
	return a
}

// TestMutationScore makes each mistake of the catalogue in the name of a right provider: the kit must find it. The
// short form takes a sample; the long one takes all, also with two real providers, and compares the table of
// conformance/README.md (UPDATE=1 writes it).
func TestMutationScore(t *testing.T) {
	list := mistakes()
	require.GreaterOrEqual(t, len(list), 120)
	known := mutants()
	for _, name := range abi.SortedKeys(known) {
		assert.True(t, slices.ContainsFunc(list, func(m mistake) bool { return m.name == name }),
			"%s is not in the catalogue", name)
	}
	dump := os.Getenv("MISTAKES")
	var table []string
	for _, s := range subjects() {
		if brief.Tests() && !s.faults {
			continue
		}
		var mu sync.Mutex
		var all []attempt
		t.Run(s.name, func(t *testing.T) {
			for i, m := range list {
				if known[m.name] == nil && !s.faults || brief.Tests() && dump == "" && i%16 != 0 {
					continue
				}
				t.Run(m.name, func(t *testing.T) {
					t.Parallel()
					a := s.try(t, m)
					mu.Lock()
					defer mu.Unlock()
					all = append(all, a)
				})
			}
		})
		if dump != "" {
			text, _ := json.MarshalIndent(dumpAttempts(all), "", " ")
			require.NoError(t, os.WriteFile(dump+"."+s.name, text, 0o600))
		}
		table = append(table, s.judge(t, all)...)
	}
	if !brief.Tests() {
		checkTable(t, table)
	}
}

// judge compares attempts with what is expected and gives the lines of the table.
func (s *subject) judge(t *testing.T, all []attempt) (lines []string) {
	made, found := 0, 0
	var survivors []string
	for _, a := range all {
		if !a.made {
			assert.False(t, s.faults, "%s: %s changed nothing", s.name, a.name)
			continue
		}
		made++
		if a.found {
			found++
			assert.Empty(t, s.survivors[a.name], "%s: %s is found, and listed as a survivor", s.name, a.name)
			if s.faults {
				assert.True(t, slices.ContainsFunc(a.At, func(at string) bool {
					return at == "open" || strings.HasPrefix(at, fmt.Sprint(a.clause)+".")
				}), "%s is found elsewhere (%v): %s", a.name, a.At, a.Reason)
			}
			continue
		}
		reason := s.survivors[a.name]
		assert.NotEmpty(t, reason, "%s: %s (%s) survives", s.name, a.name, a.words)
		survivors = append(survivors, fmt.Sprintf("%s (%s)", a.words, reason))
	}
	assert.GreaterOrEqual(t, found*100, made*95, "%s: %d of %d mistakes found", s.name, found, made)
	t.Logf("%s: %d of %d mistakes found", s.name, found, made)
	slices.Sort(survivors)
	lines = append(lines, fmt.Sprintf("| %s | %d | %d | %.1f %% | %s |", s.name, made, found,
		100*float64(found)/float64(max(1, made)), strings.Join(survivors, "; ")))
	return lines
}

const tableBegin, tableEnd = "<!-- mutation score: TESTS=long UPDATE=1 go test ./conformance -run MutationScore -->", "<!-- end -->"

// checkTable compares the table of the docs, or writes it.
func checkTable(t *testing.T, lines []string) {
	const path = "README.md"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), tableBegin+"\n")
	_, after, ok2 := strings.Cut(rest, tableEnd)
	require.True(t, ok && ok2, "the page has no place for the table")
	want := before + tableBegin + "\n\n| provider | mistakes made | found | score | survivors |\n|---|---|---|---|---|\n" +
		strings.Join(lines, "\n") + "\n\n" + tableEnd + after
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(page), "run it with UPDATE=1")
}

func dumpAttempts(all []attempt) (list []map[string]any) {
	for _, a := range all {
		list = append(list, map[string]any{"name": a.name, "made": a.made, "found": a.found, "at": a.At, "reason": a.Reason})
	}
	return list
}
