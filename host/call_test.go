package host_test

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
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/logs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGuestThatMisbehavesIsStoppedReportedAndReplaced(t *testing.T) {
	// A small memory, so that a guest that allocates endlessly reaches the limit before its deadline.
	limits := host.Limits{MemoryBytes: 8 << 20}
	patient := host.OpenSlot(t, host.Open(t, host.Options{Limits: limits}), host.ProbeConfig(`{}`))
	soon := host.OpenSlot(t, host.Impatient(host.Open(t, host.Options{Limits: limits})), host.ProbeConfig(`{}`))
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
			_, err := s.Retrieve(context.Background(), host.Ask(c.command))
			e := host.RequireCode(t, err, c.code, c.says)
			assert.Equal(t, abi.OpRetrieve, e.Operation)
			host.RequireUsable(t, s, "after retrieve "+c.command)
		})
		t.Run("record "+name, func(t *testing.T) {
			_, err := s.RecordEvent(context.Background(),
				host.Event("bad "+c.command, "put left behind; append turns x; "+c.command))
			host.RequireCode(t, err, c.code, c.says)
			assert.Equal(t, []string{"absent", ""}, host.Retrieved(t, s, "get left; read turns"),
				"an operation that failed leaves no state")
			host.RequireUsable(t, s, "after record "+c.command)
		})
	}
}

func TestPanicTextIsKeptInTheError(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	_, err := s.Retrieve(context.Background(), host.Ask("panic line one"))
	e := host.RequireCode(t, err, abi.CodeInternal)
	require.NotNil(t, e.Native)
	assert.Contains(t, e.Native.Body, "panic: line one")
	assert.Equal(t, "trap", e.Reason)
}

func TestAnOperationThatNeedsTooMuchMemoryIsToldWhatToDo(t *testing.T) {
	s := host.OpenSlot(t, host.Open(t, host.Options{Limits: host.Limits{MemoryBytes: 8 << 20}}), host.ProbeConfig(`{}`))
	_, err := s.Retrieve(context.Background(), host.Ask("alloc"))
	assert.Contains(t, host.RequireCode(t, err, abi.CodeInternal, "out of memory").Hint, "8 MiB of memory (limits.memory_bytes)")
}

func TestSpinningGuestLeavesOtherCallersAlone(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	ctx, stop := context.WithCancel(context.Background())
	var spinning sync.WaitGroup
	for range 2 {
		spinning.Go(func() {
			_, err := s.Retrieve(ctx, host.Ask("spin"))
			assert.Equal(t, abi.CodeTimeout, abi.CodeOf(err))
		})
	}
	for range 50 {
		assert.Equal(t, []string{"fine"}, host.Retrieved(t, s, "echo fine"))
	}
	stop()
	spinning.Wait()
}

func TestCallersDeadlineStopsTheGuest(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Retrieve(ctx, host.Ask("spin"))
	host.RequireCode(t, err, abi.CodeTimeout)
	gone, leave := context.WithCancel(context.Background())
	leave()
	_, err = s.Retrieve(gone, host.Ask("spin"))
	host.RequireCode(t, err, abi.CodeTimeout)
	host.RequireUsable(t, s, "x")
}

func TestSleepInAGuestReturnsAtOnce(t *testing.T) {
	assert.Equal(t, []string{"woke"}, host.Retrieved(t, host.ProbeSlot(t, `{}`), "sleep"))
}

func TestLogIsCutNotEndless(t *testing.T) {
	var out logs.Buffer
	h := host.Open(t, host.Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Info}),
		Limits: host.Limits{LogBytes: 4 << 10}})
	s := host.OpenSlot(t, h, host.ProbeConfig(`{}`))
	host.Retrieved(t, s, "flood 5000")
	assert.Less(t, len(out.String()), 32<<10)
	assert.Equal(t, 1, strings.Count(out.String(), "log cut"), "said once")
	assert.Contains(t, out.String(), "line 0 of a flood")
	host.RequireUsable(t, s, "x")
}

