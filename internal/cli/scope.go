package cli

import (
	"github.com/spf13/pflag"

	"github.com/memhost/memhost/abi"
)

// scopeFlags name a scope. What is not given comes from the configuration.
type scopeFlags struct{ run, user, agent string }

func (s *scopeFlags) add(f *pflag.FlagSet) {
	f.StringVar(&s.run, "run", "", "run id (default: memory.scope.run_id of the configuration)")
	f.StringVar(&s.user, "user", "", "user id, which is the persona's (default: memory.scope.persona_id)")
	f.StringVar(&s.agent, "agent", "", "agent id, where memory.agent_scoped is on")
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "persona" {
			name = "user"
		}
		return pflag.NormalizedName(name)
	})
}

// complete fills in what was not given. Where nothing is missing and the slot is named, the configuration is not asked: it may be of another slot.
func (s *scopeFlags) complete(a *app) error {
	if s.run != "" && s.user != "" && a.serverNamed() != "" {
		return nil
	}
	c, err := a.config()
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
