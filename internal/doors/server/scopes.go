package server

import (
	"github.com/memhost/memhost/abi"
)

// ScopePolicy says which scopes a caller may name: any, which is the zero value, or Only the configured one.
type ScopePolicy struct {
	// Only is the one allowed scope: run_id and persona_id must match, agent_id too if it is set, and so must a
	// backend_namespace in a request.
	Only *abi.MemoryScope
}

// check rejects another scope than the configured one. field is the place of the scope in the request; empty means that
// the body is the scope.
func (p ScopePolicy) check(field string, scope abi.MemoryScope) error {
	if p.Only == nil {
		return nil
	}
	var wrong string
	switch {
	case scope.RunID != p.Only.RunID:
		wrong = "run_id"
	case scope.PersonaID != p.Only.PersonaID:
		wrong = "persona_id"
	case p.Only.AgentID != "" && scope.AgentID != p.Only.AgentID:
		wrong = "agent_id"
	case scope.BackendNamespace != "" && p.Only.BackendNamespace != "" &&
		scope.BackendNamespace != p.Only.BackendNamespace:
		wrong = "backend_namespace"
	default:
		return nil
	}
	if field != "" {
		wrong = field + "." + wrong
	}
	return refusedScope(wrong)
}

// checkEvent is check for an event, which has its scope in several fields.
func (p ScopePolicy) checkEvent(event *abi.MemoryEvent) error {
	if p.Only == nil {
		return nil
	}
	switch {
	case event.RunID != p.Only.RunID:
		return refusedScope("run_id")
	case event.UserID != p.Only.PersonaID:
		return refusedScope("user_id")
	case p.Only.AgentID != "" && event.AgentID != p.Only.AgentID:
		return refusedScope("agent_id")
	}
	return nil
}

func refusedScope(field string) error {
	return abi.NewError(abi.CodeDenied, field+": this door serves the configured scope only").WithReason("scope").
		WithHint("name the scope of the slot's configuration, or set memory.scopes to any")
}
