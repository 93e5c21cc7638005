package cli

import (
	"context"
	"errors"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/agenthook"
	"github.com/memhost/memhost/internal/state"
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

// PersonaIsUser accepts --persona as another name of --user.
func PersonaIsUser(f *pflag.FlagSet) {
	f.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "persona" {
			name = "user"
		}
		return pflag.NormalizedName(name)
	})
}

// IDFlag is an id that must not be empty if it is given: --run "$RUN" with an empty RUN must not mean the configured
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

// Complete fills in missing ids and replaces placeholders: {project} is the repository of the current folder, {person}
// the user of this computer. Ids that the configuration does not set come from the slot: the one that serves the data
// folder, or the one that --server names.
//
// Errors: invalid_argument for an unknown placeholder.
func (s *ScopeFlags) Complete(a *App) error {
	if err := s.CompleteAsked(a); err != nil {
		return err
	}
	return s.Expand()
}

// Expand replaces placeholders, as Complete does, and leaves missing ids empty.
//
// Errors: invalid_argument for an unknown placeholder.
func (s *ScopeFlags) Expand() error {
	if err := agenthook.CheckPlaces(s.Scope()); err != nil {
		return err
	}
	scope := agenthook.Expand(s.Scope(), agenthook.Project("."), Person())
	s.Run, s.User, s.Agent = scope.RunID, scope.PersonaID, scope.AgentID
	return nil
}

// CompleteRaw is Complete without placeholders and without asking the slot that --server names: a hook's scope must not
// depend on whether the slot is up.
func (s *ScopeFlags) CompleteRaw(a *App) error {
	return s.complete(a, func(string) *abi.MemoryScope { return nil })
}

// CompleteAsked is Complete without placeholders.
func (s *ScopeFlags) CompleteAsked(a *App) error { return s.complete(a, a.scopeOfNamed) }

// complete fills in missing ids. named returns the scope of the slot that --server names, nil if it is unknown. If
// nothing is missing and the slot is named, the configuration is not read, because it may belong to another slot.
func (s *ScopeFlags) complete(a *App, named func(server string) *abi.MemoryScope) error {
	if s.Run != "" && s.User != "" && a.ServerNamed() != "" {
		return nil
	}
	c, err := a.Settings()
	if err != nil {
		return err
	}
	slot := state.SlotInfo{}
	if server := a.ServerNamed(); server == "" {
		slot, _ = state.ReadSlot(c.Data.Dir) // empty if no slot serves
	} else if slotScope := named(server); slotScope != nil {
		slot.RunID, slot.PersonaID, slot.AgentID = slotScope.RunID, slotScope.PersonaID, slotScope.AgentID
	}
	scope := c.Memory.Scope
	for _, f := range []struct {
		to                  *string
		key, value, serving string
	}{{&s.Run, "run_id", scope.RunID, slot.RunID}, {&s.User, "persona_id", scope.PersonaID, slot.PersonaID},
		{&s.Agent, "agent_id", scope.AgentID, slot.AgentID}} {
		own := c.Source("memory.scope." + f.key).Kind
		switch {
		case *f.to != "":
		case f.serving != "" && (own == config.KindDefault || own == ""):
			*f.to = f.serving
		default:
			*f.to = f.value
		}
	}
	return nil
}

// scopeOfNamed asks a slot for the scope of its configuration. It returns nil if the slot does not answer or does not
// report it.
func (a *App) scopeOfNamed(server string) *abi.MemoryScope {
	d, err := a.Dial(server)
	if err != nil {
		return nil
	}
	defer d.Close()
	lists, ok := d.Contract.(ScopeLister)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), AnswerWithin)
	defer cancel()
	page, err := lists.ListScopes(ctx, report.ScopeQuery{Limit: 1})
	if err != nil {
		return nil // the command reports it
	}
	return page.Default
}

// Scope returns the scope that the flags name, after Complete.
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

// ScopeText names a scope for people: run "demo", user "mara".
func ScopeText(s abi.MemoryScope) string {
	text := "user " + Quote(s.PersonaID)
	if s.RunID != "" {
		text = "run " + Quote(s.RunID) + ", " + text
	}
	if s.AgentID != "" {
		text += ", agent " + Quote(s.AgentID)
	}
	return text
}

// mostScopes is how many scopes are searched for one that was probably meant.
const mostScopes = 10_000

// TellNearScopes prints to standard error which scopes the slot has if it has none of this name: usually an id is
// mistyped. Only people at the command line see this, never callers of HTTP or MCP.
func (a *App) TellNearScopes(ctx context.Context, d *Door, scope abi.MemoryScope) {
	near := d.nearScopes(ctx, a, scope)
	if len(near) == 0 || a.Out.JSON {
		return
	}
	var texts []string
	for _, s := range near {
		texts = append(texts, ScopeText(s))
	}
	a.Out.Note("  nothing was recorded for %s; there is %s", ScopeText(scope), strings.Join(texts, "; "))
}

// nearScopes lists up to three scopes of the slot that may have been meant, the nearest first. It returns nil for a
// scope that the slot knows, or if scopes must not be compared (memory.scopes: configured).
func (d *Door) nearScopes(ctx context.Context, a *App, scope abi.MemoryScope) []abi.MemoryScope {
	lists, ok := d.Contract.(ScopeLister)
	if !ok {
		return nil
	}
	if c, err := a.Config(); err == nil && c.Memory.Scopes == "configured" {
		return nil
	}
	var known []abi.MemoryScope
	errKnown := errors.New("known")
	err := EachScope(ctx, lists, func(s *report.ListedScope) error {
		if s.Scope.RunID == scope.RunID && s.Scope.PersonaID == scope.PersonaID && s.Scope.AgentID == scope.AgentID ||
			len(known) == mostScopes {
			return errKnown
		}
		known = append(known, s.Scope)
		return nil
	})
	if err != nil {
		return nil
	}
	likeness := func(s abi.MemoryScope) (n int) {
		for _, ids := range [][2]string{{s.RunID, scope.RunID}, {s.PersonaID, scope.PersonaID}} {
			switch {
			case ids[0] == ids[1]:
				n += 2
			case abi.Nearest(ids[1], ids[:1]) != "":
				n++
			}
		}
		return n
	}
	slices.SortStableFunc(known, func(a, b abi.MemoryScope) int { return likeness(b) - likeness(a) })
	return known[:min(3, len(known))]
}
