package testenv

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

// Backend is a running backend, as memhost's configuration sees it.
type Backend struct {
	// Name is a name of Names, Provider what memory.backend says.
	Name, Provider string
	// Config is the block under memory.backends; its secrets are in Secrets.
	Config  map[string]any
	Secrets map[string]Secret
	// Env has the stub, the logs and the processes.
	Env *Env
}

// Secret of a configuration block.
type Secret struct {
	// Variable is the environment variable that the printed configuration names, Origin the server to which the secret
	// may be sent.
	Variable, Value, Origin string
}

// starters of the backends by name. The name before a colon is the provider's.
var starters = map[string]func(context.Context, *Env) (*Backend, error){
	"mem0": func(ctx context.Context, e *Env) (*Backend, error) {
		m, err := e.StartMem0(ctx)
		if err != nil {
			return nil, err
		}
		return m.Backend(), nil
	},
	"memos":           startMemOS("neo4j"),
	"memos:community": startMemOS("neo4j-community"),

	"graphiti":          startGraphiti("rest", true),
	"graphiti:rest":     startGraphiti("rest", false),
	"graphiti:mcp":      startGraphiti("mcp", false),
	"graphiti:mcp-bolt": startGraphiti("mcp", true),
	"graphiti:core": func(ctx context.Context, e *Env) (*Backend, error) {
		g, err := e.StartGraphitiCore(ctx)
		if err != nil {
			return nil, err
		}
		return g.Backend(), nil
	},
}

func startGraphiti(surface string, bolt bool) func(context.Context, *Env) (*Backend, error) {
	return func(ctx context.Context, e *Env) (*Backend, error) {
		g, err := e.StartGraphiti(ctx)
		if err != nil {
			return nil, err
		}
		return g.Backend(surface, bolt), nil
	}
}

func startMemOS(graph string) func(context.Context, *Env) (*Backend, error) {
	return func(ctx context.Context, e *Env) (*Backend, error) {
		m, err := e.StartMemOS(ctx, graph)
		if err != nil {
			return nil, err
		}
		return m.Backend(), nil
	}
}

// Names of what Start starts: a provider's name, or "provider:variant".
func Names() []string {
	out := make([]string, 0, len(starters))
	for name := range starters {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

// CheckName says whether Start knows a backend. The error for an unknown one lists the names.
func CheckName(name string) error {
	if starters[name] == nil {
		return fmt.Errorf("no backend is called %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return nil
}

// Start starts a backend by name.
//
// Errors: that of CheckName; what could not be installed or started.
func Start(ctx context.Context, e *Env, name string) (*Backend, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	b, err := starters[name](ctx, e)
	if err != nil {
		return nil, err
	}
	b.Name, b.Env = name, e
	b.Provider, _, _ = strings.Cut(name, ":")
	return b, nil
}

// Inline writes a configuration block on one line: JSON, which is YAML too.
func Inline(block map[string]any) string {
	text, err := json.Marshal(block)
	if err != nil {
		return "{}"
	}
	return string(text)
}
