package host

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/testguest"
	"github.com/stretchr/testify/require"
)

// BenchmarkInside measures internals: a call of a guest without the operation around it (getting an instance, deadline,
// request in, answer out), and the start of an instance. tools/bench runs it together with the baselines.
func BenchmarkInside(b *testing.B) {
	slot := func(b *testing.B, c ProviderConfig) (*Slot, *Provider) {
		s := OpenSlot(b, Open(b, Options{}), c)
		return s, s.current.Load().provider
	}
	call := func(b *testing.B, op string, body []byte) {
		s, p := slot(b, ProviderConfig{Name: "echo", Module: testguest.Echo(), Source: "builtin"})
		for b.Loop() {
			_, o := s.operationOn(context.Background(), p, op)
			o.Powers = o
			err := p.enter(b.Context(), o, &abi.Envelope{Op: op, Body: body}, new(abi.Empty))
			require.NoError(b, err)
		}
	}
	for _, size := range []struct {
		name  string
		bytes int
	}{{"50B", 50}, {"500B", 500}, {"5KB", 5 << 10}, {"25KB", 25 << 10}, {"250KB", 250 << 10}, {"1MB", 1 << 20}} {
		b.Run("echo/"+size.name, func(b *testing.B) {
			call(b, abi.OpNativeQuery, fmt.Appendf(nil, "%q", strings.Repeat("x", size.bytes-2)))
		})
	}
	b.Run("contract", func(b *testing.B) {
		r := &abi.RetrieveRequest{Query: "what tea do I like?", SessionID: "s", Filters: map[string]abi.Raw{}}
		for i := range 12 {
			r.Filters[fmt.Sprint("item", i)] = abi.Raw(fmt.Sprintf(`{"id":"native-%d","text":%q,"score":0.%d,"at":"2026-01-02T03:04:05Z",`+
				`"valid":true,"tags":["a","b"]}`, i, strings.Repeat("memory ", 20), i+10))
		}
		call(b, abi.OpRetrieve, abi.Marshal(r))
	})
	b.Run("instantiate", func(b *testing.B) {
		_, p := slot(b, ProbeConfig(`{}`))
		starter, err := p.host.starter(p)
		require.NoError(b, err)
		for b.Loop() {
			c := p.starting()
			c.Began = time.Now()
			c.Deadline = c.Began.Add(time.Second)
			in, err := starter.Start(b.Context(), c)
			require.NoError(b, err)
			in.Close()
		}
	})
}
