package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/plugins"
)

// urlOf reads the answer of memhost run --json.
func urlOf(out io.Reader) (string, error) {
	var serving struct{ URL string }
	err := json.NewDecoder(out).Decode(&serving)
	return serving.URL, err
}

// embedded is the client that has memhost in its process. It takes the same lines as clients.py.
func embedded(ctx context.Context, provider, block, secrets string) (err error) {
	dir, err := os.MkdirTemp("", "memhost-clients-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	m, ok := plugins.Find(provider)
	if !ok {
		return fmt.Errorf("module %s has not been built", provider)
	}
	h, err := host.New(ctx, host.Options{DataDir: dir, Durability: "process"})
	if err != nil {
		return err
	}
	defer func() { _ = h.Close(context.WithoutCancel(ctx)) }()
	var named map[string]secret
	if err := json.Unmarshal([]byte(secrets), &named); err != nil {
		return err
	}
	config := host.ProviderConfig{Name: provider, Module: m.Wasm, Source: "builtin", NoLookup: true,
		Smoke: host.SmokeNever, Block: abi.Raw(block), Secrets: map[string]host.Secret{}}
	for name, s := range named {
		config.Secrets[name] = host.Secret{Origin: s.Origin, Value: func() (string, error) { return os.Getenv(s.Env), nil }}
	}
	s, err := h.Open(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close(context.WithoutCancel(ctx)) }()
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		operation, number, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		began := time.Now()
		if operation == "record" {
			err = record(ctx, s, n)
		} else {
			err = retrieve(ctx, s)
		}
		if err != nil {
			return err
		}
		fmt.Println("ok", time.Since(began).Nanoseconds())
	}
	return nil
}

func record(ctx context.Context, s *host.Slot, n int) error {
	text := fmt.Sprintf("I like oat milk number %d, and I would like to see the mountains near Lisbon again.", n)
	_, err := s.RecordEvent(ctx, &abi.MemoryEvent{EventID: fmt.Sprint("e", n), RunID: "bench", UserID: "embedded",
		SessionID: "s", TurnID: fmt.Sprint("t", n), Timestamp: "2026-03-01T09:30:00Z",
		Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}})
	return err
}

func retrieve(ctx context.Context, s *host.Slot) error {
	budget := int64(1000)
	result, err := s.Retrieve(ctx, &abi.RetrieveRequest{Query: "which milk?", SessionID: "s",
		Scope: abi.MemoryScope{RunID: "bench", PersonaID: "embedded"}, Budget: abi.ContextBudget{MaxTokens: &budget}})
	if err == nil && result.FormattedContext == "" {
		err = fmt.Errorf("the retrieval found nothing: %v", result.Trace)
	}
	return err
}
