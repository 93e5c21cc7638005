// Package traceparent reads and writes the W3C header traceparent, which tells a program of which trace its work is a
// part, and keeps its content in a context. https://www.w3.org/TR/trace-context/
package traceparent

import (
	"context"
	"encoding/hex"
	"slices"
)

// Header is the name of the header, and of the member of an MCP request's _meta. Variable is the environment variable
// in which a program passes it to another one that it starts.
const (
	Header   = "traceparent"
	Variable = "TRACEPARENT"
)

// Parent is a span, here or elsewhere: what the header holds. The zero value is none.
type Parent struct {
	Trace [16]byte
	Span  [8]byte
	// Sampled says that the trace is recorded.
	Sampled bool
}

// Present reports whether p is a span.
func (p Parent) Present() bool { return p.Trace != [16]byte{} && p.Span != [8]byte{} }

// The header has four parts, of which the first is the version:
//
//	00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
const (
	headerBytes = 55
	sampledFlag = 1
)

// Parse reads a header. A later version may add parts, which are left out.
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

// With says of which span the work under ctx is a part.
func With(ctx context.Context, p Parent) context.Context {
	return context.WithValue(ctx, parentKey{}, p)
}

// Of is what With said; the zero value where nobody did.
func Of(ctx context.Context) Parent {
	p, _ := ctx.Value(parentKey{}).(Parent)
	return p
}

// Accept is With for a header of a caller's. An absent or invalid one changes nothing.
func Accept(ctx context.Context, header string) context.Context {
	if p, ok := Parse(header); ok {
		return With(ctx, p)
	}
	return ctx
}

// WithCauses says by their headers which spans caused the work under ctx without being around it. Empty ones are left
// out.
func WithCauses(ctx context.Context, headers ...string) context.Context {
	headers = slices.DeleteFunc(slices.Clone(headers), func(header string) bool { return header == "" })
	if len(headers) == 0 {
		return ctx
	}
	return context.WithValue(ctx, causesKey{}, headers)
}

// CausesOf is what WithCauses said; nil where nobody did.
func CausesOf(ctx context.Context) []string {
	headers, _ := ctx.Value(causesKey{}).([]string)
	return headers
}
