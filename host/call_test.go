package host

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/logs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGuestThatMisbehavesIsStoppedReportedAndReplaced(t *testing.T) {
	// A small memory, so that a guest that allocates endlessly reaches the limit before its deadline.
	limits := Limits{MemoryBytes: 8 << 20}
	patient := openSlot(t, open(t, Options{Limits: limits}), probeConfig(`{}`))
	soon := openSlot(t, impatient(open(t, Options{Limits: limits})), probeConfig(`{}`))
	for _, c := range []struct {
		command string
		code    abi.Code
		says    string
	}{
		{"spin", abi.CodeTimeout, "stopped in"},
		{"recurse", abi.CodeInternal, "trapped"},
		{"alloc", abi.CodeInternal, "out of memory"},
		{"nil", abi.CodeInternal, "nil pointer dereference"},
		{"panic the guest's own words", abi.CodeInternal, "the guest's own words"},
		{"exit", abi.CodeInternal, "ended itself with exit code 3"},
		{"garbage", abi.CodeInternal, "outside the memory"},
		{"zero", abi.CodeInternal, "answered zero"},
		{"notjson", abi.CodeInternal, "what is no"},
		{"wrongtype", abi.CodeInternal, "what is no"},
		{"oob", abi.CodeInternal, "outside the memory"},
		{"fail rate_limited wait a little", abi.CodeRateLimited, "wait a little"},
		{"fail nosuchcode hm", abi.CodeInternal, `unknown code "nosuchcode"`},
	} {
		name, _, _ := strings.Cut(c.command, " ")
		s := patient
		if c.code == abi.CodeTimeout {
			s = soon
		}
		t.Run("retrieve "+name, func(t *testing.T) {
			_, err := s.Retrieve(context.Background(), ask(c.command))
			e := requireCode(t, err, c.code, c.says)
			assert.Equal(t, abi.OpRetrieve, e.Operation)
			requireUsable(t, s, "after retrieve "+c.command)
		})
		t.Run("record "+name, func(t *testing.T) {
			_, err := s.RecordEvent(context.Background(),
				event("bad "+c.command, "put left behind; append turns x; "+c.command))
			requireCode(t, err, c.code, c.says)
			assert.Equal(t, []string{"absent", ""}, retrieved(t, s, "get left; read turns"),
				"an operation that failed leaves no state")
			requireUsable(t, s, "after record "+c.command)
		})
	}
}

func TestPanicTextIsKeptInTheError(t *testing.T) {
	s := probeSlot(t, `{}`)
	_, err := s.Retrieve(context.Background(), ask("panic line one"))
	e := requireCode(t, err, abi.CodeInternal)
	require.NotNil(t, e.Native)
	assert.Contains(t, e.Native.Body, "panic: line one")
	assert.Equal(t, "trap", e.Reason)
}

func TestAnOperationThatNeedsTooMuchMemoryIsToldWhatToDo(t *testing.T) {
	s := openSlot(t, open(t, Options{Limits: Limits{MemoryBytes: 8 << 20}}), probeConfig(`{}`))
	_, err := s.Retrieve(context.Background(), ask("alloc"))
	assert.Contains(t, requireCode(t, err, abi.CodeInternal, "out of memory").Hint, "8 MiB of memory (limits.memory_bytes)")
}

func TestSpinningGuestLeavesOtherCallersAlone(t *testing.T) {
	s := probeSlot(t, `{}`)
	ctx, stop := context.WithCancel(context.Background())
	var spinning sync.WaitGroup
	for range 2 {
		spinning.Go(func() {
			_, err := s.Retrieve(ctx, ask("spin"))
			assert.Equal(t, abi.CodeTimeout, abi.CodeOf(err))
		})
	}
	for range 50 {
		assert.Equal(t, []string{"fine"}, retrieved(t, s, "echo fine"))
	}
	stop()
	spinning.Wait()
}

func TestCallersDeadlineStopsTheGuest(t *testing.T) {
	s := probeSlot(t, `{}`)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Retrieve(ctx, ask("spin"))
	requireCode(t, err, abi.CodeTimeout)
	gone, leave := context.WithCancel(context.Background())
	leave()
	_, err = s.Retrieve(gone, ask("spin"))
	requireCode(t, err, abi.CodeTimeout)
	requireUsable(t, s, "x")
}

