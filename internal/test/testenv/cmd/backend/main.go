// Command backend starts a real memory backend on this machine and keeps it running until it is interrupted, with the
// rule-answering stub or with an OpenAI-compatible endpoint of your own. It prints the configuration to use. tools/backend
// calls it.
//
//	go run ./internal/test/testenv/cmd/backend mem0
//	LLM_BASE_URL=http://127.0.0.1:11434/v1 LLM_MODEL=llama3.2 EMBEDDING_MODEL=nomic-embed-text EMBEDDING_DIMENSIONS=768 go run ./internal/test/testenv/cmd/backend memos
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sort"
	"strings"
	"syscall"

	"github.com/memhost/memhost/internal/test/testenv"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "backend:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("backend", flag.ContinueOnError)
	var endpoint testenv.Endpoint
	flags.StringVar(&endpoint.BaseURL, "llm", os.Getenv("LLM_BASE_URL"),
		"OpenAI-compatible endpoint, ending in /v1; none: the stub (LLM_BASE_URL)")
	flags.StringVar(&endpoint.Model, "model", os.Getenv("LLM_MODEL"), "its chat model (LLM_MODEL)")
	flags.StringVar(&endpoint.EmbeddingModel, "embedding-model", os.Getenv("EMBEDDING_MODEL"),
		"its embedding model (EMBEDDING_MODEL)")
	dimensions := flags.String("dimensions", os.Getenv("EMBEDDING_DIMENSIONS"),
		"length of its embeddings (EMBEDDING_DIMENSIONS)")
	installOnly := flags.Bool("install", false, "install what the backend needs, start it once and end")
	keep := flags.Bool("keep", false, "leave the temporary folder with data and logs in place")
	data := flags.String("data", "", "folder for data that survive: the next start with it finds them; none: a "+
		"temporary one")
	port := flags.Int("port", 0, "the backend's port on 127.0.0.1, and the next two for further servers; 0: free ones")
	patience := flags.Duration("start-timeout", 0,
		"how long each server may take to start, such as 10m; 0: 1 to 5 minutes")
	embedder := flags.String("embedder", "wordllama", "without an endpoint, the embeddings: wordllama (a small model) "+
		"or hash")
	names := strings.Join(testenv.Names(), ", ")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "usage: backend [flags] NAME, where NAME is one of %s\n", names)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("want one name: %s", names)
	}
	if err := testenv.CheckName(flags.Arg(0)); err != nil {
		return err // before anything starts
	}
	options := testenv.Options{Out: os.Stdout, Keep: *keep, Data: *data, Port: *port, StartTimeout: *patience,
		Embedder: *embedder}
	if endpoint.BaseURL != "" {
		endpoint.APIKey = os.Getenv("LLM_API_KEY")
		if endpoint.APIKey == "" {
			endpoint.APIKey = "none"
		}
		if endpoint.Model == "" || endpoint.EmbeddingModel == "" {
			return errors.New("an endpoint of your own needs -model and -embedding-model too")
		}
		if *dimensions != "" {
			if _, err := fmt.Sscan(*dimensions, &endpoint.Dimensions); err != nil {
				return fmt.Errorf("-dimensions: %w", err)
			}
		}
		options.Endpoint = &endpoint
	}
	env, err := testenv.New(options)
	if err != nil {
		return err
	}
	err = serve(ctx, env, flags.Arg(0), *installOnly, *data)
	if err != nil {
		env.KeepLogs()
		fmt.Fprintln(os.Stderr, "the logs stay in", env.Logs())
	}
	return errors.Join(err, env.Close())
}

func serve(ctx context.Context, env *testenv.Env, name string, installOnly bool, data string) error {
	backend, err := testenv.Start(ctx, env, name)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s\n", block(backend))
	if installOnly {
		return nil
	}
	if env.Stub != nil {
		fmt.Println("Facts are extracted by rules that stand in for a language model: they show that the way is open, not " +
			"how good a memory is.")
	}
	after := "what it remembered is gone then (--data DIR keeps it)"
	if data != "" {
		after = "the next start with --data " + data + " finds what it remembered"
	}
	fmt.Printf("Logs: %s. Ctrl-C ends it; %s.\n", env.Logs(), after)
	return env.Wait(ctx)
}

// block is the configuration to put into memhost.yaml, and the variables to export.
func block(b *testenv.Backend) string {
	var out strings.Builder
	for _, name := range sortedKeys(b.Secrets) {
		fmt.Fprintf(&out, "export %s=%s\n", b.Secrets[name].Variable, b.Secrets[name].Value)
	}
	fmt.Fprintf(&out, "cat > memhost.yaml <<'END'\nmemory:\n  backend: %s\n  backends:\n    %s: %s\n", b.Provider,
		b.Provider, testenv.Inline(b.Config))
	if len(b.Secrets) > 0 {
		out.WriteString("secrets:\n")
	}
	for _, name := range sortedKeys(b.Secrets) {
		s := b.Secrets[name]
		fmt.Fprintf(&out, "  %s: {env: %s, origin: %q}\n", name, s.Variable, s.Origin)
	}
	fmt.Fprintf(&out, "data:\n  dir: memhost-data/%s # a folder of its own: a slot that runs elsewhere is not meant\n",
		b.Provider)
	out.WriteString("END\ngo run ./cmd/memhost run --config memhost.yaml\n")
	return out.String()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
