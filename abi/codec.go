package abi

import (
	"unicode/utf8"

	"github.com/memhost/memhost/abi/wirejson"
)

// Mode says what Decode does with unknown fields.
type Mode uint8

// The decoding modes.
const (
	// Lenient skips unknown fields. It is for answers, which a newer version may have extended.
	Lenient Mode = iota
	// Strict rejects unknown fields. It is for requests, manifests and configuration.
	Strict
)

// The nesting limits of Unmarshal, in levels of arrays and objects: for a whole document, and for any Raw in it. The
// difference leaves room for the levels that the contract puts around a value, so a result still fits into a format
// request, and that request into the envelope for a guest.
const (
	MaxDepth      = 64
	MaxValueDepth = 56
)

// Raw is one JSON value, kept byte for byte. Nil means absent: null decodes to nil, and nil encodes to null unless the
// field is omitted. Encoding does not check a Raw that was made in Go; ValidJSON does.
type Raw []byte

// MarshalJSON implements json.Marshaler. It returns r itself.
func (r Raw) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON implements json.Unmarshaler. It keeps a copy of data.
func (r *Raw) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*r = nil
		return nil
	}
	*r = append((*r)[:0:0], data...)
	return nil
}

// Encodable is a value that Marshal can write: a pointer to any struct of this package.
type Encodable interface {
	// Encode writes one JSON value.
	Encode(e *wirejson.Encoder)
}

// Decodable is a value that Unmarshal can read: a pointer to any struct of this package.
type Decodable interface {
	// Decode reads one JSON value and overwrites all fields of the receiver; a field that is absent or null becomes
	// zero. If a key occurs twice, the last one counts. Errors in the JSON itself are the decoder's. Decode does not
	// limit nesting; Unmarshal does.
	Decode(d *wirejson.Decoder, m Mode) error
}

// Marshal and Unmarshal are generic so that TinyGo links only the Encode or Decode of the type in use. Passing a
// pointer as an interface would link both codecs of that type, and of every type it contains, into a guest that needs
// one of them.

// Marshal returns v as JSON. In strings, each byte that is not UTF-8 is written as U+FFFD. NaN and infinities are
// written as null, map keys in sorted order.
func Marshal[V Encodable](v V) []byte { return AppendJSON(make([]byte, 0, 512), v) }

// AppendJSON appends v as JSON to dst, as Marshal writes it, and returns the extended buffer.
func AppendJSON[V Encodable](dst []byte, v V) []byte {
	var e wirejson.Encoder
	e.SetBytes(dst)
	v.Encode(&e)
	return e.Bytes()
}

// Unmarshal reads an answer. It ignores unknown fields and copies what it keeps, so data may change afterwards. Errors:
// invalid_argument; the message starts with the path of the field, as in `messages[1].content: want a string, got a
// number`, or says where data stops being JSON.
func Unmarshal[V Decodable](data []byte, v V) error {
	return unmarshal(limitedDecoder(data).Copying(), data, v, Lenient)
}

// UnmarshalOwned is Unmarshal without copies: v refers to data, which must not change afterwards.
func UnmarshalOwned[V Decodable](data []byte, v V) error {
	return unmarshal(limitedDecoder(data), data, v, Lenient)
}

// UnmarshalStrict reads a request. An unknown field is an error that suggests the nearest known one, or lists them all.
// Bytes that are not UTF-8 are an error too.
func UnmarshalStrict[V Decodable](data []byte, v V) error {
	return unmarshalStrict(limitedDecoder(data).Copying(), data, v)
}

// UnmarshalStrictOwned is UnmarshalStrict without copies: strings in v refer to data, which must not change afterwards.
func UnmarshalStrictOwned[V Decodable](data []byte, v V) error {
	return unmarshalStrict(limitedDecoder(data), data, v)
}

func unmarshalStrict[V Decodable](d *wirejson.Decoder, data []byte, v V) error {
	if !utf8.Valid(data) {
		return NewError(CodeInvalidArgument, "invalid UTF-8 at byte "+itoa(invalidUTF8At(data)))
	}
	return unmarshal(d, data, v, Strict)
}

// ValidJSON reports whether data is one JSON value no deeper than MaxDepth.
func ValidJSON(data []byte) bool { return limitedDecoder(data).Validate() == nil }

func limitedDecoder(data []byte) *wirejson.Decoder { return wirejson.DecodeBytes(data).Limit(MaxDepth) }

func unmarshal[V Decodable](d *wirejson.Decoder, data []byte, v V, m Mode) error {
	return finish(d, data, v.Decode(d, m))
}

// finish converts the result of Decode into that of Unmarshal.
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

// batchError is the JSON form of a ReceiptOrError that holds an error.
type batchError struct {
	EventID string `json:"event_id"`
	Error   *Error `json:"error"`
}

// Encode writes the receipt, or the event id with its error. If neither is set it writes an internal error.
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

// MarshalJSON implements json.Marshaler.
func (x ReceiptOrError) MarshalJSON() ([]byte, error) { return Marshal(&x), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (x *ReceiptOrError) UnmarshalJSON(data []byte) error { return Unmarshal(data, x) }
