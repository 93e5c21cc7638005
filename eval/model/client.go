// Package model is the part of an evaluation that uses language models: an agent that answers probes, a simulator that
// plays the user, a judge that decides whether an answer is right. The retrieval metrics need none of them.
//
// All use OpenAI-compatible endpoints. Every request and answer is stored verbatim in the run's blobs, by hash. Nothing
// they say becomes memory.
package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/internal/base/noswitch"
	"github.com/memhost/memhost/internal/base/pause"
	"github.com/memhost/memhost/sdk/chat"
)

// Put stores a text in the run's blobs and returns its SHA-256.
type Put func([]byte) (string, error)

// Message is one message of a chat.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Reply is a model's answer, and where request and answer are stored.
type Reply struct {
	Text          string // without the model's thoughts
	Params        string // the parameters of the request: chat.Request.Sent
	Model         string // as named in the answer
	Stub          bool   // the answer came from the project's stand-in, not from a model
	FinishReason  string // in the endpoint's terms
	Usage         *journal.Usage
	RequestSHA256 string
	AnswerSHA256  string
	Latency       time.Duration
}

// missing is the error for a reply without text; nil if it has one. Such an answer counts as missing, not as wrong.
func (r *Reply) missing() *abi.Error {
	if strings.TrimSpace(r.Text) != "" {
		return nil
	}
	return emptyAnswer(r.FinishReason)
}

// emptyAnswer is the error for an answer without text.
func emptyAnswer(finishReason string) *abi.Error {
	message := "the model's answer is empty"
	if finishReason != "" {
		message += " (finish_reason: " + finishReason + ")"
	}
	e := abi.NewError(abi.CodeBackend, message).WithReason("empty_answer")
	if finishReason == "length" {
		e = e.WithHint("raise max_tokens: what the model thinks counts towards it")
	}
	return e
}

// StubFingerprint marks the answers of the project's stand-in for a model, in the field system_fingerprint.
const StubFingerprint = "memhost-stub"

// maxAnswer bounds an endpoint's answer, in bytes.
const maxAnswer = 4 << 20

// Client sends requests to one endpoint. It is safe for concurrent use.
type Client struct {
	model lab.Model
	key   string
	// params are the parameters that the endpoint accepts; ready means that this is known.
	mu     sync.Mutex
	params chat.Params
	ready  bool
	http   *http.Client
	// wait sleeps between attempts; a test replaces it.
	wait func(context.Context, time.Duration) error
	// attempts is how often a request is tried if it fails temporarily.
	attempts int
}

// NewClient creates a client; getenv reads the key's variable.
//
// Errors: invalid_argument if the named variable is empty.
func NewClient(m lab.Model, getenv func(string) string) (*Client, error) {
	c := &Client{model: m, http: &http.Client{Transport: noswitch.Transport{Base: http.DefaultTransport}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}, wait: pause.For, attempts: attempts}
	if m.KeyEnv != "" {
		if c.key = getenv(m.KeyEnv); c.key == "" {
			return nil, abi.NewError(abi.CodeInvalidArgument,
				fmt.Sprintf("key_env: the variable %s is empty", m.KeyEnv))
		}
	}
	return c, nil
}

// Once turns off retries, for an endpoint that is itself being evaluated.
func (c *Client) Once() { c.attempts = 1 }

// attempts is how often a request is tried if it fails temporarily.
const attempts = 5

// Chat asks for one answer, and retries temporary failures. Until an endpoint has answered once, one call at a time
// finds out which parameters it accepts. A rejected request has no answer, so nothing is counted twice.
//
// Errors: rate_limited, unavailable and timeout after the last attempt; unauthenticated; backend for an invalid answer,
// with the raw text.
func (c *Client) Chat(ctx context.Context, messages []Message, seed uint64, put Put) (*Reply, error) {
	request, err := c.request(messages, seed)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	settling := !c.ready
	if !settling {
		c.mu.Unlock()
	} else {
		defer c.mu.Unlock()
	}
	for {
		reply, err := c.chat(ctx, request, c.params, put)
		if err == nil {
			if reply.Params = request.Sent(c.params); settling {
				c.ready = true
				if reply.Usage != nil {
					c.params = request.AfterAnswer(c.params, reply.Usage.CompletionTokens)
				}
			}
			return reply, nil
		}
		native := abi.AsError(err).Native
		if !settling || native == nil || native.Status == nil {
			return nil, err
		}
		next, ok := request.After(c.params, *native.Status, []byte(native.Body))
		if !ok {
			return nil, err
		}
		c.params = next
	}
}

