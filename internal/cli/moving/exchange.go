package moving

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/server/wire"
	"github.com/memhost/memhost/internal/registry"
)

const swapHelp = `Exchanges the provider of a running slot, by POST /v1/swap: the new one is loaded, tried out and made
ready beside the old one, then one switch. When a step fails the old one serves on, and the error names the step.
Without --block the slot's own configuration has the new provider's block. The new one has only what is recorded
from then on; --backfill fills it before it serves: from the archive or, where files follow, from these, which
memhost archive export wrote (- is standard input).`

func (a *commands) swapCommand() *cobra.Command {
	var plugin, block string
	var fill backfillFlags
	cmd := &cobra.Command{
		Use: "swap PROVIDER|oci://... [--backfill [FILE|-]...]", Args: cobra.MinimumNArgs(1),
		Short: "Exchange the provider of a running slot", Long: swapHelp,
		Example: "  memhost swap no_memory\n  memhost swap mem0 --block '{\"url\": \"http://127.0.0.1:8000\"}'\n" +
			"  memhost swap graphiti --backfill --dry-run\n  memhost swap graphiti --backfill all.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			fill.files = args[1:]
			if err := fill.check(); err != nil {
				return err
			}
			r, err := a.swapRequest(args[0], plugin, block)
			if err != nil {
				return err
			}
			return a.WithDoor(cmd.Context(), func(ctx context.Context, d *cli.Door) error {
				if fill.backfill {
					return a.backfill(ctx, d, r, &fill)
				}
				return a.swap(ctx, d, r)
			})
		},
	}
	cmd.Flags().StringVar(&plugin, "plugin", "", "the module: a file, oci://..., or the name of a built-in one")
	cmd.Flags().BoolVar(&fill.backfill, "backfill", false,
		"fill it first, from the archive or from files (memhost backfill --help)")
	cmd.Flags().BoolVar(&fill.dryRun, "dry-run", false, "with --backfill: say what would be sent, and send nothing")
	cmd.Flags().Float64Var(&fill.rate, "rate", 0, "with --backfill: the most events a second; 0 means no limit")
	cmd.Flags().StringVar(&fill.identity, "identity", "", "with files: the age key for which they were encrypted")
	cmd.Flags().StringVar(&block, "block", "", "the provider's config block, a JSON object")
	return cmd
}

// swapRequest names a provider by the word for its kind: backend or condition.
func (a *commands) swapRequest(provider, plugin, block string) (*wire.SwapRequest, error) {
	r := &wire.SwapRequest{Plugin: plugin, Config: abi.Raw(block)}
	if block != "" && (!abi.ValidJSON([]byte(block)) || !strings.HasPrefix(strings.TrimSpace(block), "{")) {
		return nil, cli.UsageError("--block: want a JSON object", "")
	}
	if plugin == "" && registry.IsReference(provider) {
		only, err := a.onlyProvider(provider)
		if err != nil {
			return nil, err
		}
		provider, plugin, r.Plugin = only, provider, provider
	}
	if plugin == "" && cli.IsFile(provider) {
		return nil, a.swapOfFile(provider)
	}
	file := cli.IsFile(plugin)
	if file {
		var err error
		if r.Plugin, err = filepath.Abs(plugin); err != nil {
			return nil, err
		}
	}
	named := plugin
	if named == "" {
		named = provider
	}
	m, err := a.OpenModule(named, file)
	if err != nil {
		return nil, err
	}
	if registry.IsReference(plugin) {
		r.Plugin = m.Source // with the digest
	}
	decl := m.Serves(provider)
	if decl == nil {
		return nil, cli.UsageError("swap: module "+m.Name+" serves no provider "+cli.Quote(provider),
			"`memhost inspect "+named+"` lists them")
	}
	if r.Backend = provider; decl.Kind == abi.KindControl {
		r.Backend, r.Condition = "", provider
	}
	return r, nil
}

// onlyProvider returns the provider of a module in a registry that serves just one.
func (a *commands) onlyProvider(reference string) (string, error) {
	m, err := a.OpenModule(reference, false)
	if err != nil {
		return "", err
	}
	list := cli.ProvidersIn(m)
	if len(list) != 1 {
		return "", cli.UsageError(fmt.Sprintf("swap: %s serves %d providers, want the name of one", reference, len(list)),
			"memhost swap "+list[0].Name+" --plugin "+reference)
	}
	return list[0].Name, nil
}

