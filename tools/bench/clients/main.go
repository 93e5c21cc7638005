// Command clients compares memhost with the official Python clients of backends. The same turns are recorded and
// retrieved through each, in turns, against the same server: a fake that answers at once, and with -live, for
// graphiti-core as a library, Neo4j with a model that answers at once.
//
//	go -C tools run ./bench/clients            (-calls 200; -out DIR: clients.md and clients.rows for tools/bench -with)
//
// The first run installs the clients into bin/clients; what -live installs, and where, is in
// internal/test/testenv/README.md.
package main

import (
	"bufio"
	"context"
	_ "embed" // the Python program and its packages
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed clients.py
var program []byte

//go:embed requirements.txt
var requirements []byte

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) == 5 && os.Args[1] == "-embedded" {
		fail(embedded(ctx, os.Args[2], os.Args[3], os.Args[4]))
		return
	}
	calls := flag.Int("calls", 200, "retrievals and records of each client")
	out := flag.String("out", "", "write clients.md and clients.rows to a folder")
	live := flag.Bool("live", false, "also graphiti-core as a library, on a Neo4j that is installed and started")
	flag.Parse()
	list := servers
	if *live {
		list = append(list, graphitiCore)
	}
	fail(run(ctx, list, *calls, *out))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, servers []server, calls int, out string) (err error) {
	folder, err := filepath.Abs(filepath.Join("..", "bin", "clients"))
	if err != nil {
		return err
	}
	python, err := install(ctx, folder)
	if err != nil {
		return err
	}
	memhost := filepath.Join(folder, "memhost")
	build := exec.CommandContext(ctx, "go", "build", "-o", memhost, "./cmd/memhost")
	build.Dir, build.Stderr = "..", os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	var b, short strings.Builder
	fmt.Fprintf(&b, "\n## Compared with the official clients\n\n%d retrievals and %d records each, in turns, against a fake of the "+
		"backend that answers at once; graphiti against Neo4j, with a model that answers at once. CPU is of the client's "+
		"process, and of memhost's where there is one, for each call; memory likewise. A backend's own process is not "+
		"counted, nor the gateway in which graphiti-core runs behind memhost.\n\n"+
		"| backend | client | retrieve p50 ms | p99 ms | CPU ms | record p50 ms | p99 ms | CPU ms | memory MiB |\n"+
		"|---|---|---|---|---|---|---|---|---|\n", calls, calls)
	for i := range servers {
		list, err := servers[i].measure(ctx, folder, python, memhost, calls)
		if err != nil {
			return fmt.Errorf("%s: %w", servers[i].name, err)
		}
		for _, c := range list {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %.0f |\n", servers[i].name, c.name, c.figures("retrieve"),
				c.figures("record"), float64(c.resident)/(1<<20))
		}
		for _, operation := range []string{"retrieve", "record"} {
			fmt.Fprintf(&short, "| %s: %s through %s, p50 | %.2f ms | %s %.2f ms, %s %.2f ms | |\n", servers[i].name, operation,
				list[1].name, ms(list[1].percentile(operation, 50)), list[0].name, ms(list[0].percentile(operation, 50)),
				list[2].name, ms(list[2].percentile(operation, 50)))
		}
	}
	fmt.Print(b.String())
	if out == "" {
		return nil
	}
	return errors.Join(os.MkdirAll(out, 0o755),
		os.WriteFile(filepath.Join(out, "clients.md"), []byte(b.String()), 0o644),
		os.WriteFile(filepath.Join(out, "clients.rows"), []byte(short.String()), 0o644))
}

// percentile is what a call took.
func (c *contestant) percentile(operation string, n int) time.Duration {
	took := slices.Sorted(slices.Values(c.took[operation]))
	return took[min(len(took)*n/100, len(took)-1)]
}

// figures are p50, p99 and CPU of an operation, as cells of a table.
func (c *contestant) figures(operation string) string {
	return fmt.Sprintf("%.2f | %.2f | %.2f", ms(c.percentile(operation, 50)), ms(c.percentile(operation, 99)),
		ms(c.used[operation]))
}

// install makes a virtual environment with the clients, unless there is one.
func install(ctx context.Context, folder string) (python string, err error) {
	python, stamp := filepath.Join(folder, "bin", "python"), filepath.Join(folder, "requirements.txt")
	if was, err := os.ReadFile(stamp); err == nil && string(was) == string(requirements) {
		return python, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	list := stamp + ".new"
	if err := os.WriteFile(list, requirements, 0o644); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"python3", "-m", "venv", folder},
		{python, "-m", "pip", "install", "-q", "--no-deps", "--disable-pip-version-check", "-r", list}} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return "", fmt.Errorf("%v: %w (Debian has venv in python3-venv)", args, err)
		}
	}
	return python, os.Rename(list, stamp)
}

