// Package picoclaw is a memory slot inside a PicoClaw program: the hook of "memhost hook picoclaw" without a process of
// its own. A build of PicoClaw imports it and registers it under a name that its configuration then mounts:
//
//	type memory = picoclaw.Hook[agent.LLMHookRequest, agent.LLMHookResponse, agent.HookDecision, events.Event]
//
//	var _ agent.LLMInterceptor = (*memory)(nil)
//	var _ agent.RuntimeEventObserver = (*memory)(nil)
//
//	agent.RegisterBuiltinHook("memhost", func(context.Context, config.BuiltinHookConfig) (any, error) {
//		slot, err := picoclaw.Dial("127.0.0.1:7077", "")
//		if err != nil {
//			return nil, err
//		}
//		return picoclaw.New[agent.LLMHookRequest, agent.LLMHookResponse, agent.HookDecision, events.Event](
//			picoclaw.Options{Slot: slot, Outbox: folder, Scope: scope})
//	})
//
// PicoClaw's module is in no registry, so that its types are parameters here. They are those of commit
// cf67dd3851e7926bf04ea9016c2e61248f9f614e (2026-06-13, after v0.2.9), pkg/agent/hooks.go; New looks at the one that
// it changes, and says what another version lacks.
package picoclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/outbox"
	inner "github.com/memhost/memhost/internal/doors/picoclaw"
)

// Commit is PicoClaw's that this package was made for and tried with.
const Commit = "cf67dd3851e7926bf04ea9016c2e61248f9f614e"

// Slot is the memory. A slot of package host is one, and so is the slot at an address that Dial gives.
type Slot interface {
	Retrieve(ctx context.Context, request *abi.RetrieveRequest) (*abi.RetrieveResult, error)
	RecordEvent(ctx context.Context, event *abi.MemoryEvent) (*abi.WriteReceipt, error)
	Mode(ctx context.Context) (*abi.ModeReceipt, error)
}

// Dial gives the slot that "memhost run" serves at an address, such as "127.0.0.1:7077". token is empty if the slot
// requires none. Nothing is sent yet, and the slot may be down.
//
// Errors: invalid_argument for an address that is not one.
func Dial(address, token string) (Slot, error) { return client.New(address, token) }

// Options configure a Hook.
type Options struct {
	// Slot is the memory. Required.
	Slot Slot
	// Outbox is the folder in which turns wait for the slot. Required.
	Outbox string
	// Scope is whose memory it is. In its ids, {channel}, {sender_id}, {agent} and {session} are replaced by what
	// PicoClaw says of the speaker.
	Scope abi.MemoryScope
	// Shared lets several people use one memory. Without it a memory is for the first person who speaks.
	Shared bool
	// MaxTokens and MaxItems bound a context. 0 means 8,000 tokens, and no limit of items.
	MaxTokens, MaxItems int64
	// Timeout is how long a turn waits for its context, less than PicoClaw's interceptor_timeout_ms. 0 means 4 s.
	Timeout time.Duration
	// Linger is how long Close continues to deliver. 0 means 1.5 s.
	Linger time.Duration
	// Log takes lines for people: what goes wrong with the memory never stops the agent. Nil means standard error.
	Log io.Writer
}

// Hook implements PicoClaw's LLMInterceptor, RuntimeEventObserver and io.Closer for PicoClaw's LLMHookRequest,
// LLMHookResponse, HookDecision and Event. Its methods may be called at the same time.
type Hook[Request, Response, Decision, Event any] struct {
	hook  *inner.Hook
	end   chan struct{}
	done  chan struct{}
	close sync.Once
}

// New makes a hook and begins to deliver what waits in the outbox.
//
// Errors: an option that is missing, an outbox that cannot be used, and a Request of another form than the commit's.
func New[Request, Response, Decision, Event any](o Options) (*Hook[Request, Response, Decision, Event], error) {
	if o.Slot == nil || o.Outbox == "" {
		return nil, errors.New("memhost: options: want a slot and an outbox")
	}
	if err := errors.Join(o.Scope.Validate(), inner.CheckPlaces(o.Scope)); err != nil {
		return nil, fmt.Errorf("memhost: options: %w", err)
	}
	if err := fits(reflect.TypeFor[Request]()); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = os.Stderr
	}
	log := hclog.New(&hclog.LoggerOptions{Name: "memhost", Level: hclog.Warn, Output: o.Log})
	box, err := outbox.Open(o.Outbox, outbox.Options{Logger: log})
	if err != nil {
		return nil, err
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = 8000
	}
	budget := abi.ContextBudget{MaxTokens: &o.MaxTokens}
	if o.MaxItems > 0 {
		budget.MaxItems = &o.MaxItems
	}
	h := &Hook[Request, Response, Decision, Event]{end: make(chan struct{}), done: make(chan struct{}),
		hook: inner.New(inner.Options{Slot: o.Slot, Box: box, Scope: o.Scope, Budget: budget, Shared: o.Shared,
			Timeout: o.Timeout, Linger: o.Linger, Logger: log})}
	go func() {
		defer close(h.done)
		h.hook.Deliver(context.Background(), h.end)
	}()
	return h, nil
}

// fits looks whether a request has Messages with a Content, which is all that a hook changes.
func fits(request reflect.Type) error {
	if request.Kind() == reflect.Struct {
		if list, ok := request.FieldByName("Messages"); ok && list.Type.Kind() == reflect.Slice &&
			list.Type.Elem().Kind() == reflect.Struct {
			if content, ok := list.Type.Elem().FieldByName("Content"); ok && content.Type.Kind() == reflect.String {
				return nil
			}
		}
	}
	return fmt.Errorf("memhost: %s has no Messages with a text as Content, as LLMHookRequest of PicoClaw has at "+
		"commit %s: this PicoClaw is of another version", request, Commit)
}

// BeforeLLM puts the context at the end of the user's message. Without one, and whatever goes wrong, the request stays
// as it is.
func (h *Hook[Request, Response, Decision, Event]) BeforeLLM(ctx context.Context, request *Request) (*Request, Decision,
	error) {
	var goOn Decision
	params, err := json.Marshal(request)
	if err != nil {
		return request, goOn, nil // what cannot be written cannot be sent to a model, either
	}
	if text, at := h.hook.Context(ctx, params); text != "" {
		content := reflect.ValueOf(request).Elem().FieldByName("Messages").Index(at).FieldByName("Content")
		content.SetString(content.String() + text)
	}
	return request, goOn, nil
}

// AfterLLM leaves the response as it is.
func (h *Hook[Request, Response, Decision, Event]) AfterLLM(_ context.Context, response *Response) (*Response, Decision,
	error) {
	var goOn Decision
	return response, goOn, nil
}

// OnRuntimeEvent records a turn that has ended. It is on disk when OnRuntimeEvent returns.
func (h *Hook[Request, Response, Decision, Event]) OnRuntimeEvent(_ context.Context, event Event) error {
	params, err := json.Marshal(event)
	if err != nil {
		return fmt.Errorf("memhost: an event was not understood, and not recorded if it ended a turn: %w", err)
	}
	h.hook.Event(params)
	return nil
}

// Close delivers what it still can, for as long as Options.Linger, and leaves the rest in the outbox.
func (h *Hook[Request, Response, Decision, Event]) Close() error {
	h.close.Do(func() { close(h.end) })
	<-h.done
	return nil
}
