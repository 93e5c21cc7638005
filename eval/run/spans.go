package run

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// Where the host's options have a tracer, a run is one trace. No id of the pack's, no text and no key is in it: a probe
// is its number within its session.
//
//	evaluation               the run, as far as this process has it
//	  cell                   a provider and a replicate, from loading to the end
//	    session              a session of a persona: its records, and the test session that follows
//	      record_event       the host's own spans, down to the native calls
//	      readiness
//	      probe              one question within one budget
//	        retrieve         several where it was asked again
//	      answer             the agent's answer to it
//
// What an earlier process has done has no span.

// spanned does something within a span. about says what it is of; nil: nothing.
func (r *runner) spanned(ctx context.Context, name string, about func(host.Span),
	do func(ctx context.Context) error) error {
	tracer := r.options.Host.Tracer
	if tracer == nil {
		return do(ctx)
	}
	kind := host.SpanPart
	if name == spanRun {
		kind = host.SpanOperation // it begins a trace, unless a caller has one
	}
	ctx, span := tracer.Begin(ctx, host.SpanStart{Name: name, Kind: kind})
	if about != nil {
		about(span)
	}
	err := do(ctx)
	span.End(failure(ctx, err))
	return err
}

// failure is a short word for an error.
func failure(ctx context.Context, err error) string {
	if err != nil && ctx.Err() != nil {
		return "interrupted"
	}
	return string(abi.CodeOf(err))
}

const (
	spanRun     = "evaluation"
	spanCell    = "cell"
	spanSession = "session"
	spanProbe   = "probe"
	spanAnswer  = "answer"
)
