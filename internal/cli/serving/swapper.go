package serving

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/server"
)

// swapper handles POST /v1/swap on a slot. running is the configuration that the slot was started with, options how it
// was read.
func (a *commands) swapper(slot *host.Slot, running *config.Config, options config.Options) server.Swapper {
	return server.SwapperFunc(func(ctx context.Context, r server.SwapRequest) (*report.RunManifest, error) {
		next, err := a.SwapConfig(running, options, r)
		if err != nil {
			e := *abi.AsError(err)
			e.Operation = "swap"
			if e.Hint != "" {
				e.Hint += "; "
			}
			e.Hint += "the slot serves on as before"
			return nil, &e
		}
		return slot.Swap(ctx, next)
	})
}
