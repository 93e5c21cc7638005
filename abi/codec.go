package abi

import (
	"unicode/utf8"

	"github.com/memhost/memhost/abi/wirejson"
)

// Mode says what Decode does with a field that the type does not have.
type Mode uint8

// The modes of decoding.
const (
	// Lenient skips unknown fields: answers, and everything that a newer version may have extended.
	Lenient Mode = iota
	// Strict refuses them: requests, manifests and configuration.
	Strict
)

// How deep arrays and objects may nest in what Unmarshal reads: a document as a whole, and any Raw in it. The
// difference is room for what the contract itself puts around a value, so that a result still fits into a format
// request, and that into the envelope for a guest.
const (
	MaxDepth      = 64
	MaxValueDepth = 56
)

// Raw is one JSON value, kept byte for byte. Nil means absent: null decodes to nil, and nil encodes to null where the
// field is not omitted. Encoding trusts a Raw made in Go; ValidJSON checks one.
type Raw []byte

// MarshalJSON returns r itself, for encoding/json.
func (r Raw) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON keeps a copy of data, for encoding/json.
func (r *Raw) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*r = nil
		return nil
	}
	*r = append((*r)[:0:0], data...)
	return nil
}

// Encodable is what Marshal writes: every struct of this package, through a pointer.
type Encodable interface {
	// Encode writes one JSON value.
	Encode(e *wirejson.Encoder)
}

// Decodable is what Unmarshal reads: every struct of this package.
type Decodable interface {
	// Decode reads one JSON value over whatever the receiver held; a field that is absent or null becomes zero. Of a
	// key that occurs twice the last one counts. Where the input is not JSON, the error is the decoder's. Only
	// Unmarshal limits how deep a document nests.
	Decode(d *wirejson.Decoder, m Mode) error
}

// The functions that read and write are generic so that TinyGo calls Encode or Decode of the type at hand. A pointer
// that becomes an interface links both of its codecs, and those of every type below it, into a guest that needs but
// one.

// Marshal returns v as JSON. Strings that are not UTF-8 are written with U+FFFD for the bad bytes, NaN and infinities
// as null, maps with sorted keys.
func Marshal[V Encodable](v V) []byte { return AppendJSON(make([]byte, 0, 512), v) }

// AppendJSON is Marshal into a buffer that the caller keeps.
func AppendJSON[V Encodable](dst []byte, v V) []byte {
	var e wirejson.Encoder
	e.SetBytes(dst)
	v.Encode(&e)
	return e.Bytes()
}

// Unmarshal reads an answer: unknown fields are ignored. Nothing in v refers to data afterwards.
//
// Errors: invalid_argument; the message starts with the path of the field, as in
// `messages[1].content: want a string, got a number`, or says where data stops being JSON.
func Unmarshal[V Decodable](data []byte, v V) error {
	return unmarshal(bounded(data).Copying(), data, v, Lenient)
}

// UnmarshalOwned is Unmarshal for data that nobody changes afterwards: v refers to it instead of holding copies.
func UnmarshalOwned[V Decodable](data []byte, v V) error {
	return unmarshal(bounded(data), data, v, Lenient)
}

// UnmarshalStrict reads a request: an unknown field is an error that names the nearest known one, or all of
// them, and so are bytes that are not UTF-8.
func UnmarshalStrict[V Decodable](data []byte, v V) error {
	return unmarshalStrict(bounded(data).Copying(), data, v)
}

// UnmarshalStrictOwned is UnmarshalStrict without copies: strings in v refer to data, which must not change afterwards.
func UnmarshalStrictOwned[V Decodable](data []byte, v V) error {
	return unmarshalStrict(bounded(data), data, v)
}

func unmarshalStrict[V Decodable](d *wirejson.Decoder, data []byte, v V) error {
	if !utf8.Valid(data) {
		return NewError(CodeInvalidArgument, "invalid UTF-8 at byte "+itoa(invalidUTF8At(data)))
	}
	return unmarshal(d, data, v, Strict)
}

// ValidJSON reports whether data is one JSON value no deeper than MaxDepth.
func ValidJSON(data []byte) bool { return bounded(data).Validate() == nil }

func bounded(data []byte) *wirejson.Decoder { return wirejson.DecodeBytes(data).Limit(MaxDepth) }

func unmarshal[V Decodable](d *wirejson.Decoder, data []byte, v V, m Mode) error {
	return finish(d, data, v.Decode(d, m))
}

// finish turns what Decode returned into what Unmarshal does.
func finish(d *wirejson.Decoder, data []byte, err error) error {
	if err == nil && d.AtEnd() {
		return nil
	}
	if what := notJSON(data, MaxDepth); what != "" {
		return NewError(CodeInvalidArgument, what)
	}
	if f, ok := find[*fieldError](err); ok {
		return NewError(CodeInvalidArgument, f.Error())
	}
	if err == nil {
		return NewError(CodeInternal, "Decode did not read the whole value")
	}
	return err
}

func invalidUTF8At(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// batchError is how a ReceiptOrError that holds an error looks on the wire.
type batchError struct {
	EventID string `json:"event_id"`
	Error   *Error `json:"error"`
}

// Encode writes the receipt, or the event id with its error. A value with neither is written as an internal error.
func (x *ReceiptOrError) Encode(e *wirejson.Encoder) {
	if x.Receipt != nil {
		x.Receipt.Encode(e)
		return
	}
	w := batchError{EventID: x.EventID, Error: x.Error}
	if w.Error == nil {
		w.Error = NewError(CodeInternal, "neither a receipt nor an error")
	}
	w.Encode(e)
}

// Decode reads an object with a field error as an error, any other as a receipt.
func (x *ReceiptOrError) Decode(d *wirejson.Decoder, m Mode) error {
	*x = ReceiptOrError{}
	raw, err := readValue(d, wirejson.Object, "an object")
	if raw == nil {
		return err
	}
	isError, err := hasField(raw, "error")
	if err != nil {
		return err
	}
	d = wirejson.DecodeBytes(raw)
	if !isError {
		x.Receipt = new(WriteReceipt)
		return x.Receipt.Decode(d, m)
	}
	var w batchError
	err = w.Decode(d, m)
	x.EventID, x.Error = w.EventID, w.Error
	return err
}

// MarshalJSON is Encode, for encoding/json.
func (x ReceiptOrError) MarshalJSON() ([]byte, error) { return Marshal(&x), nil }

// UnmarshalJSON is Unmarshal, for encoding/json.
func (x *ReceiptOrError) UnmarshalJSON(data []byte) error { return Unmarshal(data, x) }
