package cli

import (
	"context"
	"errors"
	"os/user"

	"github.com/spf13/pflag"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
)

// ScopeFlags name a scope. Missing ids come from the configuration.
type ScopeFlags struct{ Run, User, Agent string }

// Add gives a command the flags.
func (s *ScopeFlags) Add(f *pflag.FlagSet) {
	f.Var((*IDFlag)(&s.Run), "run", "run id (default: memory.scope.run_id of the configuration)")
	f.Var((*IDFlag)(&s.User), "user", "whose memory: user_id in events, persona_id in scopes; --persona means the "+
		"same (default: memory.scope.persona_id)")
	f.Var((*IDFlag)(&s.Agent), "agent", "agent id, where memory.agent_scoped is on")
	PersonaIsUser(f)
}

// PersonaIsUser takes --persona for --user.
func PersonaIsUser(f *pflag.FlagSet) {
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "persona" {
			name = "user"
		}
		return pflag.NormalizedName(name)
	})
}

// IDFlag is an id that is given, so it is not empty: --run "$RUN" with nothing in RUN must not mean the configured
// scope, which a reset would erase.
type IDFlag string

// String implements pflag.Value.
func (i *IDFlag) String() string { return string(*i) }

// Type implements pflag.Value.
func (i *IDFlag) Type() string { return "string" }

// Set implements pflag.Value.
func (i *IDFlag) Set(id string) error {
	if id == "" {
		return errors.New("it is empty; leave the flag out where the configuration's is meant")
	}
	*i = IDFlag(id)
	return nil
}

// Complete fills in missing ids. When nothing is missing and the slot is named, the configuration is not read: it may
// belong to another slot.
func (s *ScopeFlags) Complete(a *App) error {
	if s.Run != "" && s.User != "" && a.ServerNamed() != "" {
		return nil
	}
	c, err := a.Settings()
	if err != nil {
		return err
	}
	scope := c.Memory.Scope
	for _, f := range []struct {
		to    *string
		value string
	}{{&s.Run, scope.RunID}, {&s.User, scope.PersonaID}, {&s.Agent, scope.AgentID}} {
		if *f.to == "" {
			*f.to = f.value
		}
	}
	return nil
}

// Scope is the scope that the flags name, after Complete.
func (s *ScopeFlags) Scope() abi.MemoryScope {
	return abi.MemoryScope{RunID: s.Run, PersonaID: s.User, AgentID: s.Agent}
}

// ScopeLister lists the scopes of a slot: the slot itself, or a client of it.
type ScopeLister interface {
	ListScopes(ctx context.Context, q report.ScopeQuery) (*report.ScopePage, error)
}

// EachScope visits all scopes of a slot.
func EachScope(ctx context.Context, of ScopeLister, visit func(*report.ListedScope) error) error {
	q := report.ScopeQuery{Limit: report.MaxPage}
	for {
		page, err := of.ListScopes(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Scopes {
			if err := visit(&page.Scopes[i]); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		q.After = page.Next
	}
}

// Person is the name of the user on this computer.
func Person() string {
	u, err := user.Current()
	if err != nil || u.Username == "" {
		return "user"
	}
	return u.Username
}
