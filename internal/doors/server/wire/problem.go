package wire

import (
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// Problem is the body of every answer that is not a success: a problem document (RFC 9457) with the fields of the
// AdapterError besides its own.
type Problem struct {
	// Type is urn:memhost:error: and the code.
	Type string `json:"type"`
	// Title is the code in words. It never varies with the occasion.
	Title string `json:"title"`
	// Status repeats the HTTP status.
	Status int64 `json:"status"`
	// Detail is the message.
	Detail string `json:"detail"`
	abi.Error
}

// ProblemType is the type of the problem documents with that code.
func ProblemType(code abi.Code) string { return "urn:memhost:error:" + string(code) }

// Title is a code in words.
func Title(code abi.Code) string {
	switch code {
	case abi.CodeInvalidArgument:
		return "The request is wrong"
	case abi.CodeUnauthenticated:
		return "Credentials are missing or wrong"
	case abi.CodeDenied:
		return "Not allowed"
	case abi.CodeNotFound:
		return "Not found"
	case abi.CodeConflict:
		return "In conflict with what was recorded before"
	case abi.CodeReadOnly:
		return "The slot is read-only"
	case abi.CodeUnsupported:
		return "The provider cannot do this"
	case abi.CodeTooLarge:
		return "Too large"
	case abi.CodeRateLimited:
		return "Too many requests"
	case abi.CodeUnavailable:
		return "Unavailable"
	case abi.CodeTimeout:
		return "Out of time"
	case abi.CodeBackend:
		return "The backend failed"
	case abi.CodeIsolationBreach:
		return "The backend answered with another scope's memory"
	default:
		return "Internal error"
	}
}

// Status is the HTTP status of e. If a backend rejected the slot's credentials it is 502, because that is the slot's
// problem and not the caller's.
func Status(e *abi.Error) int {
	return e.Code.HTTPStatus(e.Route != "" || e.Native != nil && e.Native.Status != nil)
}

// EncodeProblem writes the problem document of e.
func EncodeProblem(e *abi.Error, status int) []byte {
	var w wirejson.Encoder
	w.ObjStart()
	w.FieldStart("type")
	w.Str(ProblemType(e.Code))
	w.FieldStart("title")
	w.Str(Title(e.Code))
	w.FieldStart("status")
	w.Int(status)
	w.FieldStart("detail")
	w.Str(e.Message)
	// After the opening brace, the encoded error has at least one field.
	return append(append(w.Bytes(), ','), abi.Marshal(e)[1:]...)
}

// DecodeProblem decodes the error in a problem document. It returns nil for any other body.
func DecodeProblem(body []byte) *abi.Error {
	e := new(abi.Error)
	if err := abi.Unmarshal(body, e); err != nil || e.Code == "" {
		return nil
	}
	return e
}

// RetryAfter is the value of a Retry-After header: whole seconds, rounded up.
func RetryAfter(ms int64) string {
	return strconv.FormatInt((max(ms, 0)+999)/1000, 10)
}
