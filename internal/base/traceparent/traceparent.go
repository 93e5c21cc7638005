// Package traceparent reads and writes the W3C header traceparent, which identifies the trace that a request belongs
// to, and stores it in a context. https://www.w3.org/TR/trace-context/
package traceparent

import (
	"context"
	"encoding/hex"
	"slices"
)

// Header is the name of the header, and of the member of an MCP request's _meta. Variable is the environment variable
// in which a program passes it to a child process.
const (
	Header   = "traceparent"
	Variable = "TRACEPARENT"
)

// Parent identifies a span, in this process or elsewhere: the content of the header. The zero value means none.
type Parent struct {
	Trace [16]byte
	Span  [8]byte
	// Sampled means that the trace is recorded.
	Sampled bool
}

// Present reports whether p identifies a span.
func (p Parent) Present() bool { return p.Trace != [16]byte{} && p.Span != [8]byte{} }

// The header has four parts, of which the first is the version:
//
//	00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
const (
	headerBytes = 55
	sampledFlag = 1
)

// Parse parses a header. Later versions may append parts, which it ignores.
func Parse(header string) (p Parent, ok bool) {
	if len(header) < headerBytes || len(header) > headerBytes && (header[:2] == "00" || header[headerBytes] != '-') {
		return Parent{}, false
	}
	var version, flags [1]byte
	for _, part := range []struct {
		to       []byte
		from, at int
	}{{version[:], 0, 2}, {p.Trace[:], 3, 35}, {p.Span[:], 36, 52}, {flags[:], 53, 55}} {
		text := header[part.from:part.at]
		for _, c := range []byte(text) {
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return Parent{}, false
			}
		}
		if part.at < headerBytes && header[part.at] != '-' {
			return Parent{}, false
		}
		_, _ = hex.Decode(part.to, []byte(text))
	}
	if version[0] == 0xff || !p.Present() {
		return Parent{}, false
	}
	p.Sampled = flags[0]&sampledFlag != 0
	return p, true
}

// String is the header; "" for the zero value.
func (p Parent) String() string {
	if !p.Present() {
		return ""
	}
	b := hex.AppendEncode(append(make([]byte, 0, headerBytes), "00-"...), p.Trace[:])
	b = hex.AppendEncode(append(b, '-'), p.Span[:])
	if p.Sampled {
		return string(append(b, "-01"...))
	}
	return string(append(b, "-00"...))
}

type (
	parentKey struct{}
	causesKey struct{}
)

// With sets the parent span of the work under ctx.
func With(ctx context.Context, p Parent) context.Context {
	return context.WithValue(ctx, parentKey{}, p)
}

// Of returns the parent that With set; otherwise the zero value.
func Of(ctx context.Context) Parent {
	p, _ := ctx.Value(parentKey{}).(Parent)
	return p
}

// Accept is With for a header from a caller. It ignores a missing or invalid one.
func Accept(ctx context.Context, header string) context.Context {
	if p, ok := Parse(header); ok {
		return With(ctx, p)
	}
	return ctx
}

// WithCauses sets, by their headers, the spans that caused the work under ctx without being its parents. It skips empty
// headers.
func WithCauses(ctx context.Context, headers ...string) context.Context {
	headers = slices.DeleteFunc(slices.Clone(headers), func(header string) bool { return header == "" })
	if len(headers) == 0 {
		return ctx
	}
	return context.WithValue(ctx, causesKey{}, headers)
}

// CausesOf returns what WithCauses set; otherwise nil.
func CausesOf(ctx context.Context) []string {
	headers, _ := ctx.Value(causesKey{}).([]string)
	return headers
}
