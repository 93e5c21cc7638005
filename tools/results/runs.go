package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"maps"
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
	// server is what package testenv starts for it, script a program of this repository that starts a server and ends
	// with it (servers.go). Empty: none.
	server, script string
	// port is the server's, which the lab file names; without a server it is the embedding model's, and 0 means that
	// nothing is started.
	port int
	// module is the folder of a community module, which is built for the run.
	module string
	// needs are variables of the environment without which the experiment cannot run. With a language model (modelURL) an
	// agent's answers are judged: the run has a report of its own, and is not on the page.
	needs []string
	// version says where the server's version is pinned.
	version pin
}

// pin is a line of a file of this repository, NAME==VERSION, or NAME=VERSION of a script.
type pin struct{ file, name string }

var experiments = []experiment{
	{name: "local"},
	{name: "hybrid", port: 18800},
	{name: "mem0", server: "mem0", port: 18600, version: pin{"internal/test/testenv/requirements/mem0.txt", "mem0ai"}},
	{name: "hindsight", script: "community/hindsight/serve", module: "community/hindsight", port: 18900,
		version: pin{"community/hindsight/requirements.txt", "hindsight-api-slim"}},
	{name: "honcho", script: "tools/results/honcho", needs: []string{honchoSource}, port: 18950,
		version: pin{"tools/results/honcho", "honcho"}},
	{name: "memos", server: "memos", port: 18700, version: pin{"internal/test/testenv/requirements/memos.txt", "MemoryOS"}},
	{name: "model-mem0", server: "mem0", port: 18610, needs: []string{modelURL}},
	{name: "model-graphiti", server: "graphiti:rest", port: 18620, needs: []string{modelURL}},
	{name: "model-memos", server: "memos", port: 18710, needs: []string{modelURL}},
	{name: "model-honcho", script: "tools/results/honcho", port: 18960, needs: []string{modelURL, honchoSource}},
}

// The environment: the address of a language model, up to and including /v1, with its name and key, and Honcho's sources.
const (
	modelURL, modelName, modelKey = "MODEL_URL", "MODEL", "MODEL_KEY"
	honchoSource                  = "HONCHO_SOURCE"
)

func names() []string {
	list := make([]string, len(experiments))
	for i, x := range experiments {
		list[i] = x.name
	}
	return list
}

// missing is the first variable of the environment that an experiment needs and does not have; empty: none.
func (x experiment) missing() string {
	for _, name := range x.needs {
		if os.Getenv(name) == "" {
			return name
		}
	}
	return ""
}

// judged reports whether an experiment has a language model.
func (x experiment) judged() bool { return slices.Contains(x.needs, modelURL) }

// named returns the experiment with this name.
func named(name string) (experiment, error) {
	i := slices.IndexFunc(experiments, func(x experiment) bool { return x.name == name })
	if i < 0 {
		return experiment{}, fmt.Errorf("there is no %q; there are %s", name, strings.Join(names(), ", "))
	}
	return experiments[i], nil
}

// choose gives the experiments that a list names; for "" all that have what they need.
func choose(only string) ([]experiment, error) {
	if only == "" {
		return slices.DeleteFunc(slices.Clone(experiments), func(x experiment) bool { return x.missing() != "" }), nil
	}
	var list []experiment
	for name := range strings.SplitSeq(only, ",") {
		x, err := named(name)
		if err != nil {
			return nil, fmt.Errorf("-only %s: %w", only, err)
		}
		if missing := x.missing(); missing != "" {
			return nil, fmt.Errorf("-only %s: %s needs the variable %s (tools/results/main.go)", only, name, missing)
		}
		list = append(list, x)
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
		if x.judged() {
			if err := w.judge(ctx, x); err != nil {
				return fmt.Errorf("%s: %w", x.name, err)
			}
		}
	}
	return nil
}

