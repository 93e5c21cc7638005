package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/memhost/memhost/internal/test/testenv"
)

// scripted starts a server by an experiment's script: SCRIPT PORT DATA EMBEDDINGS_URL EMBEDDINGS_MODEL. The script installs
// what is missing, keeps what the server stores in the folder DATA, and ends the server when it gets SIGTERM. It has a
// language model only in an experiment that needs one.
func (w *workplace) scripted(ctx context.Context, x experiment, e *embedder) (*testenv.Backend, func() error, error) {
	data, err := filepath.Abs(w.path(x.name, "data"))
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(filepath.Join(w.root, filepath.FromSlash(x.script)), fmt.Sprint(x.port), data, e.url+"/v1",
		embeddingModel)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Env = slices.DeleteFunc(os.Environ(), func(pair string) bool {
		return strings.HasPrefix(pair, modelName+"=") || strings.HasPrefix(pair, modelName+"_")
	})
	if x.judged() {
		cmd.Env = append(cmd.Env, modelURL+"="+e.url+"/v1", modelName+"="+languageModel(), modelKey+"="+
			cmp.Or(os.Getenv(modelKey), "none"))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C ends the run; the server ends after it
	w.say("start the server: %s", x.script)
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ending := func() error {
		err := cmd.Process.Signal(syscall.SIGTERM)
		if errors.Is(err, os.ErrProcessDone) {
			return nil
		}
		select {
		case <-ended:
			return err
		case <-time.After(time.Minute):
			return errors.Join(err, cmd.Process.Kill())
		}
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", x.port)
	if err := answering(ctx, url+"/health", ended); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", x.script, err), ending())
	}
	return &testenv.Backend{Provider: strings.TrimPrefix(x.name, "model-"), Config: map[string]any{"url": url}}, ending, nil
}

// answering waits until an address answers with success, for at most half an hour: the first start installs the server.
func answering(ctx context.Context, address string, ended chan error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			err = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return err
			}
			err = errors.New(answer.Status)
		}
		select {
		case over := <-ended:
			ended <- over
			return fmt.Errorf("it ended before the server answered: %w", over)
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", address, err)
		case <-tick.C:
		}
	}
}
