package memory

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/doors/agenthook"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/outbox"
)

const statusHelp = `Says in a few lines how the slot is: where it serves, which provider, the mode, the scope that commands mean, the archive, turns that wait in the
outbox, and agents whose settings have memhost's hooks. Nothing that was said is shown, and nothing is opened or changed.

The exit code is 0 if the slot serves, and 3 if it does not.`

// slotStatus is what the command prints. Fields about a slot are empty if none serves.
type slotStatus struct {
	Serves   bool   `json:"serves"`
	Address  string `json:"address,omitempty"`
	Folder   string `json:"folder,omitempty"`
	Provider string `json:"provider"`
	Kind     string `json:"condition_kind,omitempty"`
	ReadOnly bool   `json:"read_only"`
	Since    string `json:"mode_since,omitempty"`
	// Scope is the scope of commands that name none; nil if the slot that --server names does not answer.
	Scope       *abi.MemoryScope `json:"scope,omitempty"`
	Archive     bool             `json:"archive"`
	Archived    int64            `json:"archived_events,omitempty"`
	Waiting     int              `json:"outbox_waiting"`
	Aside       int              `json:"outbox_set_aside"`
	Hooks       []string         `json:"hooks"`
	KeepsNone   bool             `json:"keeps_nothing"`
	Unreachable *abi.Error       `json:"error,omitempty"`
}

func (a *commands) statusCommand() *cobra.Command {
	return &cobra.Command{Use: "status", Short: "See what serves, and whether anything waits", Long: statusHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context()) }}
}

func (a *commands) status(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*cli.AnswerWithin)
	defer cancel()
	c, err := a.Config()
	if err != nil {
		return err
	}
	s := slotStatus{Hooks: a.hooked()}
	var scope cli.ScopeFlags
	if err := scope.CompleteAsked(a.App); err != nil {
		return err
	}
	means := scope.Scope()
	var d *cli.Door
	if server := a.ServerNamed(); server != "" {
		d, err = a.DialNamed(ctx, server)
	} else {
		s.Folder = c.Data.Dir
		s.Waiting, s.Aside = outbox.Count(filepath.Join(c.Data.Dir, "outbox"))
		d, err = a.Running(ctx, c)
	}
	if err == nil && d != nil {
		defer d.Close()
		err = s.ask(ctx, d)
	}
	if err != nil {
		s.Unreachable = abi.AsError(err)
	}
	if s.Serves || s.Folder != "" {
		s.Scope = &means
	}
	if s.Provider == "" {
		if last := a.Serving(ctx); last != nil && a.ServerNamed() == "" {
			s.Provider = last.Provider
		}
	}
	if a.Out.JSON {
		if err := a.Out.Object(s); err != nil {
			return err
		}
	} else {
		a.Out.Print("%s", s.text())
		if s.KeepsNone {
			a.Out.Note("  warning: %s", cli.NothingKept(s.Provider))
		}
		if s.Unreachable != nil {
			a.Out.Fail(s.Unreachable)
		}
	}
	if !s.Serves {
		return cli.Done(cli.ExitRetry)
	}
	return nil
}

// ask fills in what the slot reports.
func (s *slotStatus) ask(ctx context.Context, d *cli.Door) error {
	s.Address = d.Where()
	able, err := d.Capabilities(ctx)
	if err != nil {
		return err
	}
	mode, err := d.Mode(ctx)
	if err != nil {
		return err
	}
	s.Serves, s.Provider, s.Kind = true, able.Provider, string(able.ConditionKind)
	s.KeepsNone = report.KeepsNothing(able)
	s.ReadOnly, s.Since = mode.ReadOnly, mode.Since
	if running, ok := d.Contract.(*client.Client); ok {
		if stats, err := running.ArchiveStats(ctx); err == nil {
			s.Archive, s.Archived = stats.On, stats.Events
		}
	}
	return nil
}

// text is the status for people.
func (s *slotStatus) text() string {
	var b strings.Builder
	line := func(name, format string, values ...any) {
		fmt.Fprintf(&b, "%-9s %s\n", name, fmt.Sprintf(format, values...))
	}
	switch {
	case s.Serves:
		line("slot", "serves at %s", s.Address)
	case s.Unreachable != nil && (s.Unreachable.Code == abi.CodeUnauthenticated || s.Unreachable.Code == abi.CodeDenied):
		line("slot", "serves, but not this caller")
	case s.Folder != "":
		line("slot", "none serves %s; memhost run starts it", s.Folder)
	default:
		line("slot", "does not answer")
	}
	switch {
	case s.Serves && s.Kind == string(abi.KindControl):
		line("provider", "%s, a control", s.Provider)
	case s.Serves:
		line("provider", "%s", s.Provider)
	case s.Provider != "":
		line("provider", "%s served last", s.Provider)
	}
	if s.Serves {
		mode := "writes"
		if s.ReadOnly {
			mode = "read-only since " + s.Since
		}
		line("mode", "%s", mode)
		if s.Archive {
			line("archive", "%s", cli.Count(int(s.Archived), "event"))
		} else {
			line("archive", "off")
		}
	}
	if s.Scope != nil {
		line("scope", "%s, where a command names none", cli.ScopeText(*s.Scope))
	}
	if s.Folder != "" {
		text := cli.Count(s.Waiting, "turn") + " waiting"
		if s.Aside > 0 {
			text += fmt.Sprintf(", %d set aside", s.Aside)
		}
		line("outbox", "%s", text)
	}
	if len(s.Hooks) == 0 {
		line("hooks", "none installed")
	} else {
		line("hooks", "%s", strings.Join(s.Hooks, ", "))
	}
	return b.String()
}

// hooked returns the agents whose settings contain memhost's hooks: the user's settings, and those of the current
// folder.
func (a *commands) hooked() []string {
	list := []string{}
	for _, agent := range []string{"claude-code", "codex"} {
		for _, project := range []bool{false, true} {
			path, err := agenthook.SettingsFile(agent, project, a.Getenv)
			if err != nil {
				continue
			}
			if text, err := os.ReadFile(path); err == nil && agenthook.Installed(text, agent) {
				list = append(list, agent+" ("+path+")")
				break
			}
		}
	}
	return list
}
