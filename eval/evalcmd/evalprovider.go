package evalcmd

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/run"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/text/jsonpointer"
)

// isBuiltin reports whether this program includes a provider.
func (a *commands) isBuiltin(name string) bool {
	for _, p := range a.KnownProviders() {
		if p.Name == name {
			return true
		}
	}
	return false
}

// evalOptions resolves a lab's providers to memhost configurations. folder is the base for relative paths in them.
func (a *commands) evalOptions(l *lab.Lab, p *pack.Pack, folder string) run.Options {
	return run.Options{Now: a.Now, Logger: hclog.NewNullLogger(), Host: a.evalHost(), Dir: folder,
		Local: func(entry *lab.Provider) bool {
			c, err := a.evalProvider(l, entry, p, folder)
			if err != nil {
				return false
			}
			info, err := host.Inspect(c.Module, cli.LookOnly())
			return err == nil && !hasBackend(info, c.Block)
		},
		Provider: func(entry *lab.Provider) (host.ProviderConfig, error) {
			c, err := a.evalProvider(l, entry, p, folder)
			if err != nil {
				e := *abi.AsError(err)
				e.Message = "providers, " + entry.Label + ": " + e.Message
				return c, &e
			}
			return c, nil
		}}
}

// evalHost are the options that every cell's host shares.
func (a *commands) evalHost() host.Options {
	v := a.Version()
	cache := ""
	if dir, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(dir, "memhost", "modules")
	}
	return host.Options{Version: v.Version, Commit: v.Commit, CacheDir: cache}
}

// evalProvider converts a lab's entry to a memhost configuration. If the entry has no block for a control for which the
// pack has the truth, it uses the pack's block.
func (a *commands) evalProvider(l *lab.Lab, entry *lab.Provider, p *pack.Pack, folder string) (host.ProviderConfig, error) {
	name, memory := entry.Name(), map[string]any{}
	maps.Copy(memory, entry.Memory)
	if _, short := memory["provider"]; short {
		delete(memory, "provider")
		word := config.WordBackend
		for _, known := range a.KnownProviders() {
			if known.Name == name && known.Kind == abi.KindControl {
				word = config.WordCondition
			}
		}
		memory[word] = name
	}
	if own, set := memory["frame"]; set && own != l.Frame {
		return host.ProviderConfig{}, cli.UsageError(fmt.Sprintf("memory.frame: is %v, the lab's is %s", own, l.Frame),
			"one frame serves all providers: set frame in the lab")
	}
	memory["frame"] = l.Frame
	if entry.Plugin != "" {
		memory["plugin"] = entry.Plugin
	}
	conditions, _ := memory["conditions"].(map[string]any)
	if block, known := p.Conditions[name]; known && conditions[name] == nil {
		blocks := map[string]any{name: block}
		maps.Copy(blocks, conditions)
		memory["conditions"] = blocks
	}
	tree := map[string]any{"memory": memory}
	if entry.Secrets != nil {
		tree["secrets"] = entry.Secrets
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return host.ProviderConfig{}, cli.UsageError(err.Error(), "")
	}
	o := config.Options{File: "lab.json", Text: text, Dir: folder, Environ: a.unconfigured(), Known: a.KnownProviders(),
		Module: a.ProvidersOf}
	c, err := config.Load(o)
	if err != nil {
		return host.ProviderConfig{}, err
	}
	if c.Memory.Archive && c.Source("memory.archive").Kind != config.KindDefault || len(c.Memory.Shadows) > 0 {
		return host.ProviderConfig{}, cli.UsageError("memory: a cell keeps no archive, and nothing follows it",
			"leave archive and shadows out of the lab: an evaluation is of what it records alone")
	}
	m, err := a.ResolveChecked(c)
	if err != nil {
		return host.ProviderConfig{}, err
	}
	return cli.ProviderConfig(c, m), nil
}

// unconfigured is the environment without variables that configure memhost: only the lab file determines a run.
func (a *commands) unconfigured() []string {
	list := []string{"PATH="} // nil would mean the process's environment
	for _, pair := range a.Environ {
		if !strings.HasPrefix(pair, "MEMHOST_") {
			list = append(list, pair)
		}
	}
	return list
}

// hasBackend reports whether a provider's block names any origin. A module may have routes that its configuration does
// not use.
func hasBackend(m *host.Module, block abi.Raw) bool {
	var tree any
	if json.Unmarshal(block, &tree) != nil {
		return false
	}
	for _, origin := range m.Manifest.Origins {
		if value, there := jsonpointer.Find(tree, origin.From); there && value != nil {
			return true
		}
	}
	return false
}
