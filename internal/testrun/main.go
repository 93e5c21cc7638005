// Command testrun runs the project's tests, fuzz tests or benchmarks and says in a few lines what came of them. The Makefile calls it, so that
// the same words work wherever Go does.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"time"
)

func main() {
	fuzz := flag.Duration("fuzz", 0, "run every fuzz test for this long instead of the tests")
	bench := flag.Bool("bench", false, "run the benchmarks instead of the tests")
	benchstat := flag.String("benchstat", "", "benchstat's package, with its version")
	count := flag.Int("count", 6, "runs of each benchmark")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *fuzz > 0:
		err = runFuzz(ctx, *fuzz)
	case *bench:
		err = runBench(ctx, *benchstat, *count, flag.Args())
	default:
		err = runTests(ctx, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
}

// event is a line of `go test -json`.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// runTests runs all tests, prints a line per package and what a failing test said, and ends with the numbers.
func runTests(ctx context.Context, args []string) error {
	race, why := raceDetector(ctx)
	if !race && os.Getenv("RACE") == "required" {
		return fmt.Errorf("RACE=required, but %s", why)
	}
	fmt.Println(why)
	command := []string{"test", "-json"}
	if race {
		command = append(command, "-race")
	}
	if len(args) == 0 {
		args = []string{"./..."}
	}
	began := time.Now()
	cmd := exec.CommandContext(ctx, "go", append(command, args...)...)
	cmd.Stderr = os.Stderr
	if !race {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // nothing of the project needs C
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	total := newTally()
	if err := total.read(out); err != nil {
		return err
	}
	err = cmd.Wait()
	with := "without the race detector"
	if race {
		with = "with the race detector"
	}
	fmt.Printf("%s, %.0f s\n", with, time.Since(began).Seconds())
	fmt.Printf("%d passed, %d failed, %d skipped\n", total.passed, total.failed, total.skipped)
	if total.passed == 0 && err == nil {
		err = errors.New("no test ran")
	}
	return err
}

// raceDetector tells whether -race can be used: it wants cgo and a C compiler.
func raceDetector(ctx context.Context) (bool, string) {
	out, err := exec.CommandContext(ctx, "go", "env", "CC", "CGO_ENABLED").Output()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 2 {
		return false, "without the race detector: `go env` does not tell the C compiler"
	}
	cc, cgo := fields[0], fields[len(fields)-1]
	if cgo != "1" {
		return false, "without the race detector: cgo is off"
	}
	if _, err := exec.LookPath(cc); err != nil {
		return false, fmt.Sprintf("without the race detector: no C compiler %s here", cc)
	}
	return true, "with the race detector (" + cc + ")"
}

// tally counts tests and keeps the output of those that run.
type tally struct {
	passed, failed, skipped int
	output                  map[string]*bytes.Buffer
	perPackage              map[string]int
}

func newTally() *tally {
	return &tally{output: map[string]*bytes.Buffer{}, perPackage: map[string]int{}}
}

func (t *tally) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text())
			continue
		}
		t.take(e)
	}
	return lines.Err()
}

func (t *tally) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		if t.output[key] == nil {
			t.output[key] = new(bytes.Buffer)
		}
		t.output[key].WriteString(e.Output)
		return
	case "pass", "fail", "skip", "build-fail":
	default:
		return
	}
	if e.Test != "" {
		t.count(e, key)
	} else {
		t.endPackage(e, key)
	}
	delete(t.output, key)
}

func (t *tally) count(e event, key string) {
	switch e.Action {
	case "pass":
		t.passed++
		t.perPackage[e.Package]++
	case "skip":
		t.skipped++
		fmt.Print(t.output[key])
	case "fail":
		t.failed++
		fmt.Print(t.output[key])
	}
}

func (t *tally) endPackage(e event, key string) {
	if e.Action == "fail" || e.Action == "build-fail" {
		if t.output[key] != nil {
			fmt.Print(t.output[key])
		}
		if t.output[" "] != nil {
			fmt.Print(t.output[" "])
			delete(t.output, " ")
		}
		fmt.Printf("FAIL  %s\n", e.Package)
		return
	}
	if n := t.perPackage[e.Package]; n > 0 {
		fmt.Printf("ok    %-58s %5d tests %6.1f s\n", strings.TrimPrefix(e.Package, "github.com/memhost/"), n, e.Elapsed)
	}
}

// runFuzz runs each fuzz test of the tree in turn: go test takes one at a time.
func runFuzz(ctx context.Context, each time.Duration) error {
	name := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	found := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range name.FindAllSubmatch(text, -1) {
			dir := "./" + filepath.ToSlash(filepath.Dir(path))
			found[dir] = append(found[dir], string(m[1]))
		}
		return nil
	})
	if err != nil {
		return err
	}
	dirs := make([]string, 0, len(found))
	for dir := range found {
		dirs = append(dirs, dir)
	}
	sort.Strings(dirs)
	for _, dir := range dirs {
		for _, test := range found[dir] {
			fmt.Printf("fuzz %s %s for %s\n", dir, test, each)
			if err := run(ctx, os.Stdout, "go", "test", dir, "-run", "^$", "-fuzz", "^"+test+"$", "-fuzztime", each.String()); err != nil {
				return fmt.Errorf("%s %s: %w", dir, test, err)
			}
		}
	}
	return nil
}

// runBench runs the benchmarks, shows them as they come, and then their medians with spread by benchstat.
func runBench(ctx context.Context, benchstat string, count int, args []string) error {
	if len(args) == 0 {
		args = []string{"./..."}
	}
	file := filepath.Join(os.TempDir(), fmt.Sprintf("memhost-bench-%d.txt", os.Getpid()))
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	fmt.Printf("benchmarks, %d runs of each, kept in %s\n", count, file)
	command := append([]string{"test", "-run", "^$", "-bench", ".", "-benchmem", "-timeout", "60m", "-count", fmt.Sprint(count), "-p", "1"}, args...)
	err = run(ctx, io.MultiWriter(out, os.Stdout), "go", command...)
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil || benchstat == "" {
		return err
	}
	fmt.Println("\nmedians and spread (benchstat):")
	return run(ctx, os.Stdout, "go", "run", benchstat, file)
}

func run(ctx context.Context, out io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	return cmd.Run()
}
