package cli

import (
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/telemetry"
)

// spansCloseWithin bounds the time for sending the last spans when a process ends.
const spansCloseWithin = 2 * time.Second

// Spans sends the spans of this process. Nil sends nothing.
type Spans struct {
	*telemetry.Tracer
	borrowed bool // owned and closed by another part of the process
}

// SpansInto starts sending spans if the configuration names a collector, and adds the sender to a host's options.
// Otherwise it returns nil.
//
// Errors: invalid_argument for a header whose secret cannot be read.
func (a *App) SpansInto(o *host.Options, c *config.Config, log hclog.Logger) (*Spans, error) {
	otlp := c.Telemetry.OTLP
	if otlp.Endpoint == "" {
		return nil, nil
	}
	o.PropagateTrace = c.Telemetry.Propagate
	if a.Spans != nil {
		o.Tracer = a.Spans.Tracer
		return &Spans{Tracer: a.Spans.Tracer, borrowed: true}, nil
	}
	headers := map[string]string{}
	for name, header := range otlp.Headers {
		value, err := c.Secrets[header.Secret].Resolve()
		if err != nil {
			return nil, err
		}
		headers[name] = value
	}
	machine, _ := os.Hostname()
	t := telemetry.New(telemetry.Options{Endpoint: otlp.Endpoint, Headers: headers, SamplePercent: otlp.SamplePercent,
		Host: machine, Instance: host.ThisHost(), Version: a.Version().Version, Logger: log})
	o.Tracer = t
	return &Spans{Tracer: t}, nil
}

// Close sends waiting spans and stops.
func (s *Spans) Close() {
	if s != nil && !s.borrowed {
		s.Tracer.Close(spansCloseWithin)
	}
}
