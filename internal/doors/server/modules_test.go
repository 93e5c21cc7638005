package server_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

func TestModulesAreListed(t *testing.T) {
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) {
		o.Modules = func() []wire.Module {
			return []wire.Module{{Name: "m", Version: "1.0.0", SHA256: "ab", Bytes: 7, Engine: "wazero",
				Powers: []string{"http"}, Operations: []string{"retrieve"}, Warnings: []string{"w"},
				Manifest: abi.Raw(`{"name":"m"}`)}}
		}
	})
	w := ask(s.Handler(), "GET", wire.PathModules, "")
	require.Equal(t, 200, w.Code, w.Body)
	require.JSONEq(t, `{"modules":[{"name":"m","version":"1.0.0","sha256":"ab","bytes":7,"engine":"wazero",
		"powers":["http"],"operations":["retrieve"],"capabilities":[],"warnings":["w"],"manifest":{"name":"m"}}]}`,
		w.Body.String())

	s, _ = newServer(t, new(servertest.Slot))
	require.Equal(t, 501, ask(s.Handler(), "GET", wire.PathModules, "").Code)
}

// originSlot records where a question came from, as a host sees it.
type originSlot struct {
	host.Contract
	origins []string
}

func (a *originSlot) Retrieve(ctx context.Context, q *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	a.origins = append(a.origins, host.OriginOf(ctx))
	return a.Contract.Retrieve(ctx, q)
}

func TestAQuestionSaysThatThePageAsked(t *testing.T) {
	slot := &originSlot{Contract: new(servertest.Slot)}
	s, _ := newServer(t, new(servertest.Slot), func(o *server.Options) { o.Slot = slot })
	for _, origin := range []string{"", "page", "elsewhere"} {
		ask(s.Handler(), "POST", wire.PathRetrieve,
			`{"query":"q","session_id":"s","scope":{"run_id":"r","persona_id":"u"}}`, wire.HeaderOrigin, origin)
	}
	require.Equal(t, []string{"", "page", ""}, slot.origins)
}
