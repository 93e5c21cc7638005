package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
)

// versionInfo says which program this is.
type versionInfo struct {
	Version string `json:"version"`
	// Commit is empty for a program that was built outside a checkout; Modified is true if there were uncommitted
	// changes.
	Commit   string   `json:"commit"`
	Modified bool     `json:"modified"`
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
	ABI      []string `json:"abi"`
	Wazero   string   `json:"wazero"`
}

// Version returns what the Go toolchain recorded about this program.
func (a *App) Version() versionInfo {
	v := versionInfo{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		ABI: []string{abi.ABIMemhost}, Wazero: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	for _, d := range info.Deps {
		if d.Path == "github.com/tetratelabs/wazero" {
			v.Wazero = d.Version
		}
	}
	return v
}

func (a *App) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show version, commit, Go, ABI and wazero", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := a.Version()
			if a.Out.JSON {
				return a.Out.Object(v)
			}
			a.Out.Print("%s", a.versionText())
			return nil
		},
	}
}

// versionText is what `memhost version` and --version print.
func (a *App) versionText() string {
	v := a.Version()
	commit := v.Commit
	switch {
	case commit == "":
		commit = "unknown"
	case v.Modified:
		commit += " (modified)"
	}
	return fmt.Sprintf("memhost %s\ncommit  %s\ngo      %s %s\nabi     %s\nwazero  %s\n", v.Version, commit, v.Go,
		v.Platform, v.ABI[0], v.Wazero)
}
