package main

import (
	"strconv"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// said is what mem0 says of a failure: the self-hosted server {"detail": text or [{msg, loc}], "code", "request_id"}, the platform {"error"}, {"detail"},
// {"message"} or {"error", "details": {"message"}}, either of them plain text.
type said struct{ message, code string }

func readFailure(body []byte) said {
	var detail, problem, message, more, code string
	err := jsontext.DecodeBytes(body).Obj(func(d *jsontext.Decoder, key string) (err error) {
		switch key {
		case "detail":
			detail, err = readDetail(d)
		case "error":
			problem, err = readText(d)
		case "message":
			message, err = readText(d)
		case "code":
			code, err = readText(d)
		case "details":
			err = eachIn(d, func(d *jsontext.Decoder, key string) (err error) {
				if key == "message" {
					more, err = readText(d)
					return err
				}
				return d.Skip()
			})
		default:
			err = d.Skip()
		}
		return err
	})
	if err != nil {
		return said{message: clip(body[:min(len(body), 200)])}
	}
	for _, text := range []string{detail, problem, message} {
		if text != "" {
			if more != "" {
				text += ": " + more
			}
			return said{text, code}
		}
	}
	return said{more, code}
}

// readDetail is a text, or the first message of a validation error with its place.
func readDetail(d *jsontext.Decoder) (detail string, err error) {
	if d.Next() != jsontext.Array {
		return readText(d)
	}
	err = d.Arr(func(d *jsontext.Decoder) error {
		var text, place string
		err := eachIn(d, func(d *jsontext.Decoder, key string) (err error) {
			switch key {
			case "msg":
				text, err = readText(d)
			case "loc":
				err = eachIn(d, func(d *jsontext.Decoder, _ string) error {
					step, err := readText(d)
					if step != "" {
						place += step + "."
					}
					return err
				})
			default:
				err = d.Skip()
			}
			return err
		})
		if detail == "" && text != "" {
			detail = place + " " + text
		}
		return err
	})
	return detail, err
}

// codes says what mem0's own codes of a 502 come to (server/errors.py). Its provider is its LLM or its embedder, not this one.
var codes = map[string]struct {
	code      abi.Code
	retryable bool
	hint      string
}{
	"provider_auth_failed":     {abi.CodeUnavailable, false, "mem0's LLM or embedder refuses mem0's credentials: correct them in mem0"},
	"provider_rate_limited":    {abi.CodeRateLimited, true, "mem0's LLM or embedder limits its calls; mem0 does not say for how long"},
	"provider_timeout":         {abi.CodeUnavailable, true, "mem0's LLM or embedder did not answer in time"},
	"provider_unavailable":     {abi.CodeUnavailable, true, "mem0's LLM or embedder cannot be reached"},
	"provider_bad_request":     {abi.CodeBackend, false, "mem0's LLM or embedder refuses the text, mostly because it is too long: record smaller turns, or lower max_chars_per_message"},
	"datastore_unavailable":    {abi.CodeUnavailable, true, "mem0's database cannot be reached"},
	"vector_store_unavailable": {abi.CodeUnavailable, true, "mem0's vector store cannot be reached"},
	"provider_empty_answer":    {abi.CodeBackend, true, "mem0's LLM answered nothing"},
	"rerank_failed":            {abi.CodeUnavailable, true, "the gateway's reranker fails; rerank_on_error: plain takes the search's own order then, and says so"},
	"store_full":               {abi.CodeUnavailable, false, "the gateway's embedded store has as many rows as it may: reset what is not needed, or give the gateway PostgreSQL"},
	"unknown":                  {abi.CodeBackend, true, "mem0 does not say what failed; its log does, by the request id"},
}

// failure is the typed error of an answer that is no success. It keeps the answer, as far as an error carries it.
func failure(route string, head *abi.HTTPResponse, body []byte) *abi.Error {
	told := readFailure(body)
	e := byStatus(head, told)
	e.Message = "mem0 answered route " + route + " with " + sdk.Itoa(head.Status)
	if told.message != "" {
		e.Message += ": " + told.message
	}
	if id := head.Headers.Get("x-request-id"); id != "" {
		e.Message += " (request " + id + ")"
	}
	e.Route, e.Native = route, &abi.NativeError{Status: &head.Status, Body: clip(body)}
	return e
}

func byStatus(head *abi.HTTPResponse, told said) *abi.Error {
	if known, ok := codes[told.code]; ok && head.Status >= 500 {
		e := abi.NewError(known.code, "").WithReason(told.code).WithHint(known.hint)
		e.Retryable = known.retryable
		return e
	}
	switch head.Status {
	case 400, 422:
		if told.code == "rerank_not_configured" {
			return abi.NewError(abi.CodeUnsupported, "").WithReason(told.code).WithHint("put a reranker under mem0.reranker in the gateway's configuration")
		}
		return abi.NewError(abi.CodeInvalidArgument, "").WithReason(told.code)
	case 401:
		return abi.NewError(abi.CodeUnauthenticated, "").WithHint("is the key right, and does auth say how this server wants it?")
	case 402, 403:
		return abi.NewError(abi.CodeDenied, "").WithHint("the key lacks a right; the self-hosted server wants its ADMIN_API_KEY for this")
	case 404:
		return abi.NewError(abi.CodeNotFound, "")
	case 409:
		return abi.NewError(abi.CodeConflict, "")
	case 413:
		return abi.NewError(abi.CodeTooLarge, "")
	case 429:
		e := abi.NewError(abi.CodeRateLimited, "")
		if s, err := strconv.ParseInt(head.Headers.Get("retry-after"), 10, 32); err == nil && s >= 0 {
			s *= 1000
			e.RetryAfterMS = &s
		}
		return e
	case 503, 504:
		return abi.NewError(abi.CodeUnavailable, "")
	default:
		e := abi.NewError(abi.CodeBackend, "")
		e.Retryable = head.Status >= 500
		return e
	}
}

// statusOf is the backend's status in an error, 0 where there was no answer.
func statusOf(e *abi.Error) int64 {
	if e.Native == nil || e.Native.Status == nil {
		return 0
	}
	return *e.Native.Status
}
