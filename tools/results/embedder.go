package main

import (
	"context"
	_ "embed" // the server of the model
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	embeddingModel = "all-MiniLM-L6-v2"
	dimensions     = 384
)

// embedderServer serves the model; its first lines describe the requests. requirements are what it needs.
var (
	//go:embed embedder.py
	embedderServer []byte
	//go:embed requirements.txt
	requirements []byte
)

// embedder is the running server of the embedding model. All experiments share one cache of vectors.
type embedder struct {
	url   string
	close func() error
}

// embedder starts the server on a port; 0: any. The first time it installs the model's packages into the workplace: 150 MB
// of downloads.
func (w *workplace) embedder(ctx context.Context, port int) (*embedder, error) {
	python, err := w.python(ctx)
	if err != nil {
		return nil, err
	}
	server := w.path("embedder.py")
	if err := os.WriteFile(server, embedderServer, 0o644); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	address := listener.Addr().(*net.TCPAddr)
	if err := listener.Close(); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, python, server, fmt.Sprint(address.Port), w.path("vectors.db"), os.Getenv(modelURL))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	e := &embedder{url: "http://" + address.String(), close: func() error {
		err := cmd.Process.Kill()
		<-ended
		if errors.Is(err, os.ErrProcessDone) { // an interrupt ended it
			return nil
		}
		return err
	}}
	return e, e.ready(ctx, ended)
}

// ready waits until the server answers, for at most a minute.
func (e *embedder) ready(ctx context.Context, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+"/counts", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			return answer.Body.Close()
		}
		select {
		case err := <-ended:
			return fmt.Errorf("the embedding model ended before it was ready: %w", err)
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the embedding model was not ready: %w", err), e.close())
		case <-tick.C:
		}
	}
}

// python gives an interpreter with the model's packages.
func (w *workplace) python(ctx context.Context) (string, error) {
	folder, err := filepath.Abs(w.path("python"))
	if err != nil {
		return "", err
	}
	python, stamp := filepath.Join(folder, "bin", "python"), filepath.Join(folder, "requirements.txt")
	if was, err := os.ReadFile(stamp); err == nil && string(was) == string(requirements) {
		return python, nil
	}
	w.say("install the embedding model into %s (once)", folder)
	list := w.path("requirements.txt")
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
	return python, os.WriteFile(stamp, requirements, 0o644)
}
