// Command llm serves the rule-answering LLM and embedding stub (package internal/test/testenv/llm) until it is interrupted.
//
//	go run ./internal/test/testenv/cmd/llm -listen 127.0.0.1:9100 -dimensions 384
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/memhost/memhost/internal/test/testenv/llm"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address; port 0 takes a free one")
	dimensions := flag.Int("dimensions", 0, "length of an embedding whose request names none (0: 1536)")
	flag.Parse()
	if err := serve(*listen, *dimensions); err != nil {
		fmt.Fprintln(os.Stderr, "llm:", err)
		os.Exit(1)
	}
}

func serve(listen string, dimensions int) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: llm.New(llm.Options{Dimensions: dimensions}), ReadHeaderTimeout: 10 * time.Second}
	fmt.Printf("OPENAI_BASE_URL=http://%s/v1\n", listener.Addr())
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
