package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/memhost/memhost/internal/test/testenv/llm"
)

// Env owns what one run starts: a temporary folder with data and logs, and the processes. Use New, and Close at the
// end.
type Env struct {
	// Dir is the temporary folder; Dir/logs has one file a process. Close removes it, unless Keep says otherwise.
	Dir string
	// Cache is the folder with what is installed; it outlives the run.
	Cache string
	// Stub is the model and the embedder, unless Options.Endpoint names another.
	Stub *llm.Server

	endpoint Endpoint
	out      io.Writer
	keep     bool
	began    time.Time
	// port is the first of the backend's own ports (0: free ones), startTimeout how long one server may take (0: its
	// own time), lasting that Dir is the user's and its data are used again.
	port         int
	startTimeout time.Duration
	lasting      bool
	// progress is how often an installation says that it is still running.
	progress time.Duration

	mu      sync.Mutex
	ending  []func() error // run in reverse
	running []*process
}

// Options of New; the zero value works silently with the stub.
type Options struct {
	// Out receives messages about what is being done. nil: none.
	Out io.Writer
	// Endpoint is an OpenAI-compatible endpoint to use instead of the stub.
	Endpoint *Endpoint
	// Keep leaves the temporary folder in place on Close.
	Keep bool
	// Data is a folder for data and logs that stays, so that the next start finds what the backend remembered. One
	// run at a time. Empty: a temporary folder.
	Data string
	// Port is the backend's port on 127.0.0.1; a backend with two servers takes the next one too. 0: free ports.
	Port int
	// StartTimeout is how long each server may take to start. 0: 60 s to 5 min, by server.
	StartTimeout time.Duration
	// Embedder chooses the stub's embeddings: "" or "hash" are hashed words, "wordllama" a small model.
	Embedder string
}

// Endpoint is an OpenAI-compatible endpoint.
type Endpoint struct {
	// BaseURL ends in /v1, as OpenAI's clients need it.
	BaseURL string
	APIKey  string
	// Model for chats and EmbeddingModel, with its Dimensions.
	Model, EmbeddingModel string
	Dimensions            int
}

// New makes the folder and starts the stub.
func New(options Options) (*Env, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	e := &Env{Cache: cache, out: options.Out, keep: options.Keep || options.Data != "", began: time.Now(),
		port: options.Port, startTimeout: options.StartTimeout, lasting: options.Data != "", progress: 10 * time.Second}
	if e.out == nil {
		e.out = io.Discard
	}
	if e.Dir, err = e.folder(options.Data); err != nil {
		return nil, err
	}
	dir := e.Dir
	// Servers that refuse to run as root (PostgreSQL) must reach their folders below this one.
	if err := errors.Join(os.Chmod(dir, 0o711), os.MkdirAll(e.logs(), 0o755)); err != nil {
		return nil, err
	}
	if options.Endpoint != nil {
		e.endpoint = *options.Endpoint
		if e.lasting {
			return e, e.same("embedder", e.endpoint.EmbeddingModel)
		}
		return e, nil
	}
	if err := e.startStub(options.Embedder); err != nil {
		e.KeepLogs()
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// folder makes the folder of a run: a temporary one, or data, which is locked until the Env is closed.
func (e *Env) folder(data string) (string, error) {
	if data == "" {
		return os.MkdirTemp("", "memhost-live-")
	}
	dir, err := filepath.Abs(data)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", err
	}
	gate, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	if err := tryLock(gate); err != nil {
		return "", errors.Join(fmt.Errorf("the data folder %s is in use by another run: %w", dir, err), gate.Close())
	}
	e.onClose(gate.Close)
	return dir, nil
}

// same holds a data folder to what it was made with, such as the embedder whose vectors it has.
func (e *Env) same(name, value string) error {
	file := filepath.Join(e.Dir, name)
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return os.WriteFile(file, []byte(value+"\n"), 0o644)
	}
	if was := strings.TrimSpace(string(text)); err == nil && was != value {
		return fmt.Errorf("the data folder %s was made with the %s %q, and this run has %q: name another folder, or the "+
			"same %s",
			e.Dir, name, was, value, name)
	}
	return err
}

