package picoclaw_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/integrations/picoclaw"
	"github.com/memhost/memhost/internal/test/logs"
)

// PicoClaw's types, as far as they matter, from pkg/agent/hooks.go, pkg/agent/events.go, pkg/providers and pkg/events
// at picoclaw.Commit.
type (
	message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	hookMeta struct {
		AgentID, TurnID, ParentTurnID, SessionKey string
		Iteration                                 int
		turnContext                               *int //nolint:unused // as in PicoClaw
	}
	inboundContext struct {
		Channel  string `json:"channel,omitempty"`
		SenderID string `json:"sender_id,omitempty"`
	}
	turnContext struct {
		Inbound *inboundContext `json:"inbound,omitempty"`
	}
	llmHookRequest struct {
		Meta     hookMeta       `json:"meta"`
		Context  *turnContext   `json:"context,omitempty"`
		Model    string         `json:"model"`
		Messages []message      `json:"messages,omitempty"`
		Options  map[string]any `json:"options,omitempty"`
	}
	llmHookResponse struct{}
	hookDecision    struct {
		Action string `json:"action"`
	}
	scope struct {
		AgentID    string `json:"agent_id,omitempty"`
		SessionKey string `json:"session_key,omitempty"`
		TurnID     string `json:"turn_id,omitempty"`
		Channel    string `json:"channel,omitempty"`
		ChatID     string `json:"chat_id,omitempty"`
		SenderID   string `json:"sender_id,omitempty"`
	}
	event struct {
		ID      string    `json:"id"`
		Kind    string    `json:"kind"`
		Time    time.Time `json:"time"`
		Scope   scope     `json:"scope"`
		Payload any       `json:"payload,omitempty"`
	}
	turnEndPayload struct {
		Status, UserMessage, FinalContent string
		Iterations                        int
	}
	memory = picoclaw.Hook[llmHookRequest, llmHookResponse, hookDecision, event]
)

// The interfaces that PicoClaw looks for in a hook.
var (
	_ interface {
		BeforeLLM(ctx context.Context, request *llmHookRequest) (*llmHookRequest, hookDecision, error)
		AfterLLM(ctx context.Context, response *llmHookResponse) (*llmHookResponse, hookDecision, error)
	} = (*memory)(nil)
	_ interface {
		OnRuntimeEvent(ctx context.Context, event event) error
	} = (*memory)(nil)
)

// slot remembers what users said, and can be down.
type slot struct {
	mu   sync.Mutex
	down bool
	told map[string]*abi.MemoryEvent
}

func (s *slot) Retrieve(_ context.Context, q *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, abi.NewError(abi.CodeUnavailable, "down")
	}
	var text string
	for _, e := range s.told {
		if e.UserID == q.Scope.PersonaID {
			text += "- " + *e.Messages[0].Content + "\n"
		}
	}
	if text != "" {
		text = "<memory-context>\n" + text + "</memory-context>"
	}
	return &abi.RetrieveResult{FormattedContext: text}, nil
}

func (s *slot) RecordEvent(_ context.Context, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, abi.NewError(abi.CodeUnavailable, "down")
	}
	s.told[e.EventID] = e
	return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted}, nil
}

func (s *slot) Mode(context.Context) (*abi.ModeReceipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, abi.NewError(abi.CodeUnavailable, "down")
	}
	return new(abi.ModeReceipt), nil
}

func (s *slot) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func open(t *testing.T, s *slot, dir string) (*memory, *logs.Buffer) {
	t.Helper()
	log := new(logs.Buffer)
	h, err := picoclaw.New[llmHookRequest, llmHookResponse, hookDecision, event](picoclaw.Options{Slot: s, Outbox: dir, Log: log,
		Scope: abi.MemoryScope{RunID: "home", PersonaID: "{channel}-{sender_id}"}, Linger: time.Minute})
	require.NoError(t, err)
	return h, log
}

// turn is one of PicoClaw's: it gives what the model was shown as the last message.
func turn(t *testing.T, h *memory, sender string, n int, said string) string {
	t.Helper()
	where := scope{AgentID: "main", SessionKey: "sk_v1_" + sender, TurnID: fmt.Sprint("main-turn-", n), Channel: "telegram",
		ChatID: sender, SenderID: sender}
	request := &llmHookRequest{Meta: hookMeta{AgentID: "main", TurnID: where.TurnID, SessionKey: where.SessionKey, Iteration: 1},
		Context: &turnContext{&inboundContext{"telegram", sender}},
		Messages: []message{{"system", "be brief"}, {"user", said},
			{"assistant", "let me see"}}}
	got, decision, err := h.BeforeLLM(t.Context(), request)
	require.NoError(t, err)
	require.Zero(t, decision)
	require.Equal(t, []message{{"system", "be brief"}, {"assistant", "let me see"}}, []message{got.Messages[0], got.Messages[2]})
	require.NoError(t, h.OnRuntimeEvent(t.Context(), event{ID: "evt-1", Kind: "agent.turn.end", Scope: where,
		Time:    time.Date(2026, 3, 2, 9, 0, n, 0, time.UTC),
		Payload: turnEndPayload{Status: "completed", UserMessage: said, FinalContent: "ok"}}))
	return got.Messages[1].Content
}

func TestAConversation(t *testing.T) {
	s := &slot{told: map[string]*abi.MemoryEvent{}}
	h, _ := open(t, s, t.TempDir())
	require.Equal(t, "My PIN is 1234.", turn(t, h, "ann", 1, "My PIN is 1234."), "nothing is remembered yet")
	require.NoError(t, h.Close())
	h, _ = open(t, s, t.TempDir())
	require.Equal(t, "What is it?\n\n<memory-context>\n- My PIN is 1234.\n</memory-context>", turn(t, h, "ann", 2, "What is it?"))
	require.Equal(t, "And mine?", turn(t, h, "bob", 3, "And mine?"), "nobody else has it")
	require.NoError(t, h.Close())
	require.Len(t, s.told, 3)
}

func TestASlotThatIsDownCostsContextAndNothingElse(t *testing.T) {
	s, dir := &slot{told: map[string]*abi.MemoryEvent{}, down: true}, t.TempDir()
	h, log := open(t, s, dir)
	for n := range 24 {
		require.Equal(t, "hello", turn(t, h, "ann", n, "hello"))
	}
	require.NoError(t, h.Close())
	require.Contains(t, log.String(), "context is absent in this turn")
	s.set(false)
	h, _ = open(t, s, dir)
	require.NoError(t, h.Close())
	require.Len(t, s.told, 24, "none is lost, none is twice")
}

func TestAnotherPicoClawIsNamed(t *testing.T) {
	type otherRequest struct{ Prompt string }
	_, err := picoclaw.New[otherRequest, llmHookResponse, hookDecision, event](picoclaw.Options{Slot: new(slot), Outbox: t.TempDir(),
		Scope: abi.MemoryScope{RunID: "r", PersonaID: "u"}})
	require.ErrorContains(t, err, "otherRequest has no Messages with a text as Content, as LLMHookRequest of PicoClaw has at commit cf67dd38")
	_, err = picoclaw.New[llmHookRequest, llmHookResponse, hookDecision, event](picoclaw.Options{})
	require.ErrorContains(t, err, "want a slot and an outbox")
	_, err = picoclaw.New[llmHookRequest, llmHookResponse, hookDecision, event](picoclaw.Options{
		Slot: new(slot), Outbox: t.TempDir(), Scope: abi.MemoryScope{RunID: "r", PersonaID: "{sender}"}})
	require.ErrorContains(t, err, "nothing fills {sender}, want one of {channel}, {sender_id}")
}
