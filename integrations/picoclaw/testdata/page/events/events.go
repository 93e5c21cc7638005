package events

import "time"

type Scope struct {
	AgentID    string `json:"agent_id"`
	SessionKey string `json:"session_key"`
	TurnID     string `json:"turn_id"`
	Channel    string `json:"channel"`
	ChatID     string `json:"chat_id"`
	SenderID   string `json:"sender_id"`
}

type Event struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind"`
	Time    time.Time `json:"time"`
	Scope   Scope     `json:"scope"`
	Payload any       `json:"payload"`
}