// measure drives the clients of one backend: the official one, memhost's Go API, and its HTTP door.
func (s *server) measure(ctx context.Context, folder, python, memhost string, calls int) (_ []*contestant, err error) {
	backend, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, backend.stop()) }()
	if backend.python != "" {
		python = backend.python
	}
	script := filepath.Join(folder, "clients.py")
	if err := os.WriteFile(script, program, 0o644); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "memhost-clients-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	door, err := startDoor(ctx, dir, memhost, s.name, backend)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, door.stop()) }()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var list []*contestant
	defer func() {
		for _, c := range list {
			err = errors.Join(err, c.stop())
		}
	}()
	for _, c := range []*contestant{
		{name: s.client, args: []string{python, script, s.name, backend.url}},
		{name: "memhost, Go", args: []string{self, "-embedded", s.name, backend.block, backend.secrets}},
		{name: "memhost over HTTP, from Python", args: []string{python, script, "memhost", door.url}, door: door.cmd},
	} {
		if err := c.start(ctx, backend.environment); err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	const warm = 20
	for n := range warm {
		if err := each(list, "record", n, nil); err != nil {
			return nil, err
		}
	}
	for n := range warm {
		if err := each(list, "retrieve", n, nil); err != nil {
			return nil, err
		}
	}
	for _, operation := range []string{"retrieve", "record"} {
		for _, c := range list {
			c.began = c.cpu()
		}
		for n := range calls {
			if err := each(list, operation, warm+n, func(c *contestant, took time.Duration) {
				c.took[operation] = append(c.took[operation], took)
			}); err != nil {
				return nil, err
			}
		}
		for _, c := range list {
			c.used[operation] = (c.cpu() - c.began) / time.Duration(calls)
		}
	}
	for _, c := range list {
		c.resident = c.memory()
	}
	return list, nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// each makes a call through every contestant; the first one differs from call to call.
func each(list []*contestant, operation string, n int, took func(*contestant, time.Duration)) error {
	for i := range list {
		c := list[(i+n)%len(list)]
		d, err := c.call(operation, n)
		if err != nil {
			return fmt.Errorf("%s: %s %d: %w", c.name, operation, n, err)
		}
		if took != nil {
			took(c, d)
		}
	}
	return nil
}

// contestant is a process that makes calls.
type contestant struct {
	name string
	args []string
	// door is the slot behind it, if it has one.
	door *exec.Cmd

	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	began time.Duration
	took  map[string][]time.Duration
	used  map[string]time.Duration // of the CPU, for each call
	// resident is its processes' memory at the end, in bytes.
	resident int64
}

func (c *contestant) start(ctx context.Context, environment []string) error {
	c.took, c.used = map[string][]time.Duration{}, map[string]time.Duration{}
	c.cmd = exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	c.cmd.Stderr = os.Stderr
	c.cmd.Env = slices.Concat(os.Environ(), environment, []string{"MEM0_TELEMETRY=False"})
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return err
	}
	if line, err := c.out.ReadString('\n'); err != nil || line != "ready\n" {
		return fmt.Errorf("%s is not ready: %q, %w", c.name, line, errors.Join(err, c.stop()))
	}
	return nil
}

func (c *contestant) call(operation string, n int) (time.Duration, error) {
	if _, err := fmt.Fprintln(c.in, operation, n); err != nil {
		return 0, err
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	took, found := strings.CutPrefix(strings.TrimSpace(line), "ok ")
	if !found {
		return 0, fmt.Errorf("it answered %q", line)
	}
	nanoseconds, err := strconv.ParseInt(took, 10, 64)
	return time.Duration(nanoseconds), err
}

func (c *contestant) stop() error {
	_ = c.in.Close()
	return c.cmd.Wait()
}

func (c *contestant) processes() []*exec.Cmd {
	if c.door != nil {
		return []*exec.Cmd{c.cmd, c.door}
	}
	return []*exec.Cmd{c.cmd}
}

// cpu is the time that its processes have used the CPU.
func (c *contestant) cpu() (used time.Duration) {
	for _, p := range c.processes() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 12 {
			for _, field := range fields[11:13] { // utime and stime, in hundredths of a second
				ticks, _ := strconv.ParseInt(field, 10, 64)
				used += time.Duration(ticks) * 10 * time.Millisecond
			}
		}
	}
	return used
}

// memory is what its processes have resident, in bytes.
func (c *contestant) memory() (bytes int64) {
	for _, p := range c.processes() {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
		_, rest, _ := strings.Cut(string(text), "VmRSS:")
		if fields := strings.Fields(rest); len(fields) > 0 {
			kib, _ := strconv.ParseInt(fields[0], 10, 64)
			bytes += kib << 10
		}
	}
	return bytes
}

// door is a slot that serves over HTTP.
type door struct {
	cmd *exec.Cmd
	url string
}

func startDoor(ctx context.Context, dir, memhost, provider string, b *backend) (*door, error) {
	config := fmt.Sprintf("memory: {backend: %s, lookup_existing: false, smoke: never, backends: {%s: %s}}\n"+
		"secrets: %s\ndata: {durability: process}\n", provider, provider, b.block, b.secrets)
	path := filepath.Join(dir, "memhost.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, err
	}
	d := &door{cmd: exec.CommandContext(ctx, memhost, "run", "--config", path, "--data", filepath.Join(dir, "data"),
		"--listen", "127.0.0.1:0", "--json")}
	d.cmd.Env = append(os.Environ(), b.environment...)
	log, err := os.Create(filepath.Join(dir, "memhost.log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	d.cmd.Stderr = log
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	if d.url, err = urlOf(out); err != nil {
		return nil, fmt.Errorf("memhost does not serve: %w", errors.Join(err, d.stop(), quoteFile(log.Name())))
	}
	return d, nil
}

// quoteFile is an error with the text of a file.
func quoteFile(path string) error {
	text, err := os.ReadFile(path)
	return errors.Join(err, errors.New(string(text)))
}

func (d *door) stop() error {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	return d.cmd.Wait()
}
