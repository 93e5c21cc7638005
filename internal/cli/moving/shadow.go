package moving

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

const shadowHelp = `A shadow (memory.shadows in the configuration file) is another memory beside the serving one: it gets every write, later and by a queue of its own, and is asked a share of the retrievals
after the agent has its answer. No agent sees what it says. What it would have said is kept for a while (data.shadow_retention_ms) and compared:

  tokens     of the formatted context, on average
  latency    the middle and the slowest 5 %, in ms
  overlap    how many of the events behind the evidence of the two answers are the same, from 0 to 1

memhost swap NAME lets a shadow that has everything serve, without a gap.`

func (a *commands) shadowCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "shadow", Short: "Compare memories that follow the serving one", Long: shadowHelp,
		Args: cli.NoSuchCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(&cobra.Command{Use: "report", Short: "Compare the stored answers of shadows", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withRunning(cmd.Context(), "shadow", func(ctx context.Context, c *client.Client) error {
				list, err := c.Shadows(ctx)
				if err != nil {
					return err
				}
				if a.Out.JSON {
					return a.Out.Value(list)
				}
				a.Out.Print("%s\n", shadowsText(list))
				return nil
			})
		}})
	r := new(report.ShadowAnswersRequest)
	answers := &cobra.Command{Use: "answers", Short: "Show what shadows would have said, newest first",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withRunning(cmd.Context(), "shadow", func(ctx context.Context, c *client.Client) error {
				page, err := c.ShadowAnswers(ctx, r)
				if err != nil {
					return err
				}
				if a.Out.JSON {
					return a.Out.Value(page)
				}
				for i := range page.Answers {
					a.Out.Print("%s\n", shadowAnswerText(&page.Answers[i]))
				}
				return nil
			})
		}}
	answers.Flags().Int64Var(&r.Limit, "limit", 10, "the most answers, up to 500")
	answers.Flags().StringVar(&r.Provider, "provider", "", "of this shadow only")
	cmd.AddCommand(answers)
	return cmd
}

// CheckShadows finds the module of each configured shadow, before anything is loaded.
func CheckShadows(a *cli.App, c *config.Config) error {
	for _, name := range c.Memory.Shadows {
		if _, err := a.SwapModule(c, name, ""); err != nil {
			return inShadows(err)
		}
	}
	return nil
}

// inShadows adds the name of the setting to an error.
func inShadows(err error) error {
	e := *abi.AsError(err)
	e.Message = "memory.shadows: " + e.Message
	return &e
}

// Shadows starts the configured shadows. A shadow that serves by now is skipped with a note: a slot that moved to its
// shadow starts with the earlier configuration.
func (b *backfiller) Shadows(ctx context.Context, s *cli.Steps) error {
	m := b.running.Memory
	for _, name := range m.Shadows {
		err := b.shadow(ctx, name)
		if err != nil && abi.AsError(err).Reason == "serves" { // it serves since then
			s.Tell("skipped", "shadow", fmt.Sprintf("%s; take it out of memory.shadows", abi.AsError(err).Message))
			continue
		}
		if err != nil {
			return inShadows(err)
		}
		s.Pass("shadow", fmt.Sprintf("%s gets every write, and %d %% of the retrievals", name, m.ShadowPercent))
	}
	return b.slot.EndShadows(ctx)
}

// shadow starts one provider as a shadow of the slot.
func (b *backfiller) shadow(ctx context.Context, name string) error {
	module, err := b.app.SwapModule(b.running, name, "")
	if err != nil {
		return err
	}
	r := wire.SwapRequest{Backend: name}
	if decl := module.Serves(name); decl != nil && decl.Kind == abi.KindControl {
		r = wire.SwapRequest{Condition: name}
	}
	c, err := b.app.SwapConfig(b.running, b.options, r)
	if err != nil {
		return err
	}
	m := b.running.Memory
	return b.slot.Shadow(ctx, c, host.ShadowOptions{SamplePercent: m.ShadowPercent,
		Retention: cli.Milliseconds(b.running.Data.ShadowRetentionMS), FromNow: m.ShadowFrom == "now"})
}

func shadowsText(list *report.ShadowList) string {
	if len(list.Shadows) == 0 {
		return "there are no shadows (memory.shadows names them)"
	}
	var b strings.Builder
	for i := range list.Shadows {
		s := &list.Shadows[i]
		r := &s.Report
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s beside %s, since %s: %s", s.Provider, list.Serving, s.Since,
			progressText(s.State, &s.Progress))
		fmt.Fprintf(&b, "\n  asked %d %% of the retrievals: %s stored", s.SamplePercent,
			cli.Grouped(r.Answers)+" answers")
		if s.Missed > 0 {
			fmt.Fprintf(&b, ", %s missed (it was too slow)", cli.Grouped(s.Missed))
		}
		if r.Failed > 0 {
			fmt.Fprintf(&b, "\n  errors    %s (%s)", cli.Grouped(r.Failed), countsText(r.Errors))
		}
		if r.TokensMean != nil {
			fmt.Fprintf(&b, "\n  tokens    %s, %s %s on average", figure(r.TokensMean), list.Serving,
				figure(r.ServingTokensMean))
			fmt.Fprintf(&b, "\n  latency   %s ms, slowest 5 %% from %s ms; %s %s and %s ms", figure(r.LatencyP50MS),
				figure(r.LatencyP95MS), list.Serving, figure(r.ServingP50MS), figure(r.ServingP95MS))
		}
		if r.OverlapMean != nil {
			fmt.Fprintf(&b, "\n  overlap   %.2f over %s", *r.OverlapMean, cli.Grouped(r.OverlapAnswers)+" answers")
		} else if r.Answers > r.Failed {
			b.WriteString("\n  overlap   not known: one of the two names no events behind its evidence")
		}
		if r.Empty > 0 {
			fmt.Fprintf(&b, "\n  empty     %s", cli.Grouped(r.Empty)+" answers")
		}
	}
	return b.String()
}

func countsText(counts map[string]int64) string {
	var parts []string
	for code, n := range counts {
		parts = append(parts, fmt.Sprintf("%s %d", code, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// figure formats a number with one decimal, "-" if there is none.
func figure(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *v)
}

func shadowAnswerText(x *report.ShadowAnswer) string {
	text := fmt.Sprintf("%s  run %q, user %q: %q", x.At, x.Scope.RunID, x.Scope.PersonaID, x.Query)
	text += fmt.Sprintf("\n-- %s, %d tokens, %.1f ms\n%s", x.Serving, x.ServingTokens, x.ServingLatencyMS,
		x.ServingContext)
	if x.Error != nil {
		return text + fmt.Sprintf("\n-- %s, %.1f ms: %s: %s\n", x.Provider, x.LatencyMS, x.Error.Code,
			x.Error.Message)
	}
	overlap := "not known"
	if x.Overlap != nil {
		overlap = fmt.Sprintf("%.2f", *x.Overlap)
	}
	text += fmt.Sprintf("\n-- %s, %d tokens, %.1f ms, overlap %s", x.Provider, x.Tokens, x.LatencyMS, overlap)
	if x.Behind > 0 {
		text += fmt.Sprintf(", %d events behind", x.Behind)
	}
	return text + "\n" + x.FormattedContext + "\n"
}
