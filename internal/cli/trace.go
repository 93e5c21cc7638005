package cli

import (
	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli/tracelog"
	"github.com/memhost/memhost/internal/configuration/config"
)

// TraceInto opens the log of the run, if it is configured, and adds it to the host's options. The caller must close the
// returned log, which may be nil, after the host.
func TraceInto(o *host.Options, c *config.Config, log hclog.Logger) (*tracelog.Log, error) {
	if c.Trace.File == "" {
		return nil, nil
	}
	l, err := tracelog.Open(tracelog.Options{File: c.Trace.File, MaxBytes: c.Trace.MaxBytes, Keep: int(c.Trace.Keep),
		Content: c.Trace.Include == "content", Logger: log})
	if err != nil {
		return nil, err
	}
	o.OnExchange, o.HealthWarnings = l.OnExchange, l.Warnings
	return l, nil
}
