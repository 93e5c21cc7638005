package egress

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// Redacted replaces the value of a secret.
const Redacted = "[secret removed]"

// Redactor removes the operator's secrets from whatever leaves the host: logs, traces, errors, and answers that reach a
// guest. It finds a secret verbatim, in base64 (alone or inside a longer text, such as user:password), and either of
// these with JSON escapes (\/, \u003d, every character as \u00xx), percent-encoded, or nested like this up to three
// times, as in JSON inside JSON. It does not find other encodings.
//
//	secret pa/ss=word    found as pa\/ss=word, \u0070a/ss=word, pa%2Fss%3dword, cGEvc3M9d29yZA, pa\\\/ss=word
type Redactor struct {
	// needles[n] is what to search for in a text that was decoded n times: the forms of each secret, decoded as often.
	needles [decodings + 1][][]byte
	// names has the forms of each secret in lower case, for header names.
	names []string
}

// decodings is how many layers of escapes are decoded.
const decodings = 3

// NewRedactor creates a Redactor for the secrets' values. It skips empty ones.
func NewRedactor(values []string) Redactor {
	var r Redactor
	for _, v := range values {
		if v == "" {
			continue
		}
		for _, form := range append(base64Forms(v), v, strings.ReplaceAll(v, " ", "+")) {
			r.names = append(r.names, strings.ToLower(form))
			needle := []byte(form)
			for n := range r.needles {
				r.needles[n] = append(r.needles[n], needle)
				needle, _ = decode(needle)
				if len(needle) < shortestSecret { // what remains of "\u0041" would occur in any text
					break
				}
			}
		}
	}
	return r
}

// base64Forms lists the base64 encodings of a text at each position within a longer text. It leaves out the characters
// at both ends, which depend on the surrounding text.
func base64Forms(text string) []string {
	var forms []string
	for before := range 3 {
		padded := append(make([]byte, before), text...)
		first, end := (before*8+5)/6, len(padded)*8/6
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			forms = append(forms, encoding.EncodeToString(padded)[first:end])
		}
	}
	return slices.Compact(forms)
}

// Text returns s without secrets.
func (r Redactor) Text(s string) string {
	b := []byte(s)
	if spans := r.find(b); len(spans) > 0 {
		return string(without(b, spans))
	}
	return s
}

// HeaderName returns the name of a header in lower case and without secrets in any case: header names lose their
// original spelling when they are read.
func (r Redactor) HeaderName(name string) string {
	name = r.Text(strings.ToLower(name))
	for _, secret := range r.names {
		name = strings.ReplaceAll(name, secret, Redacted)
	}
	return name
}

// Bytes returns b without secrets: b itself if it contains none.
func (r Redactor) Bytes(b []byte) []byte {
	if spans := r.find(b); len(spans) > 0 {
		return without(b, spans)
	}
	return b
}

// Error returns a copy of e without secrets, with its native body cut to abi.NativeBodyLimit.
func (r Redactor) Error(e *abi.Error) *abi.Error {
	clean := *e
	clean.Message, clean.Hint, clean.Reason = r.Text(e.Message), r.Text(e.Hint), r.Text(e.Reason)
	if e.Native != nil {
		native := *e.Native
		native.Body = r.Text(native.Body)
		if len(native.Body) > abi.NativeBodyLimit {
			native.Body = strings.ToValidUTF8(native.Body[:abi.NativeBodyLimit], "")
		}
		clean.Native = &native
	}
	return &clean
}

// span is a half-open range of bytes.
type span struct{ start, end int }

// find returns where secrets are in a text, ordered by start.
func (r Redactor) find(text []byte) []span {
	var spans []span
	var layers []escapes
	for n, needles := range r.needles {
		for _, needle := range needles {
			for from := 0; ; {
				i := bytes.Index(text[from:], needle)
				if i < 0 {
					break
				}
				s := span{from + i, from + i + len(needle)}
				from = s.end
				for _, layer := range slices.Backward(layers) {
					s = layer.origin(s)
				}
				spans = append(spans, s)
			}
		}
		if n == decodings || len(needles) == 0 {
			break
		}
		decoded, layer := decode(text)
		if len(layer) == 0 {
			break
		}
		text, layers = decoded, append(layers, layer)
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return spans
}

// without replaces each span; overlapping spans are replaced as one.
func without(text []byte, spans []span) []byte {
	var clean []byte
	end := 0
	for _, s := range spans {
		if s.start >= end {
			clean = append(append(clean, text[end:s.start]...), Redacted...)
		}
		end = max(end, s.end)
	}
	return append(clean, text[end:]...)
}

// escape is one escape sequence: raw[at:at+length] became decoded[to:to+size]. It is small, because an answer may
// consist of nothing but escapes.
type escape struct {
	at, to       uint32
	length, size uint8
}

func (e escape) end() int        { return int(e.at) + int(e.length) }
func (e escape) decodedEnd() int { return int(e.to) + int(e.size) }

// escapes are the sequences that decode resolved, in order.
type escapes []escape

// origin returns where a span of the decoded text was before decoding. A part of an escape sequence counts as the whole
// sequence.
func (e escapes) origin(s span) span {
	position := func(decoded int, isEnd bool) int {
		// the number of escapes after the position
		after := sort.Search(len(e), func(i int) bool { return e[i].decodedEnd() > decoded })
		if after < len(e) && int(e[after].to) < decoded {
			if isEnd {
				return e[after].end()
			}
			return int(e[after].at)
		}
		if after == 0 {
			return decoded
		}
		last := e[after-1]
		return last.end() + decoded - last.decodedEnd()
	}
	return span{position(s.start, false), position(s.end, true)}
}

// decode resolves the JSON escapes and the percent-encoded bytes of a text, once. Without any it returns the text
// itself and nil.
func decode(text []byte) ([]byte, escapes) {
	var decoded []byte
	var list escapes
	var room [utf8.UTFMax]byte
	done := 0 // text[:done] has been decoded
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' && text[i] != '%' {
			continue
		}
		value, length := unescape(room[:0], text[i:])
		if length == 0 {
			continue
		}
		if list == nil {
			decoded = make([]byte, 0, len(text))
		}
		decoded = append(decoded, text[done:i]...)
		list = append(list, escape{at: uint32(i), length: uint8(length), to: uint32(len(decoded)),
			size: uint8(len(value))})
		decoded = append(decoded, value...)
		done = i + length
		i = done - 1
	}
	if list == nil {
		return text, nil
	}
	return append(decoded, text[done:]...), list
}

// shortEscapes are JSON's two-character escapes and their meanings.
var shortEscapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape appends the meaning of the escape sequence at the start of a text, and returns the sequence's length; 0 if
// there is no escape sequence.
func unescape(dst, text []byte) (decoded []byte, length int) {
	if text[0] == '%' {
		if len(text) < 3 {
			return dst, 0
		}
		decoded, err := hex.AppendDecode(dst, text[1:3])
		if err != nil {
			return dst, 0
		}
		return decoded, 3
	}
	if len(text) < 2 {
		return dst, 0
	}
	if b, ok := shortEscapes[text[1]]; ok {
		return append(dst, b), 2
	}
	first, ok := wirejson.CodeUnit(text)
	if !ok {
		return dst, 0
	}
	if second, ok := wirejson.CodeUnit(text[wirejson.EscapeLen:]); ok {
		if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
			return utf8.AppendRune(dst, r), 2 * wirejson.EscapeLen
		}
	}
	return utf8.AppendRune(dst, first), wirejson.EscapeLen
}
