package cli

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

func TestInspectShowsWhatAModuleMaySetOnARoute(t *testing.T) {
	var stdout bytes.Buffer
	a := &app{out: newOutput(System{Stdout: &stdout, Stderr: io.Discard})}
	require.NoError(t, a.showRoutes(&abi.ModuleManifest{Routes: []abi.RouteDecl{
		{Name: "old", Origin: "api", Class: abi.ClassRead, Method: "GET", Path: "/old"},
		{Name: "listed", Origin: "api", Class: abi.ClassRead, Method: "GET", Path: "/l",
			Headers: []string{"accept", "x-a"}, Query: []string{"limit"}},
		{Name: "closed", Origin: "api", Class: abi.ClassWrite, Method: "POST", Path: "/c", Headers: []string{},
			Query: []string{}},
		{Name: "facts", Origin: "db", Class: abi.ClassRead, Statement: "RETURN 1"},
	}}))
	require.Equal(t, `
routes: all that the module can send
  read   old     api  GET /old  headers: the fixed set  query: any
  read   listed  api  GET /l  headers: accept, x-a  query: limit
  write  closed  api  POST /c
  read   facts   db   RETURN 1
`, stdout.String())
}
