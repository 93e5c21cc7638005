package memory

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
)

func TestForgettingAPersonAsksAndListsEachScope(t *testing.T) {
	receipt := &report.PersonaReceipt{Status: abi.ForgetPartial, ArchivedEvents: 2, Outside: []string{"WAL"},
		MayRemain: []string{"free pages", "provider mem0: all of it: unavailable"},
		Scopes: []report.ErasedScope{{Provider: "bm25", RunID: "r1", Status: abi.ResetDone},
			{Provider: "mem0", RunID: "r2", AgentID: "a", BackendNamespace: "n", Status: abi.ResetFailed,
				Remains: []string{"all of it: unavailable"}}}}
	for answer, want := range map[string]string{"no\n": "", "yes\n": `partial
  provider bm25, run "r1": done
  provider mem0, run "r2", namespace "n", agent "a": failed
  archive: 2 events
  may remain: free pages
  may remain: provider mem0: all of it: unavailable
  outside: WAL
`} {
		var stdout, stderr bytes.Buffer
		system := cli.System{Stdin: strings.NewReader(answer), Stdout: &stdout, Stderr: &stderr}
		a := &commands{cli.New(system)}
		var asked *report.PersonaRequest
		d := &cli.Door{Erase: func(_ context.Context, r *report.PersonaRequest) (*report.PersonaReceipt, error) {
			asked = r
			return receipt, nil
		}}
		err := a.forgetPersona(context.Background(), d, &report.PersonaRequest{PersonaID: "ann"}, false)
		require.Equal(t, cli.Done(cli.ExitFailed), err)
		require.Contains(t, stderr.String(), `Erase all that is held of user "ann", all runs`)
		require.Equal(t, want, stdout.String())
		require.Equal(t, want != "", asked != nil)
	}
}
