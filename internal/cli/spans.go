package cli

import (
	"os"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/telemetry"
)

// spansCloseWithin bounds the sending of the last spans when a process ends.
const spansCloseWithin = 2 * time.Second

// spans sends the spans of this process. Nil sends nothing.
type spans struct {
	*telemetry.Tracer
	borrowed bool // somebody else closes it
}

// spansInto begins to send spans where the configuration names a collector, and adds it to a host's options. It returns
// nil where it names none.
//
// Errors: invalid_argument for a header whose secret cannot be read.
func (a *app) spansInto(o *host.Options, c *config.Config, log hclog.Logger) (*spans, error) {
	otlp := c.Telemetry.OTLP
	if otlp.Endpoint == "" {
		return nil, nil
	}
	o.PropagateTrace = c.Telemetry.Propagate
	if a.spans != nil {
		o.Tracer = a.spans.Tracer
		return &spans{Tracer: a.spans.Tracer, borrowed: true}, nil
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
		Host: machine, Instance: host.ThisHost(), Version: a.version().Version, Logger: log})
	o.Tracer = t
	return &spans{Tracer: t}, nil
}

// evalSpans begins to send the spans of an evaluation, where a configuration that the command line names wants that. A
// run is what its lab file says: of the configuration, nothing else counts.
//
// Errors: those of the configuration, and of spansInto.
func (a *app) evalSpans(o *host.Options) (*spans, error) {
	if a.flags.config == "" && len(a.flags.set) == 0 {
		return nil, nil
	}
	from, err := a.configOptions()
	if err != nil {
		return nil, err
	}
	from.NamedFileOnly = true
	c, err := config.Load(from)
	if err != nil {
		return nil, err
	}
	return a.spansInto(o, c, a.logger(hclog.Warn))
}

// endEvalSpans closes them, and says how many came: nothing else of an evaluation would.
func (a *app) endEvalSpans(s *spans) {
	if s == nil {
		return
	}
	s.close()
	sent, lost := s.Counts()
	a.out.note("spans: %d sent to %s; %d lost", sent, s.Tracer, lost)
}

// close sends what waits and ends sending.
func (s *spans) close() {
	if s != nil && !s.borrowed {
		s.Close(spansCloseWithin)
	}
}
