package cli

import (
	"cmp"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
)

// providerInfo is a provider that is built in.
type providerInfo struct {
	Name         string            `json:"name"`
	Kind         abi.ConditionKind `json:"kind"`
	Note         string            `json:"note,omitempty"`
	Module       string            `json:"module"`
	Version      string            `json:"version"`
	Bytes        int64             `json:"bytes"`
	SHA256       string            `json:"sha256"`
	Powers       []string          `json:"powers"`
	Capabilities []string          `json:"capabilities"`
	Description  string            `json:"description"`
}

func (a *app) providersCommand() *cobra.Command {
	return &cobra.Command{
		Use: "providers", Short: "List the providers that are built in", Args: cobra.NoArgs,
		Long: "Lists what a configuration can choose without naming a module file: architectures as memory.backend, " +
			"controls as memory.condition.",
		RunE: func(*cobra.Command, []string) error { return a.providers() },
	}
}

func (a *app) providers() error {
	list := []providerInfo{}
	for _, m := range a.builtins() {
		for _, p := range m.info.Manifest.Providers {
			list = append(list, providerInfo{Name: p.Name, Kind: p.Kind, Note: p.Note, Module: m.name,
				Version: m.info.Manifest.Version, Bytes: m.info.Bytes,
				SHA256: m.info.SHA256, Powers: powers(m.info.Powers), Capabilities: optional(m.info.Exports),
				Description: m.info.Manifest.Description})
		}
	}
	slices.SortStableFunc(list, func(x, y providerInfo) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name))
	})
	if a.out.json {
		return a.out.object(map[string]any{"providers": list})
	}
	w := tabwriter.NewWriter(a.out.stdout, 0, 0, 2, ' ', 0)
	_, _ = w.Write([]byte("PROVIDER\tKIND\tMODULE\tSIZE\tPOWERS\tNOTE\n"))
	for _, p := range list {
		note := p.Note
		if note == "" {
			note = p.Description
		}
		_, _ = w.Write([]byte(strings.Join([]string{p.Name, string(p.Kind), p.Module + " " + p.Version, size(p.Bytes),
			strings.Join(p.Powers, " "), note}, "\t") + "\n"))
	}
	return w.Flush()
}

// powers groups the host functions that a module imports: what it can do besides computing. config, deadline and pull
// give it no power.
func powers(imports []string) []string {
	list := []string{}
	for _, p := range []struct {
		name      string
		functions []string
	}{{"http", []string{abi.ImportHTTPSend}}, {"bolt", []string{abi.ImportBoltRun}},
		{"state", []string{abi.ImportStateGet, abi.ImportStatePut, abi.ImportStateDelete, abi.ImportStateList,
			abi.ImportStateAppend, abi.ImportStateRead}},
		{"tokens", []string{abi.ImportTokensCount, abi.ImportTokensFit}}, {"log", []string{abi.ImportLog}}} {
		if slices.ContainsFunc(p.functions, func(f string) bool { return slices.Contains(imports, f) }) {
			list = append(list, p.name)
		}
	}
	return list
}

// optional are the exports that are capabilities.
func optional(exports []string) []string {
	list := []string{}
	for _, op := range abi.OptionalOperations() {
		if slices.Contains(exports, op) {
			list = append(list, op)
		}
	}
	return list
}
