package registrycmd

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
)

// providerInfo describes a built-in provider.
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

// communityInfo describes a provider whose module is not built in: the operator builds it from its source, or pulls it
// from a registry.
type communityInfo struct {
	Name   string            `json:"name"`
	Kind   abi.ConditionKind `json:"kind"`
	Source string            `json:"source"` // a folder of this repository, or an address
	Note   string            `json:"note"`
}

//go:embed community.json
var communityFile []byte

// community reads the list that the program carries. TestCommunity checks it.
func community() (list []communityInfo, err error) {
	err = json.Unmarshal(communityFile, &list)
	return list, err
}

func (a *commands) providersCommand() *cobra.Command {
	return &cobra.Command{
		Use: "providers", Short: "List the providers that are built in, and the community's", Args: cobra.NoArgs,
		Long: "Lists what a configuration can choose without naming a module file: architectures as memory.backend, " +
			"controls as memory.condition. The community's providers follow, with their sources: memory.plugin names " +
			"their module, a file that `memhost build` made of the source or an oci:// reference.",
		RunE: func(*cobra.Command, []string) error { return a.providers() },
	}
}

func (a *commands) providers() error {
	list := []providerInfo{}
	for _, m := range a.Builtins() {
		for _, p := range m.Info.Manifest.Providers {
			list = append(list, providerInfo{Name: p.Name, Kind: p.Kind, Note: p.Note, Module: m.Name,
				Version: m.Info.Manifest.Version, Bytes: m.Info.Bytes,
				SHA256: m.Info.SHA256, Powers: cli.Powers(m.Info.Powers), Capabilities: cli.Optional(m.Info.Exports),
				Description: m.Info.Manifest.Description})
		}
	}
	slices.SortStableFunc(list, func(x, y providerInfo) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name))
	})
	others, err := community()
	if err != nil {
		return err
	}
	if a.Out.JSON {
		return a.Out.Object(map[string]any{"providers": list, "community": others})
	}
	w := tabwriter.NewWriter(a.Out.Stdout, 0, 0, 2, ' ', 0)
	_, _ = w.Write([]byte("PROVIDER\tKIND\tMODULE\tSIZE\tPOWERS\tNOTE\n"))
	for _, p := range list {
		note := p.Note
		if note == "" {
			note = p.Description
		}
		_, _ = w.Write([]byte(strings.Join([]string{p.Name, string(p.Kind), p.Module + " " + p.Version, cli.Size(p.Bytes),
			strings.Join(p.Powers, " "), note}, "\t") + "\n"))
	}
	_, _ = w.Write([]byte("\nCOMMUNITY\tKIND\tSOURCE\tNOTE\n"))
	for _, p := range others {
		_, _ = w.Write([]byte(strings.Join([]string{p.Name, string(p.Kind), p.Source, p.Note}, "\t") + "\n"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	a.Out.Print("not built in: `memhost build SOURCE`, then memory.plugin: ./NAME.wasm; or plugin: oci://HOST/NAME:TAG\n")
	return nil
}