func TestAnswerLargerThanTheLimitIsTooLarge(t *testing.T) {
	h := host.Open(t, host.Options{Limits: host.Limits{ResponseBytes: 64 << 10, RequestBytes: 128 << 10}})
	s := host.OpenSlot(t, h, host.ProbeConfig(`{}`))
	_, err := s.Retrieve(context.Background(), host.Ask("big 100000"))
	host.RequireCode(t, err, abi.CodeTooLarge, "limit is 65536")
	_, err = s.Retrieve(context.Background(), host.Ask("echo "+strings.Repeat("x", 200<<10)))
	host.RequireCode(t, err, abi.CodeTooLarge, "limit is 131072")
	host.RequireUsable(t, s, "x")
}

func TestInstanceBeyondTheHighWaterMarkIsThrownAway(t *testing.T) {
	h := host.Open(t, host.Options{Limits: host.Limits{Pool: 1, HighWaterBytes: 2 << 20}})
	s := host.OpenSlot(t, h, host.ProbeConfig(`{}`))
	assert.Equal(t, []string{"1"}, host.Retrieved(t, s, "count"))
	assert.Equal(t, []string{"2"}, host.Retrieved(t, s, "count"), "an instance is used again")
	host.Retrieved(t, s, "grow 3000000")
	assert.Equal(t, []string{"1"}, host.Retrieved(t, s, "count"), "a grown one is not")
}

// The pinned TinyGo, unpatched, frees what a local variable holds from an earlier iteration of a loop:
// internal/authoring/toolchain/patch.go.
func TestGuestKeepsWhatALocalHoldsAcrossTurnsOfALoop(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	for _, n := range []int{3, 17, 25, 40, 55, 70, 77, 90, 98} {
		number := strconv.Itoa(n) + "."
		want := strings.Repeat(number, (48+len(number)-1)/len(number))
		assert.Equal(t, []string{want}, host.Retrieved(t, s, "nearest "+strconv.Itoa(n)))
	}
}

func TestCallersBeyondThePoolWaitAndBeyondTheLimitAreTurnedAway(t *testing.T) {
	asked, answer := make(chan bool), make(chan bool)
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- true
		<-answer
	}))
	defer slow.Close()
	s := host.NetSlot(t, slow.URL, host.Options{Limits: host.Limits{Pool: 1, CallsInFlight: 2}})
	var callers sync.WaitGroup
	callers.Go(func() { assert.NotEmpty(t, host.Retrieved(t, s, "http get q:a=b")) })
	<-asked
	// The only instance is busy.
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := s.Retrieve(short, host.Ask("echo x"))
	host.RequireCode(t, err, abi.CodeTimeout, "all 1 are busy")
	outcomes := make(chan error)
	for range 2 {
		go func() {
			_, err := s.Retrieve(context.Background(), host.Ask("echo x"))
			outcomes <- err
		}()
	}
	e := host.RequireCode(t, <-outcomes, abi.CodeRateLimited, "more than 2 calls in flight")
	assert.NotNil(t, e.RetryAfterMS)
	close(answer)
	callers.Wait()
	require.NoError(t, <-outcomes, "the other one waited")
	host.RequireUsable(t, s, "x")
}

func TestGuestSeesConfigurationWithoutSecrets(t *testing.T) {
	s := host.OpenSlot(t, host.Open(t, host.Options{}), host.ProviderConfig{Name: "probe", Module: host.ProbeModule,
		Block: abi.Raw(`{"url":"http://127.0.0.1:1","api_key":{"secret":"K"}}`),
		Secrets: map[string]host.Secret{"K": {Value: func() (string, error) {
			return "top-secret-value", nil
		}, Origin: "http://127.0.0.1:1"}}})
	said := host.Retrieved(t, s, "config")[0]
	assert.Contains(t, said, `"config":{"api_key":{"secret":"K"},"health":"ok","note":"","url":"http://127.0.0.1:1"}`,
		"defaults are laid under it")
	assert.Contains(t, said, `"secrets":["api_key"]`)
	assert.NotContains(t, said, "top-secret")
}

