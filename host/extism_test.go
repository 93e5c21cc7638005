package host_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/extism"
	"github.com/memhost/memhost/internal/engine/wasmbin"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testguest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAnExtismModuleKeepsEveryPromise runs the tests of the host's guarantees with a probe that was built with go-pdk:
// it does the same as the usual probe, behind the other engine.
func TestAnExtismModuleKeepsEveryPromise(t *testing.T) {
	brief.Leave(t)
	require.NotNil(t, testguest.ProbeExtism(), "internal/test/testguest/probe_extism has not been built: make plugins")
	mh1 := host.ProbeModule
	host.ProbeModule = testguest.ProbeExtism()
	defer func() { host.ProbeModule = mh1 }()
	for _, promise := range []struct {
		what string
		test func(*testing.T)
	}{
		{"deadlines: spin, trap, exit, no memory, no answer", TestGuestThatMisbehavesIsStoppedReportedAndReplaced},
		{"deadlines: others are left alone", TestSpinningGuestLeavesOtherCallersAlone},
		{"deadlines: with one processor", TestSpinningGuestsLeaveOneProcessorToOthers},
		{"deadlines: the caller's", TestCallersDeadlineStopsTheGuest},
		{"deadlines: sleep", TestSleepInAGuestReturnsAtOnce},
		{"limits: log", TestLogIsCutNotEndless},
		{"limits: answer", TestAnswerLargerThanTheLimitIsTooLarge},
		{"limits: high-water mark", TestInstanceBeyondTheHighWaterMarkIsThrownAway},
		{"limits: callers", TestCallersBeyondThePoolWaitAndBeyondTheLimitAreTurnedAway},
		{"errors: a panic's text", TestPanicTextIsKeptInTheError},
		{"configuration: no secret", TestGuestSeesConfigurationWithoutSecrets},
		{"configuration: presets", TestPresetOfAProviderIsLaidUnderTheBlock},
		{"trace: the host's part", TestHostFillsItsPartOfTheTraceWhateverThePluginSays},
		{"context: one element", TestContextThatIsTooLargeOrNoElementIsRefused},
		{"network: sent and accounted for", TestNativeCallIsSentAndAccountedFor},
		{"network: time of one exchange", host.TestAnExchangeHasItsOwnTimeWhereTheGuestAsksForIt},
		{"network: policy", TestPolicyLetsNothingElseOut},
		{"network: link-local addresses", TestLinkLocalAddressIsRefusedWhateverNamedIt},
		{"network: errors come back", TestNativeErrorsComeBackAsTheyAre},
		{"network: outage", TestOutageIsAnErrorAndNoEmptyResult},
		{"network: no ambient proxy", TestAmbientProxyIsNotUsed},
		{"network: interceptor", TestInterceptorSeesACallAndDecidesWhatComesOfIt},
		{"secrets: in their header", TestSecretReachesItsHeaderAndNothingElse},
		{"secrets: not in a cassette", TestSecretsAreInNoCassette},
		{"secrets: a database's", TestPasswordNeverReachesTheGuestOrAnError},
		{"bolt: run and accounted for", TestStatementIsRunAndAccountedFor},
		{"bolt: read-only", TestReadOnlyLetsOnlyReadStatementsPassAndNeo4jHoldsThemToIt},
		{"read-only: a wall", host.TestReadOnlyIsAWall},
		{"read-only: native calls", host.TestReadOnlyRefusesEveryCallThatIsNotARead},
		{"read-only: state", host.TestStateIsNotWrittenByAReadingOperation},
		{"state: own writes", TestStateOfAnOperationSeesItsOwnWrites},
		{"state: versions", TestVersionedPutIsAConditionOfTheWholeOperation},
		{"state: bounds", TestStateOfAScopeIsBounded},
		{"state: scopes", TestLookAlikeScopesShareNothing},
		{"ledger: the same event again", TestSameEventAgainGetsTheFirstReceipt},
		{"ledger: one delivery", TestConcurrentCallersOfOneEventShareOneDelivery},
		{"ledger: uncertain", TestOutcomeThatIsUnknownIsAskedForBeforeAnythingIsSentAgain},
		{"ledger: order", TestBatchKeepsOrderAndJudgesEachEventByItself},
		{"reset", TestResetClearsOneScopeAndStartsItsNextGeneration},
		{"work that yields", host.TestWorkThatYieldsLetsOtherWritesPass},
		{"swap: equal bytes", TestSwapToEqualBytesLeavesTheNewModuleWhole},
		{"swap: fails", TestFailedSwapNamesItsStepAndTheOldOneServes},
		{"record and replay", TestReplayReproducesEveryAnswer},
		{"virtual time", TestVirtualTime},
	} {
		t.Run(promise.what, promise.test)
	}
}

