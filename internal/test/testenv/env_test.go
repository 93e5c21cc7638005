//go:build linux

package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newEnv(t *testing.T) *Env {
	t.Helper()
	dir := t.TempDir()
	e := &Env{Dir: filepath.Join(dir, "run"), Cache: filepath.Join(dir, "cache"), out: &strings.Builder{},
		began: time.Now()}
	require.NoError(t, errors.Join(os.MkdirAll(e.logs(), 0o755), os.MkdirAll(e.Cache, 0o755)))
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func TestInstalledFillsOnceAndAgainAfterAFailure(t *testing.T) {
	e, fills := newEnv(t), 0
	fill := func(dir string) error {
		fills++
		require.NoFileExists(t, filepath.Join(dir, "half"), "what a failed fill left is gone")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "half"), nil, 0o644))
		if fills == 1 {
			return errors.New("no network")
		}
		return nil
	}
	_, err := e.installed("x", "recipe 1", fill)
	require.ErrorContains(t, err, "no network")
	first, err := e.installed("x", "recipe 1", fill)
	require.NoError(t, err)
	again, err := e.installed("x", "recipe 1", fill)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Equal(t, 2, fills)
	other, err := e.installed("x", "recipe 2", fill)
	require.NoError(t, err)
	require.NotEqual(t, first, other, "another recipe is another folder")
}

func TestAProcessEndsWithItsEnv(t *testing.T) {
	e := newEnv(t)
	p, err := e.start(command{name: "sleeper", args: []string{"sh", "-c", "sleep 1000 & wait"}})
	require.NoError(t, err)
	group := p.cmd.Process.Pid
	require.NoError(t, e.Close())
	require.Eventually(t, func() bool {
		return errors.Is(syscall.Kill(-group, 0), syscall.ESRCH)
	}, 5*time.Second, 5*time.Millisecond,
		"its children too")
	require.NoDirExists(t, e.Dir)
}

func TestAProcessThatDoesNotEndIsKilled(t *testing.T) {
	e := newEnv(t)
	p, err := e.start(command{name: "deaf", args: []string{"sh", "-c",
		"trap '' TERM; echo up; while :; do sleep 1; done"}})
	require.NoError(t, err)
	require.NoError(t, e.ready(t.Context(), p, 5*time.Second, func(context.Context) error {
		if text, _ := os.ReadFile(p.logFile); len(text) == 0 {
			return errors.New("not up")
		}
		return nil
	}))
	require.ErrorContains(t, p.end(syscall.SIGTERM, 50*time.Millisecond), "deaf did not end")
}

func TestReadyShowsTheLogOfAProcessThatEnded(t *testing.T) {
	e := newEnv(t)
	p, err := e.start(command{name: "broken", args: []string{"sh", "-c", "echo the port is taken; exit 3"}})
	require.NoError(t, err)
	err = e.ready(t.Context(), p, 5*time.Second, func(context.Context) error { return errors.New("no answer") })
	require.ErrorContains(t, err, "broken ended before it was ready")
	require.ErrorContains(t, err, "the port is taken")
}

func TestServersGetACleanEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.example")
	t.Setenv("OPENAI_API_KEY", "mine")
	e := newEnv(t)
	p, err := e.start(command{name: "env", args: []string{"env"}, env: []string{"OPENAI_API_KEY=stub"}})
	require.NoError(t, err)
	<-p.done
	text, err := os.ReadFile(p.logFile)
	require.NoError(t, err)
	require.NotContains(t, string(text), "proxy.example")
	require.Contains(t, string(text), "OPENAI_API_KEY=stub")
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := newEnv(t).tool(t.Context(), "no-such-program", "some-package")
	require.ErrorContains(t, err, "no-such-program is missing")
	require.ErrorContains(t, err, "some-package")
}

func TestAnUnknownBackendListsTheNames(t *testing.T) {
	_, err := Start(t.Context(), newEnv(t), "honcho")
	require.ErrorContains(t, err, "mem0, memos, memos:community")
	require.NoError(t, CheckName("memos:community"))
}

func TestTheStubServesAndTheFolderGoes(t *testing.T) {
	e, err := New(Options{})
	require.NoError(t, err)
	require.NoError(t, answers(e.endpoint.BaseURL+"/models")(t.Context()))
	require.NoError(t, e.Close())
	require.Error(t, answers(e.endpoint.BaseURL+"/models")(t.Context()))
	require.NoDirExists(t, e.Dir)
}

