package serving

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
)

const initHelp = `Writes a configuration to begin with: what must be set stands there with an example, everything else as a comment with its meaning and default. On a
terminal it asks for what no flag says.`

type initFlags struct {
	provider, output, run, user string
	force                       bool
}

func (a *commands) initCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use: "init", Short: "Write a configuration to begin with", Long: initHelp, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.init(&f) },
	}
	fs := cmd.Flags()
	fs.StringVar(&f.provider, "provider", "",
		"the provider ('memhost providers' lists them; default "+config.DefaultProvider+")")
	fs.StringVar(&f.run, "run", "", "run id of the scope")
	fs.StringVar(&f.user, "user", "", "user of the scope, which is its persona_id")
	cli.PersonaIsUser(fs)
	fs.StringVar(&f.output, "output", config.DefaultFile, "the file to write, - for standard output")
	fs.BoolVar(&f.force, "force", false, "write over a file that is there")
	return cmd
}

func (a *commands) init(f *initFlags) error {
	if f.output != "-" && !f.force {
		if _, err := os.Stat(f.output); err == nil {
			return abi.NewError(abi.CodeConflict, f.output+" is there already").WithHint("--force writes over it, " +
				"--output takes another name")
		} else if !errors.Is(err, fs.ErrNotExist) {
			return cli.FileError(f.output, err)
		}
	}
	if cli.IsTerminal(a.Stdin) {
		a.askInit(f)
	}
	if f.provider == "" {
		f.provider = config.DefaultProvider
	}
	m, err := a.OpenModule(f.provider, false)
	if err != nil || m.Serves(f.provider) == nil {
		var names []string
		for _, p := range a.KnownProviders() {
			names = append(names, p.Name)
		}
		hint := "`memhost providers` lists what there is"
		if near := abi.Nearest(f.provider, names); near != "" {
			hint = "did you mean " + near + "?"
		}
		return cli.UsageError("no provider called "+cli.Quote(f.provider)+" is built in", hint)
	}
	text := config.Starter(f.provider, m.Info.Manifest)
	for _, id := range []struct{ key, value string }{{"run_id", f.run}, {"persona_id", f.user}} {
		if id.value != "" && id.value != "default" {
			text = setID(text, id.key, id.value)
		}
	}
	if base := filepath.Base(f.output); f.output != "-" && base != config.DefaultFile {
		own := cli.Quote(strings.TrimSuffix(base, filepath.Ext(base)) + "-data")
		text = bytes.Replace(text, []byte("\n  dir: "+config.StarterData+" "), []byte("\n  dir: "+own+" "), 1)
	}
	if f.output == "-" {
		_, err := a.Out.Stdout.Write(text)
		return err
	}
	if err := cli.ReplaceFile(f.output, text); err != nil {
		return err
	}
	if a.Out.JSON {
		return a.Out.Object(map[string]string{"file": f.output, "provider": f.provider})
	}
	named := "" // ./memhost.yaml is found without it
	if f.output != config.DefaultFile {
		named = " --config " + f.output
	}
	a.Out.Note("wrote %s for %s. Next: look it through, then `memhost config%s` and `memhost run%s`", f.output,
		f.provider, named, named)
	return nil
}

// setID replaces a default id in a starter configuration.
func setID(text []byte, key, value string) []byte {
	quoted, err := json.Marshal(value) // a JSON string is a YAML string
	if err != nil {
		return text
	}
	return bytes.Replace(text, []byte("    "+key+": default\n"), []byte("    "+key+": "+string(quoted)+"\n"), 1)
}

// askInit asks for the values that no flag sets. An empty line means the default.
func (a *commands) askInit(f *initFlags) {
	in := bufio.NewReader(a.Stdin)
	ask := func(to *string, question, def string) {
		if *to != "" {
			return
		}
		fmt.Fprintf(a.Out.Stderr, "%s [%s]: ", question, def)
		line, _ := in.ReadString('\n')
		if *to = strings.TrimSpace(line); *to == "" {
			*to = def
		}
	}
	var names []string
	for _, p := range a.KnownProviders() {
		names = append(names, p.Name)
	}
	a.Out.Note("Providers: %s", strings.Join(names, ", "))
	ask(&f.provider, "Provider", config.DefaultProvider)
	ask(&f.run, "Run id", "default")
	ask(&f.user, "User id", "default")
}
