package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
)

// A backup that was cut off is an error.
func TestABackupArrivesWholeOrNotAtAll(t *testing.T) {
	large := bytes.Repeat([]byte("memory "), 1<<18)
	inTheMiddle := errors.New("the disk failed")
	for name, c := range map[string]struct {
		backup func(ctx context.Context, w io.Writer) error
		want   abi.Code
	}{
		"whole": {backup: func(_ context.Context, w io.Writer) error {
			_, err := w.Write(large)
			return err
		}},
		"refused at once": {want: abi.CodeUnavailable, backup: func(context.Context, io.Writer) error {
			return abi.NewError(abi.CodeUnavailable, "a backup is being made already")
		}},
		"cut off": {want: abi.CodeUnavailable, backup: func(_ context.Context, w io.Writer) error {
			_, err := w.Write(large[:len(large)/2])
			return errors.Join(err, inTheMiddle)
		}},
		"no backups": {want: abi.CodeUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := server.New(server.Options{Slot: new(servertest.Slot), Backup: c.backup})
			require.NoError(t, err)
			web := httptest.NewServer(s.Handler())
			defer web.Close()
			slot, err := client.New(web.URL, "")
			require.NoError(t, err)
			defer slot.Close()
			var got bytes.Buffer
			err = slot.Backup(t.Context(), &got)
			if c.want != "" {
				require.Equal(t, c.want, abi.CodeOf(err), "%v", err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, large, got.Bytes())
		})
	}
}

func TestAFullDiskIsNotTheSlotsFault(t *testing.T) {
	s, err := server.New(server.Options{Slot: new(servertest.Slot), Backup: func(_ context.Context, w io.Writer) error {
		_, err := io.Copy(w, strings.NewReader("memory"))
		return err
	}})
	require.NoError(t, err)
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	slot, err := client.New(web.URL, "")
	require.NoError(t, err)
	defer slot.Close()
	full := errors.New("no space left")
	require.ErrorIs(t, slot.Backup(t.Context(), failingWriter{full}), full)
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }
