package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/internal/test/testenv"
)

// server is a backend with an official client.
type server struct {
	name, client string
	start        func(ctx context.Context) (*backend, error)
}

// backend is a server that runs, until stop.
type backend struct {
	// url is what its official client is given, python the interpreter that has this client; empty: that of bin/clients.
	url, python string
	// block is memhost's configuration of it, secrets those that the block names, both as JSON.
	block, secrets string
	// environment is for all clients.
	environment []string
	stop        func() error
}

// servers are those that a fake can stand for.
var servers = []server{
	{"mem0", "mem0ai (Python)", startFake(func() http.Handler { return new(mem0.Platform) },
		map[string]any{"api": "platform", "infer": false, "top_k": 10})},
	{"honcho", "honcho-ai (Python)", startFake(func() http.Handler {
		return honcho.New(honcho.Options{Mood: honcho.Mood{Flush: true}})
	}, map[string]any{})},
}

// startFake serves a fake. config is memhost's configuration of it, without its url.
func startFake(fake func() http.Handler, config map[string]any) func(context.Context) (*backend, error) {
	return func(ctx context.Context) (*backend, error) {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		s := &http.Server{Handler: fake(), ReadHeaderTimeout: time.Minute}
		go func() { _ = s.Serve(listener) }()
		config["url"] = "http://" + listener.Addr().String()
		return &backend{url: fmt.Sprint(config["url"]), block: testenv.Inline(config), secrets: "{}", stop: s.Close}, nil
	}
}

// graphitiCore is the library on Neo4j, and memhost through the gateway of the same library on the same Neo4j. Each
// client uses another graph. The model is a stub that answers by rules.
var graphitiCore = server{"graphiti", "graphiti-core (Python)", func(ctx context.Context) (*backend, error) {
	e, err := testenv.New(testenv.Options{Out: os.Stderr})
	if err != nil {
		return nil, err
	}
	core, err := e.StartGraphitiCore(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w (logs: %s): %w", err, e.Logs(), e.Close())
	}
	running := core.Backend()
	running.Config["max_facts"] = 10
	secrets, environment := map[string]secret{}, core.Environment
	for name, s := range running.Secrets {
		secrets[name] = secret{Env: s.Variable, Origin: s.Origin}
		environment = append(environment, s.Variable+"="+s.Value)
	}
	text, err := json.Marshal(secrets)
	return &backend{url: core.Neo4j.URL, python: core.Python, block: testenv.Inline(running.Config), secrets: string(text),
		environment: environment, stop: e.Close}, err
}}

// secret is a secret as memhost.yaml has it.
type secret struct {
	Env    string `json:"env"`
	Origin string `json:"origin"`
}