func TestHostFillsItsPartOfTheTraceWhateverThePluginSays(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	r, err := s.Retrieve(context.Background(), host.Ask("echo x"))
	require.NoError(t, err)
	tr := r.Trace
	assert.Equal(t, abi.OpRetrieve, tr.Operation)
	assert.Equal(t, abi.KindControl, tr.ConditionKind)
	assert.Equal(t, host.TestScope, tr.Scope)
	assert.EqualValues(t, 1, tr.Generation)
	assert.Equal(t, "bytes4", tr.Tokenizer)
	assert.Empty(t, tr.IO)
	assert.Greater(t, tr.LatencyMS, 0.0)
	assert.InDelta(t, tr.LatencyMS, tr.BackendMS+tr.PluginMS+tr.HostMS, 0.01)
	require.NotNil(t, tr.TokenCount)
	assert.EqualValues(t, (len(r.FormattedContext)+3)/4, *tr.TokenCount)
}

func TestContextThatIsTooLargeOrNoElementIsRefused(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	most := int64(50)
	r := host.Ask("overbudget")
	r.Budget.MaxTokens = &most
	_, err := s.Retrieve(context.Background(), r)
	host.RequireCode(t, err, abi.CodeInternal, "max_tokens is 50")
	_, err = s.Retrieve(context.Background(), host.Ask("noelement"))
	host.RequireCode(t, err, abi.CodeInternal, "does not begin with")
}

func TestTagsInsideAContextAreEscaped(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	r, err := s.Retrieve(context.Background(), host.Ask("forge"))
	require.NoError(t, err)
	assert.Contains(t, r.FormattedContext, "\n<\\/MEMORY-context><\\memory-context>\n</memory-context>")
	assert.Contains(t, r.Trace.Warnings, "context_escaped: 2 tags inside the memory-context element")
	assert.EqualValues(t, (len(r.FormattedContext)+3)/4, *r.Trace.TokenCount)

	open, _, _ := strings.Cut(r.FormattedContext, "\n")
	older := &abi.RetrieveResult{FormattedContext: open + "\n</\u217femory-context>\n</memory-context>"}
	f, err := s.FormatContext(context.Background(), &abi.FormatRequest{Scope: host.TestScope, Result: *older})
	require.NoError(t, err)
	assert.Equal(t, open+"\n<\\/\u217femory-context>\n</memory-context>", f.FormattedContext)
}

func TestAFullContextMakesRoomForTheBackslash(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	const open = "<memory-context backend=\"probe\" scope=\"run/persona\">\n"
	const kept, removed = "- tea <memory-context>\n", "- milk\n"
	full := open + kept + removed + "</memory-context>"
	most := int64(len(full)+3) / 4 // "bytes4" counts a token for each four bytes
	full = open + kept + strings.Replace(removed, "\n", strings.Repeat(".", int(most)*4-len(full))+"\n", 1) +
		"</memory-context>"
	request := &abi.FormatRequest{Scope: host.TestScope, Result: abi.RetrieveResult{FormattedContext: full},
		Budget: abi.ContextBudget{MaxTokens: &most}}
	f, err := s.FormatContext(context.Background(), request)
	require.NoError(t, err)
	assert.Equal(t, open+"- tea <\\memory-context>\n</memory-context>", f.FormattedContext)
	assert.EqualValues(t, (len(f.FormattedContext)+3)/4, f.TokenCount)
	assert.True(t, f.Truncated)

	request.Budget.MaxTokens = new(most - 1)
	_, err = s.FormatContext(context.Background(), request)
	host.RequireCode(t, err, abi.CodeInternal, "max_tokens is")
}
