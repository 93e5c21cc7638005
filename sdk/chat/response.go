package chat

import (
	"strconv"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// Answer is the first choice of an endpoint's answer.
type Answer struct {
	// Text is the message's content without the model's thoughts.
	Text  string
	Calls []ToolCall
	// Model, Fingerprint and FinishReason are as the endpoint sent them.
	Model, Fingerprint, FinishReason string
	// PromptTokens and CompletionTokens are the endpoint's counts. Counted is false if it sent none.
	PromptTokens, CompletionTokens int64
	Counted                        bool
}

// ParseAnswer reads the body of a success: a chat completion, or its chunks ("data: {...}"), which some endpoints send
// although no stream was requested.
//
// Errors: backend for anything else, with the body; if the endpoint sent an error with a success status, that error.
func ParseAnswer(body []byte) (*Answer, error) {
	a, content := new(Answer), new(answerParts)
	if events, ok := strings.CutPrefix(strings.TrimLeft(string(body), " \r\n\t"), "data:"); ok {
		for _, event := range strings.Split("\n"+events, "\ndata:") {
			if event = strings.TrimSpace(event); event != "" && event != "[DONE]" {
				if err := a.read([]byte(event), content); err != nil {
					return nil, unreadable(err, body)
				}
			}
		}
	} else if err := a.read(body, content); err != nil {
		return nil, unreadable(err, body)
	}
	if content.choices == 0 || content.failed {
		return nil, unreadable(abi.NewError(abi.CodeBackend, "no choice: "+ErrorText(body)), body)
	}
	a.Text, _ = StripThoughts(content.text)
	return a, nil
}

func unreadable(err error, body []byte) *abi.Error {
	e := abi.NewError(abi.CodeBackend, "the endpoint's answer is not a chat completion: "+abi.AsError(err).Message)
	e.Native = native(nil, body)
	return e
}

// answerParts collects an answer while it is read.
type answerParts struct {
	text    string
	choices int
	failed  bool
}

// read adds a completion, or one chunk of it.
func (a *Answer) read(body []byte, to *answerParts) error {
	return wirejson.DecodeBytes(body).Obj(func(d *wirejson.Decoder, key string) error {
		value, err := d.Raw()
		if err != nil {
			return err
		}
		switch key {
		case "model":
			a.Model = str(value)
		case "system_fingerprint":
			a.Fingerprint = str(value)
		case "error":
			to.failed = to.failed || value.Type() != wirejson.Null
		case "usage":
			a.PromptTokens, a.Counted = number(member(value, "prompt_tokens"), a.PromptTokens, a.Counted)
			a.CompletionTokens, a.Counted = number(member(value, "completion_tokens"), a.CompletionTokens, a.Counted)
		case "choices":
			if choices := elements(value); len(choices) > 0 {
				to.choices++
				a.choice(choices[0], to)
			}
		}
		return nil
	})
}

// number returns an integer, or before if the value is not one.
//
//go:noinline
func number(raw wirejson.Raw, before int64, counted bool) (int64, bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	return before, counted
}

func (a *Answer) choice(raw wirejson.Raw, to *answerParts) {
	if reason := str(member(raw, "finish_reason")); reason != "" {
		a.FinishReason = reason
	}
	message := member(raw, "message")
	if message == nil {
		message = member(raw, "delta")
	}
	to.text += rawText(member(message, "content"))
	calls := member(message, "tool_calls")
	if calls.Type() != wirejson.Array {
		return
	}
	for i, call := range elements(calls) {
		function := member(call, "function")
		x := ToolCall{ID: str(member(call, "id")), Name: str(member(function, "name")),
			Arguments: abi.Raw(member(function, "arguments"))}
		if at, _ := number(member(call, "index"), int64(i), false); x.Name == "" && at >= 0 && at < int64(len(a.Calls)) {
			a.Calls[at].Arguments = concatStrings(a.Calls[at].Arguments, x.Arguments) // a later chunk of it
			continue
		}
		a.Calls = append(a.Calls, x)
	}
}

// concatStrings concatenates two JSON strings.
func concatStrings(a, b abi.Raw) abi.Raw {
	var e wirejson.Encoder
	e.Str(str(wirejson.Raw(a)) + str(wirejson.Raw(b)))
	return abi.Raw(e.Bytes())
}

// Refusal returns the error for a status that is not a success, with the endpoint's own message. retryAfter is the
// header of that name, or "".
//
// Errors by status: 401 and 403 unauthenticated; 404 not_found; 429 rate_limited; 408, 425 and from 500 on unavailable;
// others backend.
func Refusal(status int64, retryAfter string, body []byte, now time.Time) *abi.Error {
	code := abi.CodeBackend
	switch {
	case status == 401 || status == 403:
		code = abi.CodeUnauthenticated
	case status == 404:
		code = abi.CodeNotFound
	case status == 429:
		code = abi.CodeRateLimited
	case Retryable(status):
		code = abi.CodeUnavailable
	}
	message := "the endpoint answered " + strconv.FormatInt(status, 10)
	if text := ErrorText(body); text != "" {
		message += ": " + text
	}
	e := abi.NewError(code, message)
	e.Retryable = Retryable(status)
	e.Native = native(&status, body)
	if ms, ok := RetryAfter(retryAfter, now); ok {
		e.RetryAfterMS = &ms
	}
	return e
}

// IsFinal reports whether an endpoint rejected the request itself, so that the same request would be rejected again.
func IsFinal(err error) bool {
	if err == nil {
		return false
	}
	n := abi.AsError(err).Native
	return n != nil && n.Status != nil && (*n.Status == 400 || *n.Status == 413 || *n.Status == 422)
}

func native(status *int64, body []byte) *abi.NativeError {
	text := string(body)
	if len(text) > abi.NativeBodyLimit {
		text = strings.ToValidUTF8(text[:abi.NativeBodyLimit], "")
	}
	return &abi.NativeError{Status: status, Body: text}
}