// request is the request before any parameter is rejected.
func (c *Client) request(messages []Message, seed uint64) (*chat.Request, error) {
	temperature, err := json.Marshal(c.model.Temperature)
	if err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, "temperature: "+err.Error(), err)
	}
	number := int64(seed & (1<<31 - 1))
	r := &chat.Request{Model: c.model.Model, MaxTokens: c.model.MaxTokens, Temperature: temperature, Seed: &number}
	for _, m := range messages {
		r.Messages = append(r.Messages, chat.Message{Role: m.Role, Content: m.Content})
	}
	return r, nil
}

func (c *Client) chat(ctx context.Context, request *chat.Request, params chat.Params, put Put) (*Reply, error) {
	body := request.Encode(params)
	reply := new(Reply)
	var err error
	if reply.RequestSHA256, err = put(body); err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		began := time.Now()
		text, failed := c.send(ctx, body)
		if failed == nil {
			reply.Latency = time.Since(began)
			if reply.AnswerSHA256, err = put(text); err != nil {
				return nil, err
			}
			if err := reply.read(text); err != nil {
				return nil, err
			}
			return reply, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !failed.Retryable || attempt == c.attempts {
			return nil, failed
		}
		pause := time.Second << (attempt - 1)
		if failed.RetryAfterMS != nil {
			pause = time.Duration(*failed.RetryAfterMS) * time.Millisecond
		}
		if err := c.wait(ctx, min(pause, time.Minute)); err != nil {
			return nil, err
		}
	}
}

func (c *Client) send(ctx context.Context, body []byte) ([]byte, *abi.Error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(c.model.TimeoutMS)*time.Millisecond)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		strings.TrimSuffix(c.model.URL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, abi.WrapError(abi.CodeInvalidArgument, "url: "+err.Error(), err)
	}
	request.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	response, err := c.http.Do(request)
	if err != nil {
		code := abi.CodeUnavailable
		if errors.Is(err, context.DeadlineExceeded) {
			code = abi.CodeTimeout
		}
		e := abi.WrapError(code, "the model's endpoint did not answer: "+c.clean(err.Error()), err)
		e.Retryable = true
		return nil, e
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		e := abi.WrapError(abi.CodeUnavailable, "the model's answer broke off: "+c.clean(err.Error()), err)
		e.Retryable = true
		return nil, e
	}
	if response.StatusCode == http.StatusOK {
		return text, nil
	}
	return nil, c.refusal(response, text)
}

// refusal is the error for an answer with a status other than 200, including the endpoint's message.
func (c *Client) refusal(response *http.Response, text []byte) *abi.Error {
	e := chat.Refusal(int64(response.StatusCode), response.Header.Get("Retry-After"), text, time.Now())
	e.Message, e.Native.Body = c.clean(e.Message), c.clean(e.Native.Body)
	return e
}

// clean removes the key from a text.
func (c *Client) clean(text string) string {
	if c.key == "" {
		return text
	}
	return strings.ReplaceAll(text, c.key, "[secret removed]")
}

// read takes the first choice from an answer.
func (r *Reply) read(text []byte) error {
	answer, err := chat.ParseAnswer(text)
	if err != nil {
		return err
	}
	r.Text, r.Model, r.FinishReason = answer.Text, answer.Model, answer.FinishReason
	r.Stub = answer.Fingerprint == StubFingerprint
	if answer.Counted {
		r.Usage = &journal.Usage{PromptTokens: answer.PromptTokens, CompletionTokens: answer.CompletionTokens}
	}
	return nil
}