// startStub serves package llm in this process, on a free port of the loopback address.
func (e *Env) startStub(embedder string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	embed, err := e.embedder(embedder)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	e.Stub = llm.New(llm.Options{Embed: embed})
	server := &http.Server{Handler: e.Stub, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	e.onClose(func() error {
		e.Stub.ClearFaults()
		return server.Close()
	})
	e.endpoint = Endpoint{BaseURL: fmt.Sprintf("http://%s/v1", listener.Addr()), APIKey: "stub", Model: "stub-chat",
		EmbeddingModel: "stub-embedding"}
	return nil
}

// Close ends all processes, newest first, and removes the temporary folder. It may be called more than once.
func (e *Env) Close() error {
	e.mu.Lock()
	ending := e.ending
	e.ending = nil
	e.mu.Unlock()
	var errs []error
	for i := len(ending) - 1; i >= 0; i-- {
		errs = append(errs, ending[i]())
	}
	if !e.keep {
		errs = append(errs, os.RemoveAll(e.Dir))
	}
	return errors.Join(errs...)
}

// Wait returns when the context ends (nil) or a process ends by itself (an error that names it).
func (e *Env) Wait(ctx context.Context) error {
	e.mu.Lock()
	running := append([]*process(nil), e.running...)
	e.mu.Unlock()
	ended := make(chan *process, len(running))
	for _, p := range running {
		go func() {
			select {
			case <-p.done:
				ended <- p
			case <-ctx.Done():
			}
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case p := <-ended:
		return fmt.Errorf("%s ended by itself; its log is %s\n%s", p.name, p.logFile, tail(p.logFile, 15))
	}
}

func (e *Env) logs() string { return filepath.Join(e.Dir, "logs") }

// Logs is the folder with a log file for each process.
func (e *Env) Logs() string { return e.logs() }

func (e *Env) onClose(f func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ending = append(e.ending, f)
}

// say tells what is being done, with the seconds since the start.
func (e *Env) say(format string, args ...any) {
	_, _ = fmt.Fprintf(e.out, "%6.1f s  %s\n", time.Since(e.began).Seconds(), fmt.Sprintf(format, args...))
}

// KeepLogs lets the logs stay on Close, when what was started failed.
func (e *Env) KeepLogs() {
	if e.keep {
		return
	}
	e.keep = true
	e.mu.Lock()
	defer e.mu.Unlock()
	// The last to run: when all processes have ended, everything but the logs goes.
	e.ending = append([]func() error{func() error {
		entries, err := os.ReadDir(e.Dir)
		for _, entry := range entries {
			if entry.Name() != filepath.Base(e.logs()) {
				err = errors.Join(err, os.RemoveAll(filepath.Join(e.Dir, entry.Name())))
			}
		}
		return err
	}}, e.ending...)
}

// servicePort is the n-th port of the backend itself, from 0: the one that was asked for, or a free one.
//
// Errors: a port that was asked for and is in use.
func (e *Env) servicePort(n int) (int, error) {
	if e.port == 0 {
		return freePort()
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", e.port+n))
	if err != nil {
		return 0, fmt.Errorf("port %d cannot be used: %w", e.port+n, err)
	}
	return e.port + n, l.Close()
}

// freePort asks the system for a port on which no program listens at present.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// cacheDir is memhost/live in the user's cache folder. Root's is closed to the account that PostgreSQL runs as, so
// root's is /var/cache/memhost.
func cacheDir() (string, error) {
	base := "/var/cache"
	if os.Geteuid() != 0 {
		var err error
		if base, err = os.UserCacheDir(); err != nil {
			return "", err
		}
	}
	dir := filepath.Join(base, "memhost", "live")
	return dir, os.MkdirAll(dir, 0o755)
}

// repository is the root of this module: the folder with go.mod, from the working directory upwards.
func repository() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if text, err := os.ReadFile(filepath.Join(at, "go.mod")); err == nil &&
			strings.HasPrefix(string(text), "module github.com/memhost/memhost\n") {
			return at, nil
		}
		parent := filepath.Dir(at)
		if parent == at {
			return "", errors.New("run this inside memhost's repository: no go.mod of it here or above")
		}
		at = parent
	}
}