// swapOfFile handles `memhost swap FILE`: PROVIDER is a name, and the file belongs to --plugin.
func (a *commands) swapOfFile(path string) error {
	names := "PROVIDER"
	if m, err := a.OpenModule(path, true); err == nil {
		var all []string
		for _, p := range m.Info.Manifest.Providers {
			all = append(all, p.Name)
		}
		names = strings.Join(all, " or ")
	}
	return cli.UsageError("swap: "+path+" is a file, want the name of a provider", "memhost swap "+names+" --plugin "+path)
}

func (a *commands) swap(ctx context.Context, d *cli.Door, r *wire.SwapRequest) error {
	running, ok := d.Contract.(*client.Client)
	if !ok {
		return abi.NewError(abi.CodeUnavailable, "swap: no slot is running").WithHint("a provider is chosen when the " +
			"slot starts: memhost run --" + config.WordCondition + " or --" + config.WordBackend)
	}
	before, err := d.Manifest(ctx)
	if err != nil {
		return err
	}
	remembered, unlisted := scopesOf(ctx, running, before)
	began := a.Now()
	m, err := running.Swap(ctx, *r)
	if err != nil {
		return err
	}
	if a.Out.JSON {
		return a.Out.Value(m)
	}
	s := &cli.Steps{Out: a.Out}
	for _, step := range m.Steps {
		s.Tell(step.Verdict, step.Name, step.Detail)
	}
	a.Out.Print("%s serves, load generation %d, at %s\n", m.Provider, m.LoadGeneration, d.Where())
	a.tellRestart(m)
	if report.KeepsNothing(&m.Capabilities) {
		a.Out.Note("  warning: %s", cli.NothingKept(m.Provider))
	}
	if before.Provider == m.Provider || unlisted != nil {
		return nil
	}
	there, unlisted := scopesOf(ctx, running, m)
	if unlisted != nil {
		return nil // the swap is done, and this is only a hint
	}
	if left := leftBehind(remembered, there, began); len(left) > 0 {
		more := ""
		if len(left) > 1 {
			more = fmt.Sprintf(" and %d more", len(left)-1)
		}
		scope := "run " + cli.Quote(left[0].RunID) + ", user " + cli.Quote(left[0].PersonaID) + more
		fill := "`memhost record FILE` with the same conversations fills it, and "
		switch {
		case len(m.Capabilities.NativeIngestModes) == 0:
			fill = "it takes nothing in; "
		case m.Archive != nil:
			fill = "`memhost archive export FILE` and `memhost record FILE` fill it, and "
		}
		a.Out.Note("  %s holds nothing of %s, which %s remembers: %s`memhost swap %s` goes back", m.Provider, scope,
			before.Provider, fill, before.Provider)
	}
	return nil
}

// scopesOf returns all scopes of the serving provider, from the manifest, or from the paged list if the manifest left
// some out.
func scopesOf(ctx context.Context, c *client.Client, m *report.RunManifest) ([]report.ScopeMapping, error) {
	if m.ScopesLeftOut == 0 {
		return m.Scopes, nil
	}
	var list []report.ScopeMapping
	err := cli.EachScope(ctx, c, func(s *report.ListedScope) error {
		list = append(list, s.ScopeMapping)
		return nil
	})
	return list, err
}

// leftBehind lists the scopes of the previous provider that the new one lacks, or has only since the swap started.
func leftBehind(before, after []report.ScopeMapping, began time.Time) []abi.MemoryScope {
	there := map[abi.MemoryScope]bool{}
	for _, s := range after {
		since, err := time.Parse(time.RFC3339Nano, s.Since)
		there[withoutNamespace(s.Scope)] = err != nil || since.Before(began)
	}
	var left []abi.MemoryScope
	for _, s := range before {
		if !there[withoutNamespace(s.Scope)] {
			left = append(left, s.Scope)
		}
	}
	return left
}

// withoutNamespace removes the namespace, which a swap keeps, from a scope.
func withoutNamespace(s abi.MemoryScope) abi.MemoryScope {
	s.BackendNamespace = ""
	return s
}
