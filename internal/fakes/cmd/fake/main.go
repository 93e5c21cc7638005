// Command fake serves a fake backend until it is interrupted, for tests in other languages than Go.
//
//	go run ./internal/fakes/cmd/fake -listen 127.0.0.1:8888 mem0
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

	"github.com/memhost/memhost/internal/fakes/mem0"
)

// backends by the name of the provider that speaks to them.
var backends = map[string]func() http.Handler{
	"mem0": func() http.Handler { return mem0.New(mem0.Options{}) },
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address; port 0 takes a free one")
	flag.Parse()
	if err := serve(*listen, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "fake:", err)
		os.Exit(1)
	}
}

func serve(listen, name string) error {
	backend, ok := backends[name]
	if !ok {
		return fmt.Errorf("no fake is called %q; there is mem0", name)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: backend(), ReadHeaderTimeout: 10 * time.Second}
	fmt.Printf("URL=http://%s\n", listener.Addr())
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