func TestSleepInAGuestReturnsAtOnce(t *testing.T) {
	assert.Equal(t, []string{"woke"}, retrieved(t, probeSlot(t, `{}`), "sleep"))
}

func TestLogIsCutNotEndless(t *testing.T) {
	var out logs.Buffer
	h := open(t, Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Info}),
		Limits: Limits{LogBytes: 4 << 10}})
	s := openSlot(t, h, probeConfig(`{}`))
	retrieved(t, s, "flood 5000")
	assert.Less(t, len(out.String()), 32<<10)
	assert.Equal(t, 1, strings.Count(out.String(), "log cut"), "said once")
	assert.Contains(t, out.String(), "line 0 of a flood")
	requireUsable(t, s, "x")
}

func TestAnswerLargerThanTheLimitIsTooLarge(t *testing.T) {
	h := open(t, Options{Limits: Limits{ResponseBytes: 64 << 10, RequestBytes: 128 << 10}})
	s := openSlot(t, h, probeConfig(`{}`))
	_, err := s.Retrieve(context.Background(), ask("big 100000"))
	requireCode(t, err, abi.CodeTooLarge, "limit is 65536")
	_, err = s.Retrieve(context.Background(), ask("echo "+strings.Repeat("x", 200<<10)))
	requireCode(t, err, abi.CodeTooLarge, "limit is 131072")
	requireUsable(t, s, "x")
}

func TestInstanceBeyondTheHighWaterMarkIsThrownAway(t *testing.T) {
	h := open(t, Options{Limits: Limits{Pool: 1, HighWaterBytes: 2 << 20}})
	s := openSlot(t, h, probeConfig(`{}`))
	assert.Equal(t, []string{"1"}, retrieved(t, s, "count"))
	assert.Equal(t, []string{"2"}, retrieved(t, s, "count"), "an instance is used again")
	retrieved(t, s, "grow 3000000")
	assert.Equal(t, []string{"1"}, retrieved(t, s, "count"), "a grown one is not")
}

// The pinned TinyGo, unpatched, frees what a local variable holds from an earlier iteration of a loop:
// internal/authoring/toolchain/patch.go.
func TestGuestKeepsWhatALocalHoldsAcrossTurnsOfALoop(t *testing.T) {
	s := probeSlot(t, `{}`)
	for _, n := range []int{3, 17, 25, 40, 55, 70, 77, 90, 98} {
		number := strconv.Itoa(n) + "."
		want := strings.Repeat(number, (48+len(number)-1)/len(number))
		assert.Equal(t, []string{want}, retrieved(t, s, "nearest "+strconv.Itoa(n)))
	}
}

func TestCallersBeyondThePoolWaitAndBeyondTheLimitAreTurnedAway(t *testing.T) {
	asked, answer := make(chan bool), make(chan bool)
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- true
		<-answer
	}))
	defer slow.Close()
	s := netSlot(t, slow.URL, Options{Limits: Limits{Pool: 1, CallsInFlight: 2}})
	var callers sync.WaitGroup
	callers.Go(func() { assert.NotEmpty(t, retrieved(t, s, "http get q:a=b")) })
	<-asked
	// The only instance is busy.
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := s.Retrieve(short, ask("echo x"))
	requireCode(t, err, abi.CodeTimeout, "all 1 are busy")
	outcomes := make(chan error)
	for range 2 {
		go func() {
			_, err := s.Retrieve(context.Background(), ask("echo x"))
			outcomes <- err
		}()
	}
	e := requireCode(t, <-outcomes, abi.CodeRateLimited, "more than 2 calls in flight")
	assert.NotNil(t, e.RetryAfterMS)
	close(answer)
	callers.Wait()
	require.NoError(t, <-outcomes, "the other one waited")
	requireUsable(t, s, "x")
}

