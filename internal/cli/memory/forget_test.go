package memory

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
)

// forgettingSlot answers forget with a receipt.
type forgettingSlot struct {
	host.Contract
	receipt *abi.ForgetReceipt
	asked   *abi.ForgetRequest
}

func (s *forgettingSlot) Manifest(context.Context) (*report.RunManifest, error) {
	return &report.RunManifest{Provider: "probe"}, nil
}

func (s *forgettingSlot) Forget(_ context.Context, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	s.asked = r
	return s.receipt, nil
}

func TestForgetAsksAndShowsWhatRemains(t *testing.T) {
	r := &abi.ForgetRequest{Scope: abi.MemoryScope{RunID: "r", PersonaID: "ann"}, SessionID: "s4"}
	for answer, want := range map[string]string{
		"no\n": "", "yes\n": "partial\n  removed: archived_event: e1 e2\n  may remain: a summary\n"} {
		var stdout, stderr bytes.Buffer
		system := cli.System{Stdin: strings.NewReader(answer), Stdout: &stdout, Stderr: &stderr}
		a := &commands{cli.New(system)}
		slot := &forgettingSlot{receipt: &abi.ForgetReceipt{Status: abi.ForgetPartial,
			Removed: map[string][]string{"archived_event": {"e1", "e2"}, "fact": {}}, DerivedMayRemain: []string{"a summary"}}}
		err := a.forget(context.Background(), &cli.Door{Contract: slot}, r, false)
		require.Equal(t, cli.Done(cli.ExitFailed), err)
		require.Contains(t, stderr.String(), `Forget session "s4" in probe`)
		require.Equal(t, want, stdout.String())
		require.Equal(t, want != "", slot.asked != nil)
	}
}

func TestForgetByNativeIDSaysThatNoEventIsForgotten(t *testing.T) {
	for _, r := range []*abi.ForgetRequest{{NativeIDs: []string{"n"}}, {EventIDs: []string{"e"}}} {
		var stderr bytes.Buffer
		system := cli.System{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr}
		a := &commands{cli.New(system)}
		slot := &forgettingSlot{receipt: &abi.ForgetReceipt{Status: abi.ForgetDone}}
		require.NoError(t, a.forget(t.Context(), &cli.Door{Contract: slot}, r, true))
		require.Equal(t, len(r.NativeIDs) > 0, strings.Contains(stderr.String(), "an archive and shadows still have"))
	}
}

func TestForgetNamesSomeOfManyIDs(t *testing.T) {
	var stdout bytes.Buffer
	system := cli.System{Stdout: &stdout, Stderr: io.Discard}
	a := &commands{cli.New(system)}
	a.showForgotten(abi.MemoryScope{}, &abi.ForgetReceipt{Status: abi.ForgetDone,
		Removed: map[string][]string{"turn": slices.Repeat([]string{"an-id"}, 6000)}})
	require.Equal(t, 50, strings.Count(stdout.String(), "an-id"))
	require.Contains(t, stdout.String(), " and 5950 more (--json names all)\n")
}

func TestTheExitCodeOfForgetSaysHowFarItCame(t *testing.T) {
	for _, c := range []struct {
		status             abi.ForgetStatus
		mayRemain, outside []string
		exit               int
	}{
		{status: abi.ForgetDone},
		{status: abi.ForgetDone, outside: []string{"the database's WAL"}},
		{status: abi.ForgetDone, mayRemain: []string{"a summary"}, exit: cli.ExitFailed},
		{status: abi.ForgetInProgress, exit: cli.ExitRetry},
		{status: abi.ForgetInProgress, mayRemain: []string{"a summary"}, exit: cli.ExitRetry},
		{status: abi.ForgetPartial, exit: cli.ExitFailed},
		{status: abi.ForgetUnsupported, exit: cli.ExitFailed},
	} {
		system := cli.System{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}
		a := &commands{cli.New(system)}
		slot := &forgettingSlot{receipt: &abi.ForgetReceipt{Status: c.status, DerivedMayRemain: c.mayRemain,
			Outside: c.outside}}
		d := &cli.Door{Contract: slot, Erase: func(context.Context, *report.PersonaRequest) (*report.PersonaReceipt, error) {
			return &report.PersonaReceipt{Status: c.status, MayRemain: c.mayRemain, Outside: c.outside}, nil
		}}
		for _, err := range []error{
			a.forget(t.Context(), d, &abi.ForgetRequest{EventIDs: []string{"e"}}, true),
			a.forgetPersona(t.Context(), d, &report.PersonaRequest{PersonaID: "ann"}, true),
		} {
			if c.exit == 0 {
				require.NoError(t, err, "%v", c)
			} else {
				require.Equal(t, cli.Done(c.exit), err, "%v", c)
			}
		}
	}
}