func TestInspectTellsWhichEngineAModuleIsFor(t *testing.T) {
	for engine, wasm := range map[string][]byte{
		"wazero, metered":                        testguest.Echo(),
		"extism go-sdk on wazero, metered":       testguest.EchoExtism(),
		"extism go-sdk on wazero, context check": beyondTheMeter(t, testguest.ProbeExtism()),
	} {
		t.Run(engine, func(t *testing.T) {
			m, err := host.Inspect(wasm, host.Limits{}, extism.Engine())
			require.NoError(t, err)
			found, warnings := host.EngineOf(m, wasm)
			assert.Equal(t, engine, found)
			loaded, err := host.Open(t, host.Options{}).Load(t.Context(), wasm)
			require.NoError(t, err)
			assert.Equal(t, engine, loaded.Engine)
			assert.Equal(t, warnings, loaded.Warnings)
		})
	}
}

func TestAnExtismModuleThatCannotBeMeteredIsStoppedAllTheSame(t *testing.T) {
	c := host.ProbeConfig(`{}`)
	c.Module = beyondTheMeter(t, testguest.ProbeExtism())
	s := host.OpenSlot(t, host.Impatient(host.Open(t, host.Options{})), c)
	_, err := s.Retrieve(t.Context(), host.Ask("spin"))
	host.RequireCode(t, err, abi.CodeTimeout, "stopped in")
	host.RequireUsable(t, s, "after the spin")
}

// The same provider behind either engine is one memory: after a swap there and back, everything is still there.
func TestSwapBetweenTheEnginesKeepsTheMemory(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	other := host.ProbeConfig(`{}`)
	other.Module = testguest.ProbeExtism()
	host.RunCommands(t, s, "e1", "append turns one")
	for i, c := range []host.ProviderConfig{other, host.ProbeConfig(`{}`), other} {
		m, err := s.Swap(t.Context(), c)
		require.NoError(t, err)
		want, err := host.Inspect(c.Module, host.Limits{}, extism.Engine())
		require.NoError(t, err)
		assert.Equal(t, want.SHA256, m.Module.SHA256)
		assert.Equal(t, want.Manifest.ABI, m.ABI)
		host.RunCommands(t, s, fmt.Sprint("swap", i), fmt.Sprint("append turns swap", i))
	}
	assert.Equal(t, []string{"1=one 2=swap0 3=swap1 4=swap2 "}, host.Retrieved(t, s, "read turns"))
	again, err := s.RecordEvent(t.Context(), host.Event("e1", "append turns one"))
	require.NoError(t, err)
	assert.True(t, again.Duplicate, "the ledger is the provider's, whichever engine runs it")
}

func TestTraceIsThatOfTheTwin(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("an answer"))
	}))
	defer backend.Close()
	trace := func(module []byte) *abi.Trace {
		c := host.ProbeConfig(fmt.Sprintf(`{"url":%q}`, backend.URL))
		c.Module = module
		r, err := host.OpenSlot(t, host.Open(t, host.Options{}), c).Retrieve(t.Context(),
			host.Ask("echo tea;http get q:a=b;http item id=../x;tokens many words"))
		require.NoError(t, err)
		tr := *r.Trace
		require.Len(t, tr.IO, 2)
		assert.Greater(t, tr.PluginMS, 0.0)
		assert.NotEmpty(t, tr.ConsistencyAsOf)
		tr.ConsistencyAsOf, tr.LatencyMS, tr.BackendMS, tr.PluginMS, tr.HostMS = "", 0, 0, 0, 0
		for i := range tr.IO {
			require.NotNil(t, tr.IO[i].StartMS)
			tr.IO[i].StartMS, tr.IO[i].MS = nil, 0
		}
		return &tr
	}
	assert.Equal(t, string(abi.Marshal(trace(testguest.Probe()))), string(abi.Marshal(trace(testguest.ProbeExtism()))))
}

