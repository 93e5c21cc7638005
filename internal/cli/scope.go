package cli

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/memhost/memhost/abi"
)

// scopeFlags name a scope. Missing ids come from the configuration.
type scopeFlags struct{ run, user, agent string }

func (s *scopeFlags) add(f *pflag.FlagSet) {
	f.Var((*idFlag)(&s.run), "run", "run id (default: memory.scope.run_id of the configuration)")
	f.Var((*idFlag)(&s.user), "user", "whose memory: user_id in events, persona_id in scopes; --persona means the "+
		"same (default: memory.scope.persona_id)")
	f.Var((*idFlag)(&s.agent), "agent", "agent id, where memory.agent_scoped is on")
	personaIsUser(f)
}

// personaIsUser takes --persona for --user.
func personaIsUser(f *pflag.FlagSet) {
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "persona" {
			name = "user"
		}
		return pflag.NormalizedName(name)
	})
}

// idFlag is an id that is given, so it is not empty: --run "$RUN" with nothing in RUN must not mean the configured
// scope, which a reset would erase.
type idFlag string

// String implements pflag.Value.
func (i *idFlag) String() string { return string(*i) }

// Type implements pflag.Value.
func (i *idFlag) Type() string { return "string" }

// Set implements pflag.Value.
func (i *idFlag) Set(id string) error {
	if id == "" {
		return errors.New("it is empty; leave the flag out where the configuration's is meant")
	}
	*i = idFlag(id)
	return nil
}

// complete fills in missing ids. When nothing is missing and the slot is named, the configuration is not read: it may
// belong to another slot.
func (s *scopeFlags) complete(a *app) error {
	if s.run != "" && s.user != "" && a.serverNamed() != "" {
		return nil
	}
	c, err := a.settings()
	if err != nil {
		return err
	}
	scope := c.Memory.Scope
	for _, f := range []struct {
		to    *string
		value string
	}{{&s.run, scope.RunID}, {&s.user, scope.PersonaID}, {&s.agent, scope.AgentID}} {
		if *f.to == "" {
			*f.to = f.value
		}
	}
	return nil
}

func (s *scopeFlags) scope() abi.MemoryScope {
	return abi.MemoryScope{RunID: s.run, PersonaID: s.user, AgentID: s.agent}
}
