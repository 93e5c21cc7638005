package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is a running server: its own process group, its output in a file.
type process struct {
	name    string
	logFile string
	cmd     *exec.Cmd
	done    chan struct{} // closed when it has ended
	ended   bool          // by end
}

// command says what to start.
type command struct {
	name string // also of the log file
	args []string
	dir  string
	// env is added to a clean environment: PATH, HOME, LANG and what Python and Java need, no proxies and no keys.
	env []string
	// stop is sent to end it (default SIGTERM), patience how long it may take before it is killed (default 15 s).
	stop     syscall.Signal
	patience time.Duration
	// asServerAccount runs it as the account for servers that refuse root, when this process is root's.
	asServerAccount bool
}

// start starts a process that Close ends.
func (e *Env) start(c command) (*process, error) {
	if c.stop == 0 {
		c.stop = syscall.SIGTERM
	}
	if c.patience == 0 {
		c.patience = 15 * time.Second
	}
	p := &process{name: c.name, logFile: filepath.Join(e.logs(), c.name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(c.args[0], c.args[1:]...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = c.dir, out, out
	p.cmd.Env = append(cleanEnvironment(e.Dir), c.env...)
	attributes, err := processAttributes(c.asServerAccount)
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	p.cmd.SysProcAttr = attributes
	started := make(chan error)
	go p.run(out, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	e.mu.Lock()
	e.running = append(e.running, p)
	e.mu.Unlock()
	e.onClose(func() error { return p.end(c.stop, c.patience) })
	return p, nil
}

// end asks the process to end, and kills its group when it does not, or what it left behind.
func (p *process) end(signal syscall.Signal, patience time.Duration) error {
	if p.ended {
		return nil
	}
	p.ended = true
	if signal == 0 {
		signal = syscall.SIGTERM
	}
	pid := p.cmd.Process.Pid
	select {
	case <-p.done:
	default:
		if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		killGroup(pid)
		return nil
	case <-timer.C:
		killGroup(pid)
		<-p.done
		return fmt.Errorf("%s did not end within %s and was killed", p.name, patience)
	}
}

// run is a tool that ends by itself, such as an installer. Its output goes into a log file; an error shows its end.
func (e *Env) run(ctx context.Context, c command) error {
	logFile := filepath.Join(e.logs(), c.name+".log")
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, out, out
	cmd.Env = append(os.Environ(), c.env...) // installers need the machine's proxies and mirrors
	if c.asServerAccount {
		if cmd.SysProcAttr, err = processAttributes(true); err != nil {
			return err
		}
		cmd.Env = append(cleanEnvironment(e.Dir), c.env...)
	}
	stop := e.tellProgress(c.name, logFile)
	err = cmd.Run()
	stop()
	if err != nil {
		return fmt.Errorf("%s: %s: %w; log %s\n%s", c.name, strings.Join(c.args, " "), err, logFile, tail(logFile, 15))
	}
	return nil
}

// tellProgress says every few seconds that a tool is still at work, with the last line of its log, until stop is
// called.
func (e *Env) tellProgress(name, logFile string) (stop func()) {
	if e.progress == 0 {
		return func() {}
	}
	began, over, told := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		tick := time.NewTicker(e.progress)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				line := strings.TrimSpace(tail(logFile, 1))
				e.say("%s is at work for %.0f s: %s", name, time.Since(began).Seconds(), line[:min(len(line), 100)])
			}
		}
	}()
	return func() {
		close(over)
		<-told
	}
}

// ready polls until the check passes, the process ends or the time is over.
func (e *Env) ready(ctx context.Context, p *process, within time.Duration, check func(context.Context) error) error {
	within = e.timeToStart(within)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		if last = check(ctx); last == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready (%s); log %s\n%s", p.name, p.cmd.ProcessState, p.logFile,
				tail(p.logFile, 25))
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready within %s: %w; more time: --start-timeout %s; log %s\n%s",
				p.name, within, last, 2*within, p.logFile, tail(p.logFile, 25))
		case <-tick.C:
		}
	}
}

// timeToStart is the flag --start-timeout, or else the default.
func (e *Env) timeToStart(otherwise time.Duration) time.Duration {
	if e.startTimeout > 0 {
		return e.startTimeout
	}
	return otherwise
}

// answers is a check for ready: the address answers below 500.
func answers(url string, header ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		setHeaders(r, header)
		res, err := direct.Do(r)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
		if res.StatusCode >= 500 {
			return fmt.Errorf("%s: %s %s", url, res.Status, body)
		}
		return nil
	}
}

// searchOnce has a server that is up search for something, before it is called ready. On Neo4j the first search after a
// start takes 2 to 7 s, later ones a tenth of that (its queries are planned and compiled), and on a busy machine the first
// takes longer than the host's default deadline.
func (e *Env) searchOnce(ctx context.Context, p *process, url string, body any, header ...string) error {
	ctx, cancel := context.WithTimeout(ctx, e.timeToStart(2*time.Minute))
	defer cancel()
	failed := func(err error) error {
		return fmt.Errorf("%s: the first search: %w; log %s\n%s", p.name, err, p.logFile, tail(p.logFile, 25))
	}
	text, err := json.Marshal(body)
	if err != nil {
		return failed(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return failed(err)
	}
	setHeaders(r, append(header, "Content-Type", "application/json"))
	began := time.Now()
	res, err := direct.Do(r)
	if err != nil {
		return failed(err)
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
	if res.StatusCode != http.StatusOK {
		return failed(fmt.Errorf("%s: %s %s", url, res.Status, answer))
	}
	e.say("%s answered its first search after %.1f s", p.name, time.Since(began).Seconds())
	return nil
}

// setHeaders sets pairs of names and values.
func setHeaders(r *http.Request, pairs []string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		r.Header.Set(pairs[i], pairs[i+1])
	}
}

// direct is a client without proxies.
var direct = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// cleanEnvironment has neither proxies, nor keys, nor memhost's settings: a server talks only to the
// addresses in its own settings.
func cleanEnvironment(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8", "TZ=UTC", "PYTHONUNBUFFERED=1",
		"PYTHONDONTWRITEBYTECODE=1",
		"NO_PROXY=127.0.0.1,localhost", "DO_NOT_TRACK=1", "ANONYMIZED_TELEMETRY=false", "HF_HUB_OFFLINE=1"}
}

// tail gives the last lines of a file, for an error text.
func tail(file string, lines int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	all := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
