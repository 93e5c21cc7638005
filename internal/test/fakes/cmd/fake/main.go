// Command fake serves a fake backend until it is interrupted: to try a backend's module with nothing installed, and for
// tests in other languages than Go. Nothing is kept when it ends.
//
//	go run ./internal/test/fakes/cmd/fake -listen 127.0.0.1:8888 mem0
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/memhost/memhost/internal/test/fakes/graphiti"
	"github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/internal/test/fakes/memos"
)

// backends by the name of the provider that speaks to them.
var backends = map[string]func() http.Handler{
	"graphiti": func() http.Handler { return graphiti.New(graphiti.Options{}).REST() },
	"honcho": func() http.Handler {
		return honcho.New(honcho.Options{Mood: honcho.Mood{Flush: true}})
	},
	"mem0":  func() http.Handler { return mem0.New(mem0.Options{}) },
	"memos": func() http.Handler { return memos.New(memos.Options{}) },
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address; port 0 takes a free one")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: fake [-listen ADDRESS] %s\n", strings.Join(names(), "|"))
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := serve(*listen, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "fake:", err)
		os.Exit(1)
	}
}

func names() []string { return slices.Sorted(maps.Keys(backends)) }

func serve(listen, name string) error {
	backend, ok := backends[name]
	if !ok {
		return fmt.Errorf("no fake is called %q; there are %s", name, strings.Join(names(), ", "))
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
