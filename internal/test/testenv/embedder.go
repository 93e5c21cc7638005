package testenv

import (
	"bytes"
	"context"
	_ "embed" // the server of the model
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// embedderServer serves the small model; its first lines describe the requests.
//
//go:embed embedder.py
var embedderServer []byte

// embedder gives the stub's embeddings by name: nil for "" and "hash". For "wordllama" it installs the model the first
// time (50 MB of downloads, 140 MB of disk, about 20 s) and starts it (about 1 s, 120 MB of memory).
func (e *Env) embedder(name string) (func(context.Context, []string) ([][]float32, error), error) {
	switch name {
	case "", "hash":
		if !e.lasting {
			return nil, nil
		}
		return nil, e.same("embedder", "hash")
	case "wordllama":
	default:
		return nil, fmt.Errorf("no embedder is called %q; there are hash and wordllama", name)
	}
	if e.lasting {
		if err := e.same("embedder", name); err != nil {
			return nil, err
		}
	}
	ctx := context.Background()
	bin, err := e.python(ctx, "embedder")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	home := filepath.Join(e.Dir, "embedder-model")
	server := filepath.Join(home, "embedder.py")
	if err := errors.Join(os.MkdirAll(home, 0o755), os.WriteFile(server, embedderServer, 0o644)); err != nil {
		return nil, err
	}
	e.say("start the embedding model (wordllama)")
	p, err := e.start(command{name: "embedder", dir: home,
		args: []string{filepath.Join(bin, "python"), server, strconv.Itoa(port), filepath.Join(home, "cache")}})
	if err != nil {
		return nil, err
	}
	url := "http://127.0.0.1:" + strconv.Itoa(port)
	if err := e.ready(ctx, p, 60*time.Second, answers(url)); err != nil {
		return nil, err
	}
	return func(ctx context.Context, texts []string) ([][]float32, error) { return askEmbedder(ctx, url, texts) }, nil
}

// askEmbedder asks the server of the model for the vectors of texts.
func askEmbedder(ctx context.Context, url string, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"texts": texts})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	answer, err := direct.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the embedding model answered %s", answer.Status)
	}
	var vectors struct {
		Vectors [][]float32 `json:"vectors"`
	}
	err = json.NewDecoder(answer.Body).Decode(&vectors)
	return vectors.Vectors, err
}