// judge has the answers of a complete run judged, which continues where it was interrupted, and writes its report.
func (w *workplace) judge(ctx context.Context, x experiment) error {
	folder := w.path(x.name, "run")
	for _, command := range []string{"judge", "report"} {
		if err := w.memhost(ctx, "eval", command, folder); err != nil {
			return err
		}
	}
	w.say("%s: answers are judged in %s", x.name, filepath.Join(folder, "report.html"))
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

// experiment runs an experiment, or continues it. A server's data stay in the experiment's folder until the run is
// complete.
func (w *workplace) experiment(ctx context.Context, x experiment) error {
	folder := w.path(x.name)
	if err := os.MkdirAll(folder, 0o711); err != nil {
		return err
	}
	if x.module != "" {
		if err := w.memhost(ctx, "build", filepath.Join(w.root, x.module), "--compiler", "go", "-o",
			filepath.Join(folder, x.name+".wasm")); err != nil {
			return err
		}
	}
	server, closing, err := w.start(ctx, x)
	if err != nil {
		return err
	}
	defer closing()
	text, err := x.labText(server)
	if err != nil {
		return err
	}
	file := filepath.Join(folder, "lab.yaml")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	var environment []string
	for _, s := range server.Secrets {
		environment = append(environment, s.Variable+"="+s.Value)
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

// labText is an experiment's lab file. Those with a language model share one, labs/model.yaml, in which the server's
// configuration and the model's are filled in.
func (x experiment) labText(server *testenv.Backend) ([]byte, error) {
	if !x.judged() {
		return labs.ReadFile("labs/" + x.name + ".yaml")
	}
	text, err := labs.ReadFile("labs/model.yaml")
	if err != nil {
		return nil, err
	}
	config := maps.Clone(server.Config)
	switch server.Provider {
	case "memos":
		config["add_mode"] = "sync/fine"
	case "honcho":
		config["server"] = map[string]any{"flush": true}
	}
	secrets := map[string]any{}
	for name, s := range server.Secrets {
		secrets[name] = map[string]any{"env": s.Variable, "origin": s.Origin}
	}
	model := map[string]any{"url": os.Getenv(modelURL), "model": languageModel()}
	if os.Getenv(modelKey) != "" {
		model["key_env"] = modelKey
	}
	values := map[string]string{"name": x.name, "label": server.Provider, "secrets": testenv.Inline(secrets),
		"memory": testenv.Inline(map[string]any{"backend": server.Provider,
			"backends": map[string]any{server.Provider: config}}), "model": testenv.Inline(model)}
	return []byte(os.Expand(string(text), func(name string) string { return values[name] })), nil
}

// languageModel is the language model's name.
func languageModel() string { return cmp.Or(os.Getenv(modelName), "none") }

// start starts what an experiment needs; of a server with the embeddings of the real model.
func (w *workplace) start(ctx context.Context, x experiment) (*testenv.Backend, func(), error) {
	if x.port == 0 {
		return &testenv.Backend{}, func() {}, nil
	}
	port := 0
	if x.server+x.script == "" {
		port = x.port
	}
	embedder, err := w.embedder(ctx, port)
	if err != nil {
		return nil, nil, err
	}
	server, ending := &testenv.Backend{}, func() error { return nil }
	switch {
	case x.script != "":
		server, ending, err = w.scripted(ctx, x, embedder)
	case x.server != "":
		server, ending, err = w.serve(ctx, x, embedder)
	}
	if err != nil {
		return nil, nil, errors.Join(err, embedder.close())
	}
	return server, func() {
		if err := errors.Join(ending(), embedder.close()); err != nil {
			w.say("ending what %s needed: %v", x.name, err)
		}
	}, nil
}

// serve starts a server that testenv knows.
func (w *workplace) serve(ctx context.Context, x experiment, e *embedder) (*testenv.Backend, func() error, error) {
	data, err := filepath.Abs(w.path(x.name, "data"))
	if err != nil {
		return nil, nil, err
	}
	env, err := testenv.New(testenv.Options{Out: os.Stderr, Data: data, Port: x.port, Endpoint: &testenv.Endpoint{
		BaseURL: e.url + "/v1", APIKey: cmp.Or(os.Getenv(modelKey), "none"), Model: languageModel(),
		EmbeddingModel: embeddingModel, Dimensions: dimensions}})
	if err != nil {
		return nil, nil, err
	}
	server, err := testenv.Start(ctx, env, x.server)
	if err != nil {
		return nil, nil, errors.Join(err, env.Close())
	}
	return server, env.Close, nil
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

// lab is an experiment's lab file, read.
func (x experiment) lab(server *testenv.Backend) (*lab.Lab, error) {
	text, err := x.labText(server)
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
