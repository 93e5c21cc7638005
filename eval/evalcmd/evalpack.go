package evalcmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/build"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/internal/cli"
)

func (a *commands) evalPackBuildCommand() *cobra.Command {
	var out, name, licence string
	var options []string
	cmd := &cobra.Command{Use: "build BUILDER [FILE...] -o PACK", Short: "Make a pack of a data set's own file",
		Long: packBuildHelp(), Args: cobra.MinimumNArgs(1),
		Example: "  memhost eval pack build locomo locomo10.json -o locomo.pack --option insert=asap\n  memhost eval " +
			"pack build synth -o synth.pack.tar.zst --option seed=7",
		RunE: func(_ *cobra.Command, args []string) error {
			b, err := build.Find(args[0])
			if err != nil {
				return err
			}
			if out == "" {
				return cli.UsageError("--out: required", "name a folder, or a file that ends in "+pack.Archive)
			}
			r := build.Request{Name: name, Sources: args[1:], Licence: licence, Options: map[string]string{}}
			for _, pair := range options {
				key, value, ok := strings.Cut(pair, "=")
				if !ok {
					return cli.UsageError(fmt.Sprintf("--option %s: want NAME=VALUE", pair), "")
				}
				r.Options[key] = value
			}
			return a.evalPackBuild(b, r, out)
		}}
	f := cmd.Flags()
	f.StringVarP(&out, "out", "o", "", "the pack: a new folder, or a file that ends in "+pack.Archive)
	f.StringArrayVar(&options, "option", nil, "an option of the builder, NAME=VALUE (repeatable)")
	f.StringVar(&name, "name", "", "the pack's name (default: builder and source)")
	f.StringVar(&licence, "licence", "", "the data's licence, an SPDX identifier (default: what the data set is "+
		"published under)")
	return cmd
}

// packBuildHelp lists the builders with their options.
func packBuildHelp() string {
	var b strings.Builder
	b.WriteString("Makes a pack: events in order, and the questions that are asked after each session. The data are " +
		"yours; none are shipped.\n")
	for _, builder := range build.Builders() {
		fmt.Fprintf(&b, "\n  %-12s %s\n", builder.Name, builder.What)
		if len(builder.Sources) > 0 {
			fmt.Fprintf(&b, "  %-12s files: %s\n", "", strings.Join(builder.Sources, " "))
		}
		for _, name := range abi.SortedKeys(builder.Options) {
			fmt.Fprintf(&b, "  %-12s %s=%s: %s\n", "", name, builder.Defaults[name], builder.Options[name])
		}
	}
	return b.String()
}

func (a *commands) evalPackBuild(b *build.Builder, r build.Request, out string) error {
	bar := a.Out.Progress(100, "reading")
	shown := 0
	r.Progress = func(done, total int64) {
		if percent := int(100 * done / max(1, total)); percent > shown {
			bar.Add(percent - shown)
			shown = percent
		}
	}
	m, err := b.Build(r, out)
	bar.Finish()
	if err != nil {
		return err
	}
	if a.Out.JSON {
		return a.Out.Object(m)
	}
	a.Out.Print("%s: %s\n", out, packLine(m))
	for _, repair := range m.Repairs {
		a.Out.Print("  %-28s %5d, such as %s\n", repair.Kind, repair.Count, repair.Examples[0])
	}
	if len(m.Repairs) > 0 {
		a.Out.Note("`memhost eval pack show %s --repairs` lists every place", out)
	}
	return nil
}

func packLine(m *pack.Manifest) string {
	c := m.Counts
	return fmt.Sprintf("%s in %s, %s, %s, %s, content %.12s", cli.Count(c.Personas, "persona"), cli.Count(c.Clusters, "cluster"),
		cli.Count(c.Sessions, "session"), cli.Count(c.Events, "event"), cli.Count(c.Probes, "probe"), m.ContentSHA256)
}

func (a *commands) evalPackLintCommand() *cobra.Command {
	return &cobra.Command{Use: "lint PACK", Short: "Look for what would make a comparison wrong",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := pack.Open(args[0])
			if err != nil {
				return err
			}
			defer p.Close()
			findings, err := pack.Lint(p)
			if err != nil {
				return err
			}
			return a.reportLint(p, findings)
		}}
}

