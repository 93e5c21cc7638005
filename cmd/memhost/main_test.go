package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/memhost/memhost/internal/doors/server/wire"
	"github.com/memhost/memhost/internal/state"
	"github.com/memhost/memhost/internal/test/brief"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/internal/test/testguest"
)

func TestMain(m *testing.M) {
	if os.Getenv("RUN_AS_MEMHOST") != "" { // for tests that end the process in ways that a script cannot
		main()
		return
	}
	testscript.Main(withFolder{m}, map[string]func(){"memhost": main})
}

// workFolder is removed after the tests. It contains the program that builtProgram built.
var workFolder string

// withFolder runs the tests with workFolder. The scripts' folders are inside it, too, because testscript does not
// remove its own folder if only some scripts are run.
type withFolder struct{ tests *testing.M }

func (w withFolder) Run() int {
	var err error
	if workFolder, err = os.MkdirTemp("", "memhost-test"); err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(workFolder) }()
	if err := os.Setenv("GOTMPDIR", workFolder); err != nil {
		panic(err)
	}
	return w.tests.Run()
}

// noRaceSleep is for GORACE: a program with the race detector waits a second before it exits, which is not needed for
// some hundred programs.
const noRaceSleep = "atexit_sleep_ms=0"

// TestScripts runs testdata/script, one feature of the command line per script. UPDATE_SCRIPTS=1 rewrites the expected
// output.
func TestScripts(t *testing.T) {
	cache := cacheHome(t)
	forGo, source := goEnvironment(t)
	program := plainProgram(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "", RequireExplicitExec: true,
		RequireUniqueNames: true,
		Condition: func(name string) (bool, error) {
			switch name {
			case "bound": // depends on file permissions, which root ignores
				return os.Geteuid() > 0, nil
			case "quick": // [quick] stop: the rest is left to TESTS=all
				return brief.Quick(), nil
			}
			return false, fmt.Errorf("unknown condition %q", name)
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, "xdg"))
			e.Setenv("XDG_CACHE_HOME", cache)
			e.Setenv("LANG", "C")
			e.Setenv("GORACE", noRaceSleep)
			e.Setenv("GOGC", "400") // a command lives too briefly for its garbage to matter
			for name, value := range forGo {
				e.Setenv(name, value)
			}
			e.Setenv("PROGRAM", program)
			e.Setenv("DOCKER_CONFIG", filepath.Join(e.WorkDir, "docker"))
			e.Values["registry"] = &registryServer{}
			e.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("SOURCE", source)
			for name, wasm := range map[string][]byte{"guest.wasm": testguest.Echo(), "probe.wasm": testguest.Probe(),
				"extism.wasm": testguest.EchoExtism()} {
				if err := os.WriteFile(filepath.Join(e.WorkDir, name), wasm, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"waitslot": waitSlot, "http": askHTTP,
			"occupy": occupy, "exits": exits, "terminate": terminate,
			"registry": serveRegistry},
	})
}

// plainProgram is the program that scripts, and tests with several processes, run: this test binary. If this one has
// the race detector, it is one without, because most scripts run one command after another; SCRIPTS_RACE=1 (tools/tests
// -long) runs them with it.
func plainProgram(t *testing.T) string {
	t.Helper()
	if !brief.Race || os.Getenv("SCRIPTS_RACE") != "" {
		program, err := exec.LookPath("memhost")
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	program, err := builtProgram()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

var builtProgram = sync.OnceValues(func() (program string, err error) {
	program = filepath.Join(workFolder, "memhost")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-w", "-o", program, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
})

// cacheHome is XDG_CACHE_HOME for the programs in tests, so that modules are compiled only once.
func cacheHome(t *testing.T) string {
	t.Helper()
	remove, err := testcache.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	return testcache.Home()
}

// goEnvironment is what the go command needs without a home folder, and the checkout under test.
func goEnvironment(t *testing.T) (env map[string]string, source string) {
	t.Helper()
	out, err := exec.Command("go", "env", "-json", "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOSUMDB", "GONOSUMDB",
		"GOPRIVATE", "GOENV", "GOTOOLCHAIN", "GOMOD").Output()
	if err == nil {
		err = json.Unmarshal(out, &env)
	}
	if err != nil {
		t.Fatal(err)
	}
	source = filepath.Dir(env["GOMOD"])
	delete(env, "GOMOD")
	return env, source
}

// exits CODE COMMAND ARGS... runs a command that must exit with that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// waitSlot FOLDER waits until a slot serves the data folder and sets $SLOT to its HOST:PORT.
func waitSlot(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitslot FOLDER")
	}
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	watcher, err := fsnotify.NewWatcher()
	ts.Check(err)
	defer watcher.Close()
	ts.Check(watcher.Add(dir))
	const patience = time.Minute // a failed start never writes slot.json
	late := time.After(patience)
	for {
		if info, err := state.ReadSlot(dir); err == nil {
			ts.Setenv("SLOT", info.Address)
			return
		}
		select {
		case <-watcher.Events:
		case err := <-watcher.Errors:
			ts.Check(err)
		case <-late:
			ts.Fatalf("no slot serves %s after %s", args[0], patience)
		}
	}
}

// terminate FOLDER sends SIGTERM to the slot that serves the data folder.
func terminate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: terminate FOLDER")
	}
	info, err := state.ReadSlot(ts.MkAbs(args[0]))
	ts.Check(err)
	process, err := os.FindProcess(info.PID)
	ts.Check(err)
	ts.Check(process.Signal(syscall.SIGTERM))
}

// askHTTP METHOD PATH [BODY] sends a request to the slot at $SLOT, with $MEMHOST_TOKEN and $ORIGIN if they are set; the
// answer goes to standard output. With ! the status must be an error.
func askHTTP(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: http METHOD PATH [BODY]")
	}
	var body io.Reader = http.NoBody
	if len(args) == 3 {
		body = bytes.NewReader([]byte(args[2]))
	}
	r, err := http.NewRequest(args[0], "http://"+ts.Getenv("SLOT")+args[1], body)
	ts.Check(err)
	if len(args) == 3 {
		r.Header.Set("Content-Type", "application/json")
	}
	if token := ts.Getenv("MEMHOST_TOKEN"); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if origin := ts.Getenv("ORIGIN"); origin != "" {
		r.Header.Set(wire.HeaderOrigin, origin)
	}
	r.Header.Set("Accept", "application/json, text/event-stream") // required by MCP, and ignored by the other routes
	response, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	ts.Check(err)
	_, err = ts.Stdout().Write(text)
	ts.Check(err)
	if failed := response.StatusCode >= 400; failed != neg {
		ts.Fatalf("%s %s: %s\n%s", args[0], args[1], response.Status, text)
	}
}

// occupy listens on a free port until the script ends, answers like something that is not a slot, and sets $TAKEN to
// its HOST:PORT.
func occupy(ts *testscript.TestScript, neg bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "somebody else")
	})}
	go func() { _ = server.Serve(l) }()
	ts.Defer(func() { _ = server.Close() })
	ts.Setenv("TAKEN", l.Addr().String())
}

// TestScriptsNameNoMachine keeps local paths of a script's author out of it.
func TestScriptsNameNoMachine(t *testing.T) {
	err := filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, word := range []string{"/home/", "/Users/", "/root/", "/work/"} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s: names %s", path, word)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
