package mcpdoor

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/base/traceparent"
)

// begin starts the span of a request. A client may name the trace that the request belongs to: in its _meta, or over
// HTTP in a header.
func (d *Door) begin(ctx context.Context, method, name string, meta mcp.Meta, extra *mcp.RequestExtra) (context.Context,
	host.Span) {
	header, _ := meta[traceparent.Header].(string)
	if header == "" && extra != nil {
		header = extra.Header.Get(traceparent.Header)
	}
	ctx = traceparent.Accept(ctx, header)
	if d.options.Tracer == nil {
		return ctx, host.NoSpan{}
	}
	ctx, span := d.options.Tracer.Begin(ctx, host.SpanStart{Name: method + " " + name, Kind: host.SpanRequest})
	span.Text("memhost.door", "mcp")
	span.Text("mcp.method.name", method)
	return ctx, span
}

// end ends a span.
func end(span host.Span, err error) { span.End(string(abi.CodeOf(err))) }
