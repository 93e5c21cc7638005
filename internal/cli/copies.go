package cli

import (
	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/memoryfiles"
)

// CopiesInto adds the copies of memories' files to the host's options, if they are configured or left from an earlier
// time. The caller must start what it returns after the slot was opened, and close it before the slot. It may be nil.
// While a cassette is recorded nothing is copied, because only what callers ask for may run.
func (a *App) CopiesInto(o *host.Options, c *config.Config, log hclog.Logger) *memoryfiles.Live {
	l := memoryfiles.NewLive(memoryfiles.LiveOptions{DataDir: o.DataDir, On: c.Data.Files && o.Cassette == nil, Logger: log,
		Now: a.Now})
	if l == nil {
		return nil
	}
	o.FileCopies = l
	others := o.HealthWarnings
	o.HealthWarnings = func() []string {
		if others == nil {
			return l.Warnings()
		}
		return append(others(), l.Warnings()...)
	}
	return l
}
