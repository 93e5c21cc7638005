package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const manHelp = `Prints a manual page of all commands and flags, as man reads it:

  memhost man > ~/.local/share/man/man1/memhost.1
  man memhost`

func (a *App) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man", Short: "Print the manual page", Long: manHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := a.Out.Stdout.Write([]byte(manPage(cmd.Root(), a.Version().Version)))
			return err
		},
	}
}

// manPage writes a page in the macros of man(7): the program, then a section for each command.
func manPage(root *cobra.Command, version string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH MEMHOST 1 \"\" \"memhost %s\" \"memhost\"\n", roff(version))
	fmt.Fprintf(&b, ".SH NAME\nmemhost \\- %s\n", roff(root.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B memhost\n.I COMMAND\n[\n.I FLAGS\n]\n")
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s", manText(root.Long))
	fmt.Fprintf(&b, ".SH FLAGS OF EVERY COMMAND\n%s", manFlags(root.PersistentFlags()))
	fmt.Fprintf(&b, ".SH COMMANDS\n")
	manCommands(&b, root)
	fmt.Fprintf(&b, ".SH EXIT STATUS\n%s", manText(exitHelp))
	return b.String()
}

func manCommands(b *strings.Builder, parent *cobra.Command) {
	for _, cmd := range parent.Commands() {
		if cmd.Hidden || cmd.IsAdditionalHelpTopicCommand() {
			continue
		}
		about := cmd.Long
		if about == "" {
			about = cmd.Short
		}
		fmt.Fprintf(b, ".SS %s\n%s%s", roff(strings.TrimSuffix(cmd.UseLine(), " [flags]")), manText(about),
			manFlags(cmd.LocalNonPersistentFlags()))
		manCommands(b, cmd)
	}
}

// manText keeps the line breaks of a text.
func manText(text string) string {
	return ".nf\n" + roff(strings.TrimRight(text, "\n")) + "\n.fi\n"
}

func manFlags(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, about := pflag.UnquoteUsage(f)
		fmt.Fprintf(&b, ".TP\n.B \\-\\-%s\n", roff(strings.TrimSpace(f.Name+" "+name)))
		fmt.Fprintf(&b, "%s\n", roff(about))
	})
	return b.String()
}

// roff escapes what troff would interpret: backslashes, dashes, and dots and quotes that begin a line.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
