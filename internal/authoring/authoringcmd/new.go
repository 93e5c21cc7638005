package authoringcmd

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/authoring/newplugin"
	"github.com/memhost/memhost/internal/authoring/toolchain"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
)

const newHelp = `Writes a folder with a plugin that builds, has its tests, and keeps the contract in front of a tiny backend that memhost brings along. What is the tiny
backend's in it is then replaced by yours; docs/new-plugin.md walks through it.

NAME becomes the name of module, provider and folder: a small letter, then small letters, digits and underscores.

A Go plugin requires the version of memhost that this program is. --memhost DIR makes it use the sources in DIR instead, for a program that is no released
version.`

type newFlags struct{ lang, dir, memhost string }

func (a *commands) newCommand() *cobra.Command {
	var f newFlags
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Write a new plugin to begin with", Long: newHelp, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.newPlugin(cmd.Context(), args[0], &f) },
	}
	cmd.Flags().StringVar(&f.lang, "lang", newplugin.Languages()[0], strings.Join(newplugin.Languages(), ", "))
	cmd.Flags().StringVar(&f.dir, "dir", "", "the folder to write (default: NAME)")
	cmd.Flags().StringVar(&f.memhost, "memhost", "", "a checkout of memhost that a Go plugin is built with")
	return cmd
}

func (a *commands) newPlugin(ctx context.Context, name string, f *newFlags) error {
	o := newplugin.Options{Name: name, Language: f.lang}
	if i := slices.IndexFunc(a.KnownProviders(), func(p config.Provider) bool { return p.Name == name }); i >= 0 {
		return abi.NewError(abi.CodeConflict, "a provider called "+name+" is built in").WithHint(
			"take another name, for example my_" + name)
	}
	err := newplugin.Check(o)
	switch {
	case err != nil:
	case newplugin.NeedsMemhost(f.lang):
		o.Version, o.Checkout, err = a.memhostFor(f.memhost)
	case f.memhost != "":
		err = cli.UsageError("--memhost: a plugin for "+f.lang+" is built without memhost's sources",
			"leave --memhost out")
	}
	if err != nil {
		return err
	}
	dir := f.dir
	if dir == "" {
		dir = name
	}
	files, err := newplugin.Write(dir, o)
	if err != nil {
		return err
	}
	if a.Out.JSON {
		return a.Out.Object(map[string]any{"folder": dir, "name": name, "lang": o.Language, "files": files})
	}
	a.Out.Print("wrote %s for %s: %s\nNext: cd %s && %s\n", dir, o.Language, strings.Join(files, " "), dir,
		newplugin.NextStep(o.Language))
	if o.Language == newplugin.C {
		if _, err := toolchain.FindClang(ctx); err != nil {
			a.Out.Note("%v: %s", err, getClang)
		}
	}
	return nil
}

// memhostFor is what a Go plugin requires: a released version, or a checkout.
func (a *commands) memhostFor(checkout string) (version, dir string, err error) {
	if checkout == "" {
		version = a.Version().Version
		if !regexp.MustCompile(`^v\d+\.\d+\.\d+(-(alpha|beta|rc)[0-9A-Za-z.]*)?$`).MatchString(version) {
			return "", "", cli.UsageError("new: this memhost is "+cli.Quote(version)+", which is no released version that a "+
				"Go module could require",
				"--memhost DIR names a checkout of memhost to build the plugin with")
		}
		return version, "", nil
	}
	if dir, err = filepath.Abs(checkout); err != nil {
		return "", "", cli.FileError(checkout, err)
	}
	if !toolchain.IsCheckout(dir) {
		return "", "", cli.UsageError("--memhost: "+checkout+" is no checkout of memhost: it has no go.mod of it",
			"give the folder with memhost's go.mod")
	}
	return "", dir, nil
}
