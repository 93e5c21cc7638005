package agent

import (
	"context"

	"github.com/memhost/memhost/integrations/picoclaw/page/config"
	"github.com/memhost/memhost/integrations/picoclaw/page/events"
)

type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type HookMeta struct {
	AgentID, TurnID, ParentTurnID, SessionKey string
	Iteration                                 int
}

type Inbound struct {
	Channel  string `json:"channel"`
	SenderID string `json:"sender_id"`
}

type TurnContext struct {
	Inbound *Inbound `json:"inbound"`
}

type LLMHookRequest struct {
	Meta     HookMeta     `json:"meta"`
	Context  *TurnContext `json:"context"`
	Messages []Message    `json:"messages"`
}

type LLMHookResponse struct{}

type HookDecision struct {
	Action string `json:"action"`
}

type TurnEndPayload struct {
	Status, UserMessage, FinalContent string
	Iterations                        int
}

type LLMInterceptor interface {
	BeforeLLM(ctx context.Context, request *LLMHookRequest) (*LLMHookRequest, HookDecision, error)
	AfterLLM(ctx context.Context, response *LLMHookResponse) (*LLMHookResponse, HookDecision, error)
}

type RuntimeEventObserver interface {
	OnRuntimeEvent(ctx context.Context, event events.Event) error
}

var Hooks = map[string]func(context.Context, config.BuiltinHookConfig) (any, error){}

func RegisterBuiltinHook(name string, factory func(context.Context, config.BuiltinHookConfig) (any, error)) error {
	Hooks[name] = factory
	return nil
}