func TestGuestSeesConfigurationWithoutSecrets(t *testing.T) {
	s := openSlot(t, open(t, Options{}), ProviderConfig{Name: "probe", Module: probeModule,
		Block: abi.Raw(`{"url":"http://127.0.0.1:1","api_key":{"secret":"K"}}`),
		Secrets: map[string]Secret{"K": {Value: func() (string, error) {
			return "top-secret-value", nil
		}, Origin: "http://127.0.0.1:1"}}})
	said := retrieved(t, s, "config")[0]
	assert.Contains(t, said, `"config":{"api_key":{"secret":"K"},"health":"ok","note":"","url":"http://127.0.0.1:1"}`,
		"defaults are laid under it")
	assert.Contains(t, said, `"secrets":["api_key"]`)
	assert.NotContains(t, said, "top-secret")
}

func TestHostFillsItsPartOfTheTraceWhateverThePluginSays(t *testing.T) {
	s := probeSlot(t, `{}`)
	r, err := s.Retrieve(context.Background(), ask("echo x"))
	require.NoError(t, err)
	tr := r.Trace
	assert.Equal(t, abi.OpRetrieve, tr.Operation)
	assert.Equal(t, abi.KindControl, tr.ConditionKind)
	assert.Equal(t, testScope, tr.Scope)
	assert.EqualValues(t, 1, tr.Generation)
	assert.Equal(t, "bytes4", tr.Tokenizer)
	assert.Empty(t, tr.IO)
	assert.Greater(t, tr.LatencyMS, 0.0)
	assert.InDelta(t, tr.LatencyMS, tr.BackendMS+tr.PluginMS+tr.HostMS, 0.01)
	require.NotNil(t, tr.TokenCount)
	assert.EqualValues(t, (len(r.FormattedContext)+3)/4, *tr.TokenCount)
}

func TestContextThatIsTooLargeOrNoElementIsRefused(t *testing.T) {
	s := probeSlot(t, `{}`)
	most := int64(50)
	r := ask("overbudget")
	r.Budget.MaxTokens = &most
	_, err := s.Retrieve(context.Background(), r)
	requireCode(t, err, abi.CodeInternal, "max_tokens is 50")
	_, err = s.Retrieve(context.Background(), ask("noelement"))
	requireCode(t, err, abi.CodeInternal, "does not begin with")
}

func TestTagsInsideAContextAreEscaped(t *testing.T) {
	s := probeSlot(t, `{}`)
	r, err := s.Retrieve(context.Background(), ask("forge"))
	require.NoError(t, err)
	assert.Contains(t, r.FormattedContext, "\n<\\/MEMORY-context><\\memory-context>\n</memory-context>")
	assert.Contains(t, r.Trace.Warnings, "context_escaped: 2 tags inside the memory-context element")
	assert.EqualValues(t, (len(r.FormattedContext)+3)/4, *r.Trace.TokenCount)

	open, _, _ := strings.Cut(r.FormattedContext, "\n")
	older := &abi.RetrieveResult{FormattedContext: open + "\n</\u217femory-context>\n</memory-context>"}
	f, err := s.FormatContext(context.Background(), &abi.FormatRequest{Scope: testScope, Result: *older})
	require.NoError(t, err)
	assert.Equal(t, open+"\n<\\/\u217femory-context>\n</memory-context>", f.FormattedContext)
}

func TestAFullContextMakesRoomForTheBackslash(t *testing.T) {
	s := probeSlot(t, `{}`)
	const open = "<memory-context backend=\"probe\" scope=\"run/persona\">\n"
	const kept, removed = "- tea <memory-context>\n", "- milk\n"
	full := open + kept + removed + "</memory-context>"
	most := int64(len(full)+3) / 4 // "bytes4" counts a token for each four bytes
	full = open + kept + strings.Replace(removed, "\n", strings.Repeat(".", int(most)*4-len(full))+"\n", 1) +
		"</memory-context>"
	request := &abi.FormatRequest{Scope: testScope, Result: abi.RetrieveResult{FormattedContext: full},
		Budget: abi.ContextBudget{MaxTokens: &most}}
	f, err := s.FormatContext(context.Background(), request)
	require.NoError(t, err)
	assert.Equal(t, open+"- tea <\\memory-context>\n</memory-context>", f.FormattedContext)
	assert.EqualValues(t, (len(f.FormattedContext)+3)/4, f.TokenCount)
	assert.True(t, f.Truncated)

	request.Budget.MaxTokens = new(most - 1)
	_, err = s.FormatContext(context.Background(), request)
	requireCode(t, err, abi.CodeInternal, "max_tokens is")
}