// extismModule is a hand-made Extism module. The code of its operations starts with one import of extism:host/env or
// WASI, which has index 0, and continues with the given code.
func extismModule(imports []wasmFunc, code map[string][]byte) *craftedModule {
	m := &craftedModule{pages: 1, memory: abi.MemoryExport, code: code, manifest: `{"manifest":1,"name":"hand","version":"1","abi":"mh1-extism","description":"d",
		"providers":[{"name":"hand","kind":"control"}],"config_schema":{"type":"object"}}`}
	m.funcs = append(m.funcs, imports...)
	for _, op := range abi.RequiredOperations() {
		m.funcs = append(m.funcs, wasmFunc{"", op, nil, []wasmbin.ValueType{wasmbin.I32}})
	}
	return m
}

var (
	noValues []wasmbin.ValueType
	oneI32   = []wasmbin.ValueType{wasmbin.I32}
	oneI64   = []wasmbin.ValueType{wasmbin.I64}
	twoI64   = []wasmbin.ValueType{wasmbin.I64, wasmbin.I64}
	alloc    = wasmFunc{extismEnv, "alloc", oneI64, oneI64}
	pathOpen = wasmFunc{abi.WASIModule, "path_open",
		[]wasmbin.ValueType{wasmbin.I32, wasmbin.I32, wasmbin.I32, wasmbin.I32, wasmbin.I32, wasmbin.I64, wasmbin.I64,
			wasmbin.I32, wasmbin.I32}, oneI32}
	errorSet  = wasmFunc{extismEnv, "error_set", oneI64, nil}
	outputSet = wasmFunc{extismEnv, "output_set", twoI64, nil}
)

// Opcodes of the hand-made code.
const (
	opUnreachable = 0x00
	opLoop        = 0x03
	opBranch      = 0x0c
	opCall        = 0x10
	opDrop        = 0x1a
	opI32         = 0x41
	opI64         = 0x42
	void          = 0x40
)

// Import modules: what PDKs declare, and where the engine redirects it.
const (
	extismEnv  = "extism:host/env"
	extismUser = "extism:host/user"
	extismOurs = "memhost.extism"
)

// askHealth opens a slot with a hand-made module, and calls its health.
func askHealth(t *testing.T, m *craftedModule, o host.Options) error {
	t.Helper()
	_, err := host.Impatient(host.Open(t, o)).Open(t.Context(), host.ProviderConfig{Name: "hand", Module: m.bytes(t)})
	return err
}

