package run

import (
	"context"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// If the host's options have a tracer, a run is one trace. It contains no ids of the pack, no texts and no keys: a
// probe appears as its number within its session.
//
//	evaluation               the part of the run in this process
//	  cell                   a provider and a replicate, from loading to the end
//	    session              a session of a persona: its records, and the test session that follows
//	      record_event       the host's own spans, down to the native calls
//	      readiness
//	      probe              one question at one budget
//	        retrieve         several if it was retried
//	      answer             the agent's answer to it
//
// Work of an earlier process has no span.

// spanned runs do within a span. about, which may be nil, adds attributes.
func (r *runner) spanned(ctx context.Context, name string, about func(host.Span),
	do func(ctx context.Context) error) error {
	tracer := r.options.Host.Tracer
	if tracer == nil {
		return do(ctx)
	}
	kind := host.SpanPart
	if name == spanRun {
		kind = host.SpanOperation // starts a trace, unless the caller has one
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