func TestMoreTimeToStartIsAFlag(t *testing.T) {
	e := newEnv(t)
	e.startTimeout = 50 * time.Millisecond
	p, err := e.start(command{name: "slow", args: []string{"sh", "-c", "echo still loading; sleep 1000"}})
	require.NoError(t, err)
	err = e.ready(t.Context(), p, time.Hour, func(context.Context) error { return errors.New("no answer") })
	require.ErrorContains(t, err, "slow was not ready within 50ms")
	require.ErrorContains(t, err, "--start-timeout 100ms")
	require.ErrorContains(t, err, p.logFile)
}

func TestAServerIsReadyWhenItHasAnsweredASearch(t *testing.T) {
	e := newEnv(t)
	said := &messageLog{}
	e.out = said
	p, err := e.start(command{name: "memory", args: []string{"sh", "-c", "echo loading a model; sleep 1000"}})
	require.NoError(t, err)
	var asked []string
	status := http.StatusServiceUnavailable
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, r.Method+" "+r.Header.Get("Authorization")+" "+string(body))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "the graph is not open")
	}))
	defer server.Close()
	search := func() error {
		return e.searchOnce(t.Context(), p, server.URL, map[string]any{"query": "anything"}, "Authorization", "Bearer x")
	}
	require.Eventually(t, func() bool { return tail(p.logFile, 1) != "" }, 10*time.Second, 2*time.Millisecond)
	err = search()
	require.ErrorContains(t, err, "memory: the first search: "+server.URL+": 503")
	require.ErrorContains(t, err, "the graph is not open")
	require.ErrorContains(t, err, "loading a model")
	status = http.StatusOK
	require.NoError(t, search())
	require.Equal(t, []string{`POST Bearer x {"query":"anything"}`, `POST Bearer x {"query":"anything"}`}, asked)
	require.Contains(t, said.text(), "memory answered its first search after")
}

func TestAPortThatIsTakenIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	e := newEnv(t)
	e.port = l.Addr().(*net.TCPAddr).Port
	_, err = e.servicePort(0)
	require.ErrorContains(t, err, fmt.Sprintf("port %d cannot be used", e.port))
	require.NoError(t, l.Close())
	port, err := e.servicePort(0)
	require.NoError(t, err)
	require.Equal(t, e.port, port)
}

func TestADataFolderStaysAndIsOneRunsOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	e, err := New(Options{Data: dir})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(e.Dir, "memory"), []byte("kept"), 0o644))
	_, err = New(Options{Data: dir})
	require.ErrorContains(t, err, "is in use by another run")
	require.NoError(t, e.Close())

	e, err = New(Options{Data: dir})
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(e.Dir, "memory"))
	require.NoError(t, err)
	require.Equal(t, "kept", string(text))
	require.NoError(t, e.Close())

	_, err = New(Options{Data: dir, Endpoint: &Endpoint{EmbeddingModel: "other"}})
	require.ErrorContains(t, err, `was made with the embedder "hash", and this run has "other"`)
}

func TestAnUnknownEmbedderListsTheNames(t *testing.T) {
	_, err := New(Options{Embedder: "nonsense"})
	require.ErrorContains(t, err, "there are hash and wordllama")
}

func TestOfAFailedStartTheLogsStay(t *testing.T) {
	e := newEnv(t)
	require.NoError(t, os.MkdirAll(filepath.Join(e.Dir, "postgres"), 0o755))
	e.KeepLogs()
	require.NoError(t, e.Close())
	require.DirExists(t, e.Logs())
	require.NoDirExists(t, filepath.Join(e.Dir, "postgres"))
}

func TestAnInstallationSaysThatItGoesOn(t *testing.T) {
	e := newEnv(t)
	said := &messageLog{}
	e.out, e.progress = said, time.Millisecond
	end := filepath.Join(e.Dir, "end")
	done := make(chan error, 1)
	go func() {
		done <- e.run(t.Context(), command{name: "pip-x",
			args: []string{"sh", "-c", "echo Downloading big.whl; until [ -e " + end + " ]; do sleep 0.01; done"}})
	}()
	require.Eventually(t, func() bool { return strings.Contains(said.text(), "Downloading big.whl") },
		10*time.Second, 2*time.Millisecond)
	require.NoError(t, os.WriteFile(end, nil, 0o644))
	require.NoError(t, <-done)
	require.Contains(t, said.text(), "pip-x is at work for")
}

// messageLog collects what is said by several goroutines.
type messageLog struct {
	mu   sync.Mutex
	said strings.Builder
}

func (s *messageLog) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.Write(p)
}

func (s *messageLog) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said.String()
}