func TestWhatExtismOffersAndNoPluginHasIsRefusedWithItsName(t *testing.T) {
	// Imports are numbered by their module's name in reverse order: WASI's first.
	for _, c := range []struct {
		name    string
		imports []wasmFunc
		code    []byte
		want    abi.Code
		reason  string
		says    []string
	}{
		{"its own http", []wasmFunc{{extismEnv, "http_request", twoI64, oneI64}},
			[]byte{opI64, 0, opI64, 0, opCall, 0, opDrop, opI32, 0},
			abi.CodeDenied, "extism_off", []string{"http_request", "switched off", "http_send of extism:host/user"}},
		{"its variables, read", []wasmFunc{{extismEnv, "var_get", oneI64, oneI64}},
			[]byte{opI64, 0, opCall, 0, opDrop, opI32, 0},
			abi.CodeDenied, "extism_off", []string{"var_get", "state_get"}},
		{"its variables, written", []wasmFunc{{extismEnv, "var_set", twoI64, nil}},
			[]byte{opI64, 0, opI64, 0, opCall, 0, opI32, 0},
			abi.CodeDenied, "extism_off", []string{"var_set", "state_put"}},
		{"files, and it gives up with an error", []wasmFunc{pathOpen, alloc},
			[]byte{opI32, 3, opI32, 0, opI32, 0, opI32, 1, opI32, 0, opI64, 0, opI64, 0, opI32, 0, opI32, 0, opCall, 0},
			abi.CodeDenied, "files", []string{"asked for files (path_open)"}},
		{"files, and it traps", []wasmFunc{pathOpen, alloc},
			[]byte{opI32, 3, opI32, 0, opI32, 0, opI32, 1, opI32, 0, opI64, 0, opI64, 0, opI32, 0, opI32, 0, opCall, 0,
				opDrop, opUnreachable},
			abi.CodeDenied, "files", []string{"asked for files (path_open)", "unreachable"}},
		{"sockets", []wasmFunc{{abi.WASIModule, "sock_shutdown", []wasmbin.ValueType{wasmbin.I32, wasmbin.I32}, oneI32},
			alloc}, []byte{opI32, 3, opI32, 0, opCall, 0},
			abi.CodeDenied, "sockets", []string{"asked for sockets (sock_shutdown)"}},
		{"an end of its own, as if all were well", []wasmFunc{{abi.WASIModule, "proc_exit", oneI32, nil}, alloc},
			[]byte{opI32, 0, opCall, 0, opI32, 0},
			abi.CodeInternal, "abi", []string{"ended itself with exit code 0"}},
		{"time without end", []wasmFunc{alloc}, []byte{opLoop, void, opBranch, 0, 0x0b, opI32, 0},
			abi.CodeTimeout, "stopped", []string{"stopped in health"}},
		{"calls that return at once, without end", []wasmFunc{{extismEnv, "length", oneI64, oneI64}},
			[]byte{opLoop, void, opI64, 8, opCall, 0, opDrop, opBranch, 0, 0x0b, opI32, 0},
			abi.CodeTimeout, "stopped", []string{"stopped in health"}},
		{"Extism's memory without end", []wasmFunc{alloc},
			[]byte{opLoop, void, opI64, 0x80, 0x80, 0xc0, 0x00, opCall, 0, opDrop, opBranch, 0, 0x0b, opI32, 0},
			abi.CodeTooLarge, "", []string{"bytes of Extism's memory", "limits.memory_bytes"}},
		{"Extism's memory in one piece", []wasmFunc{alloc}, []byte{opI64, 0x7f, opCall, 0, opDrop, opI32, 0},
			abi.CodeTooLarge, "", []string{"asked for 18446744073709551615 bytes"}},
		{"memory that is no block", []wasmFunc{{extismEnv, "store_u64", twoI64, nil}},
			[]byte{opI64, 0x80, 0x80, 0x04, opI64, 0, opCall, 0, opI32, 0},
			abi.CodeInternal, "abi", []string{"8 bytes at 0x10000, outside the memory"}},
		{"no answer", []wasmFunc{alloc}, []byte{opI32, 0}, abi.CodeInternal, "abi", []string{"answered zero bytes"}},
		{"an error without words", []wasmFunc{alloc}, []byte{opI32, 7}, abi.CodeInternal, "untyped",
			[]string{"returned 7", "docs/write-a-plugin.md"}},
		{"a pointer that is none", []wasmFunc{errorSet}, []byte{opI64, 40, opCall, 0, opI32, 1}, abi.CodeInternal,
			"abi", []string{"outside the memory"}},
		{"an answer outside of it", []wasmFunc{outputSet},
			[]byte{opI64, 40, opI64, 0x80, 0x80, 0x04, opCall, 0, opI32, 0}, abi.CodeInternal, "abi",
			[]string{"outside the memory"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := extismModule(c.imports, map[string][]byte{abi.OpHealth: c.code})
			if c.want == abi.CodeTimeout {
				m.manifest = m.manifest[:len(m.manifest)-1] + `,"deadlines_ms":{"health":100}}`
			}
			err := askHealth(t, m, host.Options{Limits: host.Limits{MemoryBytes: 8 << 20}})
			e := host.RequireCode(t, err, c.want, c.says...)
			if c.reason != "" {
				assert.Equal(t, c.reason, e.Reason)
			}
		})
	}
}

// AssemblyScript initialises its globals in the start function, other toolchains in _initialize.
func TestStartOfAnExtismModuleHasItsDeadline(t *testing.T) {
	spin := []byte{opLoop, void, opBranch, 0, 0x0b}
	callAlloc := []byte{opI64, 8, opCall, 0, opDrop}
	for name, c := range map[string]struct {
		code  []byte
		start bool
		want  abi.Code
	}{
		"the start function spins":        {spin, true, abi.CodeTimeout},
		"_initialize spins":               {spin, false, abi.CodeTimeout},
		"the start function makes blocks": {callAlloc, true, ""},
		"_initialize makes blocks":        {callAlloc, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := extismModule([]wasmFunc{alloc}, map[string][]byte{abi.OpHealth: {opI32, 0}, abi.InitExport: c.code})
			m.funcs = append(m.funcs, wasmFunc{"", abi.InitExport, nil, nil})
			if c.start {
				m.start = abi.InitExport
				m.funcs[len(m.funcs)-1].name, m.start = "other", "other"
				m.code["other"] = c.code
			}
			deadline := 50 * time.Millisecond
			if c.want == "" {
				deadline = time.Minute
			}
			err := askHealth(t, m, host.Options{Limits: host.Limits{StartDeadline: deadline}})
			if c.want == "" {
				host.RequireCode(t, err, abi.CodeInternal, "answered zero bytes") // it started
				return
			}
			host.RequireCode(t, err, c.want, "stopped in")
		})
	}
}

