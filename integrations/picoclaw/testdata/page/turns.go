// The program around the block of README.md, with packages that have what the block takes from PicoClaw: a turn, the
// end of PicoClaw, and another turn.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/memhost/memhost/integrations/picoclaw/page/agent"
	"github.com/memhost/memhost/integrations/picoclaw/page/config"
	"github.com/memhost/memhost/integrations/picoclaw/page/events"
)

func main() {
	for n, text := range []string{"I like oolong tea.", "Which tea do I like?"} {
		made, err := agent.Hooks["memhost"](context.Background(), config.BuiltinHookConfig{})
		if err != nil {
			panic(err)
		}
		h := made.(*hook)
		turn := fmt.Sprint("main-turn-", n)
		request := &agent.LLMHookRequest{Meta: agent.HookMeta{AgentID: "main", TurnID: turn, SessionKey: "s", Iteration: 1},
			Context:  &agent.TurnContext{Inbound: &agent.Inbound{Channel: "telegram", SenderID: "101"}},
			Messages: []agent.Message{{Role: "user", Content: text}}}
		got, _, err := h.BeforeLLM(context.Background(), request)
		if err != nil {
			panic(err)
		}
		fmt.Println(got.Messages[0].Content)
		ended := events.Event{ID: "evt-1", Kind: "agent.turn.end", Time: time.Now(),
			Scope:   events.Scope{AgentID: "main", SessionKey: "s", TurnID: turn, Channel: "telegram", ChatID: "101", SenderID: "101"},
			Payload: agent.TurnEndPayload{Status: "completed", UserMessage: text, FinalContent: "Noted."}}
		if err := h.OnRuntimeEvent(context.Background(), ended); err != nil {
			panic(err)
		}
		if err := h.Close(); err != nil {
			panic(err)
		}
	}
}