func (a *commands) reportLint(p *pack.Pack, findings []pack.Finding) error {
	fatal := 0
	for _, f := range findings {
		if f.Fatal {
			fatal++
		}
		if !a.Out.JSON {
			mark := a.Out.Open()
			if f.Fatal {
				mark = a.Out.Broken()
			}
			a.Out.Print("%s %-20s %s: %s\n", mark, f.Rule, f.Where, f.What)
		}
	}
	if a.Out.JSON {
		if err := a.Out.Object(findings); err != nil {
			return err
		}
	} else if len(findings) == 0 {
		a.Out.Print("%s %s: nothing found\n", a.Out.Passed(), packLine(&p.Manifest))
	}
	if fatal > 0 {
		return cli.Done(cli.ExitFailed)
	}
	return nil
}

func (a *commands) evalPackShowCommand() *cobra.Command {
	var persona string
	var repairs bool
	cmd := &cobra.Command{Use: "show PACK", Short: "Show a pack, one persona's timeline, or what was repaired",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := pack.Open(args[0])
			if err != nil {
				return err
			}
			defer p.Close()
			if repairs && !a.Out.JSON {
				a.showRepairs(&p.Manifest)
				return nil
			}
			if persona == "" {
				return a.showPack(p)
			}
			return a.showPersona(p, persona)
		}}
	cmd.Flags().StringVar(&persona, "persona", "", "whose timeline")
	cmd.Flags().BoolVar(&repairs, "repairs", false, "every place of the source that was repaired or left out")
	return cmd
}

// showRepairs prints one line per place.
func (a *commands) showRepairs(m *pack.Manifest) {
	for _, repair := range m.Repairs {
		for _, place := range repair.Examples {
			a.Out.Print("%-28s %s\n", repair.Kind, place)
		}
		if more := repair.Count - len(repair.Examples); more > 0 {
			a.Out.Print("%-28s ... and %d more\n", repair.Kind, more)
		}
	}
}

func (a *commands) showPack(p *pack.Pack) error {
	m := &p.Manifest
	if a.Out.JSON {
		return a.Out.Object(m)
	}
	a.Out.Print("%s: %s\n", m.Name, packLine(m))
	if m.Source != nil {
		a.Out.Print("source   %s, sha256 %.12s, licence %s\n", m.Source.Name, m.Source.SHA256,
			m.Source.Licence)
	}
	a.Out.Print("builder  %s", m.Builder.Name)
	for _, name := range abi.SortedKeys(m.Builder.Options) {
		a.Out.Print(" %s=%s", name, m.Builder.Options[name])
	}
	a.Out.Print("\nlabels   %s\n", strings.Join(m.Labels, ", "))
	for _, repair := range m.Repairs {
		a.Out.Print("mended   %-28s %5d\n", repair.Kind, repair.Count)
	}
	const most = 20
	for i, persona := range m.Personas {
		if i == most {
			a.Out.Print("... and %d more\n", len(m.Personas)-most)
			break
		}
		a.Out.Print("%-32s %4d sessions %6d events %5d probes\n", persona.PersonaID, persona.Sessions,
			persona.Events, persona.Probes)
	}
	return nil
}

// showPersona prints a timeline: the sessions in order, each followed by its probes.
func (a *commands) showPersona(p *pack.Pack, id string) error {
	probes := map[int][]*pack.Probe{}
	for probe, err := range p.Probes(id) {
		if err != nil {
			return err
		}
		probes[probe.AfterSession] = append(probes[probe.AfterSession], probe)
	}
	session, found := 0, false
	ask := func() {
		for _, probe := range probes[session] {
			a.Out.Print("    ? [%s] %s -> %v\n", probe.Label, cli.Cut(probe.Query, 160),
				probe.Gold.Answers)
		}
	}
	for e, err := range p.Events(id) {
		if err != nil {
			return err
		}
		found = true
		if e.SessionIndex != session {
			ask()
			session = e.SessionIndex
			a.Out.Print("session %d, %s\n", session, e.Timestamp)
		}
		a.Out.Print("  %s\n", e.EventID)
		for _, m := range e.Messages {
			if m.Content != nil {
				a.Out.Print("    %-9s %s\n", m.Role, cli.Cut(*m.Content, 160))
			}
		}
	}
	ask()
	if !found {
		return cli.UsageError(fmt.Sprintf("--persona: the pack has no persona %s", cli.Quote(id)),
			"`memhost eval pack show` lists them")
	}
	return nil
}
