package main

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"

	served "github.com/google/go-containerregistry/pkg/registry"
	"github.com/rogpeppe/go-internal/testscript"
)

// serveRegistry is the command "registry": it serves an empty registry on this computer, and sets $REGISTRY to its
// HOST:PORT. "registry stop" stops it.
func serveRegistry(ts *testscript.TestScript, neg bool, args []string) {
	const key = "registry"
	switch {
	case neg || len(args) > 1 || len(args) == 1 && args[0] != "stop":
		ts.Fatalf("usage: registry [stop]")
	case len(args) == 1:
		ts.Value(key).(*registryServer).Close()
	default:
		s := ts.Value(key).(*registryServer)
		s.Server = httptest.NewServer(served.New(served.Logger(log.New(io.Discard, "", 0))))
		ts.Defer(s.Close)
		ts.Setenv("REGISTRY", strings.TrimPrefix(s.URL, "http://"))
	}
}

type registryServer struct{ *httptest.Server }