func TestExtismModulesThatAreRefusedAndWhatTheyAreTold(t *testing.T) {
	good := func() *craftedModule { return extismModule([]wasmFunc{alloc}, nil) }
	for _, c := range []struct {
		name string
		m    *craftedModule
		says []string
	}{
		{"for both engines", good().with(wasmFunc{"", abi.Marker, nil, nil}),
			[]string{"cannot be for both engines", "tag extism"}},
		{"manifest of our own ABI", good().replaceText("mh1-extism", "mh1"),
			[]string{`its manifest says abi "mh1", want "mh1-extism"`}},
		{"manifest for Extism and nothing of it", extismModule(nil, nil),
			[]string{"imports nothing from extism:host/env"}},
		{"missing operation", good().without(abi.OpRetrieve), []string{"lacks the export retrieve of type () -> i32"}},
		{"mistyped operation", good().with(wasmFunc{"", abi.OpRetrieve, oneI32, oneI64}),
			[]string{"exports retrieve as (i32) -> i64, want () -> i32"}},
		{"mistyped capability", good().with(wasmFunc{"", abi.OpInventory, nil, oneI64}),
			[]string{"exports inventory as () -> i64"}},
		{"the host's half of the kernel", good().with(wasmFunc{extismEnv, "input_set", twoI64, nil}),
			[]string{"imports extism:host/env.input_set, which this host does not have"}},
		{"mistyped import", good().with(wasmFunc{extismEnv, "free", oneI32, nil}),
			[]string{"imports extism:host/env.free as (i32) -> (), want (i64) -> ()"}},
		{"nearly a host function", good().with(wasmFunc{extismUser, "state_gett", oneI64, oneI64}),
			[]string{"did it mean state_get?"}},
		{"host function with mh1's type", good().with(wasmFunc{extismUser, "state_get",
			[]wasmbin.ValueType{wasmbin.I32, wasmbin.I32}, oneI64}), []string{"want (i64) -> i64"}},
		{"our own imports", good().with(wasmFunc{abi.HostModule, "log", noValues, nil}),
			[]string{"imports memhost.log", "extism:host/env, extism:host/user and wasi_snapshot_preview1 only"}},
		{"what the host leads imports to", good().with(wasmFunc{extismOurs, "length", oneI64, oneI64}),
			[]string{"imports memhost.extism.length"}},
		{"AssemblyScript without abort", good().with(wasmFunc{"env", "abort",
			[]wasmbin.ValueType{wasmbin.I32, wasmbin.I32, wasmbin.I32, wasmbin.I32}, nil}),
			[]string{"env.abort", "--use abort="}},
		{"a function that nobody has", good().with(wasmFunc{abi.WASIModule, "proc_raise", oneI32, oneI32}),
			[]string{"proc_raise, which a plugin may not have"}},
		{"power without a route", good().with(wasmFunc{extismUser, abi.ImportHTTPSend, twoI64, oneI64}),
			[]string{"imports http_send, but its manifest has no route"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := host.Inspect(c.m.bytes(t), host.Limits{}, extism.Engine())
			host.RequireCode(t, err, abi.CodeInvalidArgument, c.says...)
		})
	}
}

func TestModuleThatImportsWhatIsSwitchedOffIsWarnedOf(t *testing.T) {
	m := extismModule([]wasmFunc{{extismEnv, "var_get", oneI64, oneI64}, {extismEnv, "http_request", twoI64, oneI64}},
		nil).bytes(t)
	info, err := host.Inspect(m, host.Limits{}, extism.Engine())
	require.NoError(t, err)
	_, warnings := host.EngineOf(info, m)
	require.Len(t, warnings, 1)
	assert.Contains(t, warnings[0], "extism_off: the module imports http_request, var_get of extism:host/env")
}

// go-sdk would send a guest's output to this process's output, which may carry a protocol.
func TestVariableThatLetsGuestsPrintIsRefused(t *testing.T) {
	t.Setenv("EXTISM_ENABLE_WASI_OUTPUT", "1")
	err := askHealth(t, extismModule([]wasmFunc{alloc}, nil), host.Options{})
	host.RequireCode(t, err, abi.CodeInvalidArgument, "EXTISM_ENABLE_WASI_OUTPUT", "unset it")
}
