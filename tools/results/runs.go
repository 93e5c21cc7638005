package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/score"
	"github.com/memhost/memhost/internal/test/testenv"
)

//go:embed labs/*.yaml
var labs embed.FS

// experiment is one run of `memhost eval`: labs/NAME.yaml, in a folder of its own. bm25 is in each of them, so that
// every memory is compared with it question by question.
type experiment struct {
	name string
	// server is what package testenv starts for it; empty: none. port is the server's, which the lab file names; without a
	// server it is the embedding model's, and 0 means that nothing is started.
	server string
	port   int
}

var experiments = []experiment{
	{name: "local"},
	{name: "hybrid", port: 18800},
	{name: "mem0", server: "mem0", port: 18600},
	{name: "memos", server: "memos", port: 18700},
}

func names() []string {
	list := make([]string, len(experiments))
	for i, x := range experiments {
		list[i] = x.name
	}
	return list
}

// choose gives the experiments that a list names; all of them for "".
func choose(only string) ([]experiment, error) {
	if only == "" {
		return experiments, nil
	}
	var list []experiment
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(experiments, func(x experiment) bool { return x.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %s: there is no %q; there are %s", only, name, strings.Join(names(), ", "))
		}
		list = append(list, experiments[i])
	}
	return list, nil
}

// make makes what is missing: data, pack, runs, metrics.
func (w *workplace) make(ctx context.Context, chosen []experiment) error {
	if err := os.MkdirAll(w.folder, 0o711); err != nil {
		return err
	}
	file, err := w.data(ctx, dataURL, dataSHA256)
	if err != nil {
		return err
	}
	if err := w.pack(ctx, file); err != nil {
		return err
	}
	for i, x := range chosen {
		done, err := w.complete(x)
		if err != nil {
			return err
		}
		if done {
			w.say("%d of %d: %s is complete", i+1, len(chosen), x.name)
		} else {
			w.say("%d of %d: run %s", i+1, len(chosen), x.name)
			if err := w.experiment(ctx, x); err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
		}
		if err := w.score(x, done); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
	}
	return nil
}

// complete reports whether every cell of an experiment's run is.
func (w *workplace) complete(x experiment) (bool, error) {
	if there, err := exists(w.path(x.name, "run", rundir.File)); !there || err != nil {
		return false, err
	}
	r, err := rundir.Open(w.path(x.name, "run"))
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(r.Cells, func(c *rundir.Cell) bool { return c.State != rundir.Complete }), nil
}

// experiment runs one, or goes on with it. A server's data stay in the experiment's folder until the run is complete.
func (w *workplace) experiment(ctx context.Context, x experiment) error {
	folder := w.path(x.name)
	if err := os.MkdirAll(folder, 0o711); err != nil {
		return err
	}
	text, err := labs.ReadFile("labs/" + x.name + ".yaml")
	if err != nil {
		return err
	}
	file := filepath.Join(folder, "lab.yaml")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	var environment []string
	switch {
	case x.server == "" && x.port != 0:
		embedder, err := w.embedder(ctx, x.port)
		if err != nil {
			return err
		}
		defer func() {
			if err := embedder.close(); err != nil {
				w.say("ending the embedding model: %v", err)
			}
		}()
	case x.server != "":
		server, closing, err := w.serve(ctx, x)
		if err != nil {
			return err
		}
		defer closing()
		for _, s := range server.Secrets {
			environment = append(environment, s.Variable+"="+s.Value)
		}
	}
	out := filepath.Join(folder, "run")
	begun, err := exists(filepath.Join(out, rundir.File))
	if err != nil {
		return err
	}
	if begun {
		err = w.memhostWith(ctx, environment, "eval", "resume", out)
	} else {
		err = w.memhostWith(ctx, environment, "eval", "run", file, "--no-references", "--out", out, "--yes")
	}
	if err != nil {
		return err
	}
	if done, err := w.complete(x); err != nil || !done {
		return errors.Join(err, errors.New("the run is not complete; make results goes on with it"))
	}
	return nil
}

// serve starts an experiment's server, with embeddings of the real model and no language model.
func (w *workplace) serve(ctx context.Context, x experiment) (*testenv.Backend, func(), error) {
	embedder, err := w.embedder(ctx, 0)
	if err != nil {
		return nil, nil, err
	}
	data, err := filepath.Abs(w.path(x.name, "data"))
	if err != nil {
		return nil, nil, err
	}
	env, err := testenv.New(testenv.Options{Out: os.Stderr, Data: data, Port: x.port, Endpoint: &testenv.Endpoint{
		BaseURL: embedder.url + "/v1", APIKey: "none", Model: "none", EmbeddingModel: embeddingModel, Dimensions: dimensions}})
	if err != nil {
		return nil, nil, errors.Join(err, embedder.close())
	}
	closing := func() {
		if err := errors.Join(env.Close(), embedder.close()); err != nil {
			w.say("ending %s: %v", x.server, err)
		}
	}
	server, err := testenv.Start(ctx, env, x.server)
	if err != nil {
		closing()
		return nil, nil, err
	}
	return server, closing, nil
}

// score writes the metrics of a complete run into its folder, unless they are there.
func (w *workplace) score(x experiment, before bool) error {
	folder := w.path(x.name, "run")
	if there, err := exists(filepath.Join(folder, score.MetricsFile)); err != nil || there && before {
		return err
	}
	w.say("score %s", x.name)
	m, t, err := w.scored(x)
	if err != nil {
		return err
	}
	return score.Write(folder, m, t)
}

// scored computes the metrics of a run from its journals.
func (w *workplace) scored(x experiment) (*score.Metrics, *score.Timings, error) {
	p, err := pack.Open(w.path("locomo.pack"))
	if err != nil {
		return nil, nil, err
	}
	defer p.Close()
	return score.Score(w.path(x.name, "run"), p)
}

// lab is an experiment's lab file.
func (x experiment) lab() (*lab.Lab, error) {
	text, err := labs.ReadFile("labs/" + x.name + ".yaml")
	if err != nil {
		return nil, err
	}
	return lab.Parse(text)
}

func (w *workplace) memhost(ctx context.Context, args ...string) error {
	return w.memhostWith(ctx, nil, args...)
}

// memhostWith runs the program. An interrupt reaches it as one, so that it can finish its journal.
func (w *workplace) memhostWith(ctx context.Context, environment []string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(w.root, "bin", "memhost"), args...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("memhost %s: %w", strings.Join(args, " "), err)
	}
	return nil
}
