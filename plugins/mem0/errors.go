package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// errorBody is mem0's description of a failure: the self-hosted server sends {"detail": text or [{msg, loc}], "code",
// "request_id"}, the platform {"error"}, {"detail"}, {"message"} or {"error", "details": {"message"}}, and either may
// send plain text.
type errorBody struct{ message, code string }

func readFailure(body abi.Raw) (s errorBody) {
	if wire.Check(body) != nil || wire.Kind(body) != wirejson.Object {
		return errorBody{message: strings.ToValidUTF8(string(body[:min(len(body), 200)]), "?")}
	}
	var detail abi.Raw
	var problem, message, more string
	wire.Pick(body, "detail", &detail, "error", &problem, "message", &message, "code", &s.code,
		"details", wire.Fields{"message", &more})
	for _, text := range []string{readDetail(detail), problem, message} {
		if s.message == "" {
			s.message = text
		}
	}
	if s.message != "" && more != "" {
		s.message += ": "
	}
	s.message += more
	return s
}

// readDetail reads a text, or the first message of a validation error with its location.
func readDetail(detail abi.Raw) string {
	for _, item := range wire.Items(detail) {
		var text, place string
		var steps []string
		wire.Pick(item, "msg", &text, "loc", &steps)
		for _, step := range steps {
			place += step + "."
		}
		if text != "" {
			return place + " " + text
		}
	}
	return wire.Text(detail)
}

// outcome is the meaning of one of mem0's codes.
type outcome struct {
	code      abi.Code
	retryable bool
	hint      string
}

// codes are mem0's own codes of a 502 (server/errors.py). Their "provider" is mem0's LLM or embedder.
var codes = map[string]outcome{
	"provider_auth_failed": {abi.CodeUnavailable, false, "mem0's LLM or embedder refuses mem0's credentials: " +
		"correct them in mem0"},
	"provider_rate_limited": {abi.CodeRateLimited, true, "mem0's LLM or embedder limits its calls; mem0 does not say " +
		"for how long"},
	"provider_timeout":     {abi.CodeUnavailable, true, "mem0's LLM or embedder did not answer in time"},
	"provider_unavailable": {abi.CodeUnavailable, true, "mem0's LLM or embedder cannot be reached"},
	"provider_bad_request": {abi.CodeBackend, false, "mem0's LLM or embedder refuses the text, mostly because it is " +
		"too long: give the LLM a larger context (mem0's own prompt has some 9,000 tokens), record smaller turns, or " +
		"lower max_chars_per_message"},
	"datastore_unavailable":    {abi.CodeUnavailable, true, "mem0's database cannot be reached"},
	"vector_store_unavailable": {abi.CodeUnavailable, true, "mem0's vector store cannot be reached"},
	"provider_empty_answer":    {abi.CodeBackend, true, "mem0's LLM answered nothing"},
	"rerank_failed": {abi.CodeUnavailable, true, "the gateway's reranker fails; rerank_on_error: plain takes the " +
		"search's own order then, and says so"},
	"store_full": {abi.CodeUnavailable, false, "the gateway's embedded store has as many rows as it may: reset what " +
		"is not needed, or give the gateway PostgreSQL"},
	"unknown": {abi.CodeBackend, true, "mem0 does not say what failed; its log does, by the request id"},
}

// hints are hints for statuses with a known remedy.
var hints = map[int64]string{
	401: "is the key right, and does auth say how this server wants it?",
	402: lacksRight,
	403: lacksRight,
}

const lacksRight = "the key lacks a right; the self-hosted server wants its ADMIN_API_KEY for this"

// failure returns the typed error for an answer that is not a success. It contains the answer, up to the maximum
// length.
func failure(route string, head *abi.HTTPResponse, body []byte) *abi.Error {
	reported := readFailure(body)
	message := "mem0 answered route " + route + " with " + sdk.Itoa(head.Status)
	if reported.message != "" {
		message += ": " + reported.message
	}
	if id := head.Headers["x-request-id"]; id != "" {
		message += " (request " + id + ")"
	}
	code, hint, reason := sdk.CodeOfStatus(head.Status), hints[head.Status], ""
	retryable := head.Status >= 500 || head.Status == 429
	known, isKnown := codes[reported.code]
	switch {
	case isKnown && head.Status >= 500:
		code, retryable, hint, reason = known.code, known.retryable, known.hint, reported.code
	case reported.code == "rerank_not_configured":
		code, reason = abi.CodeUnsupported, reported.code
		hint = "put a reranker under mem0.reranker in the gateway's configuration"
	case code == abi.CodeInvalidArgument:
		reason = reported.code
	case head.Status == 402:
		code = abi.CodeDenied
	case head.Status == 502:
		code = abi.CodeBackend
	case head.Status == 504:
		code = abi.CodeUnavailable
	}
	e := abi.NewError(code, message).WithReason(reason).WithHint(hint)
	e.Route, e.Native = route, sdk.Native(head.Status, body)
	if e.Retryable = retryable; head.Status == 429 {
		e.RetryAfterMS = sdk.RetryAfter(head)
	}
	return e
}

// statusOf returns the backend's status in an error, 0 if there was no answer.
func statusOf(e *abi.Error) int64 {
	if e.Native == nil || e.Native.Status == nil {
		return 0
	}
	return *e.Native.Status
}
