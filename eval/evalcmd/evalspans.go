package evalcmd

import (
	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
)

// evalSpans starts sending the spans of an evaluation, if a configuration given on the command line asks for it.
// Nothing else in that configuration is used, because only the lab file determines a run.
//
// Errors: those of the configuration, and of SpansInto.
func (a *commands) evalSpans(o *host.Options) (*cli.Spans, error) {
	if a.Flags.Config == "" && len(a.Flags.Set) == 0 {
		return nil, nil
	}
	from, err := a.ConfigOptions()
	if err != nil {
		return nil, err
	}
	from.NamedFileOnly = true
	c, err := config.Load(from)
	if err != nil {
		return nil, err
	}
	return a.SpansInto(o, c, a.Logger(hclog.Warn))
}

// endEvalSpans stops sending and prints how many spans arrived, which is not reported anywhere else.
func (a *commands) endEvalSpans(s *cli.Spans) {
	if s == nil {
		return
	}
	s.Close()
	sent, lost := s.Counts()
	a.Out.Note("spans: %d sent to %s; %d lost", sent, s.Tracer, lost)
}
