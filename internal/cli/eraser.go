package cli

import (
	"context"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/server"
)

// Eraser erases a person with a slot. running is the configuration that the slot was started with, options how it was
// read. Providers that served before are opened with the block that they had then, and with today's secrets.
func (a *App) Eraser(slot *host.Slot, running *config.Config, options config.Options) func(context.Context,
	*report.PersonaRequest) (*report.PersonaReceipt, error) {
	find := func(_ context.Context, stored *host.StoredProvider) (host.ProviderConfig, error) {
		r := server.SwapRequest{Condition: stored.Name, Config: stored.Block}
		if stored.Word == config.WordBackend {
			r.Backend, r.Condition = stored.Name, ""
		}
		if stored.Source != SourceBuiltin {
			r.Plugin = stored.Source
		}
		next, err := a.SwapConfig(running, options, r)
		next.Profile = stored.Profile
		return next, err
	}
	return func(ctx context.Context, r *report.PersonaRequest) (*report.PersonaReceipt, error) {
		return slot.ErasePersona(ctx, r, find)
	}
}
