package native

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/text/plainjson"
)

func (a *commands) ledgerImport() *cobra.Command {
	var f cli.ScopeFlags
	cmd := &cobra.Command{Use: "import FILE", Short: "Take in what export --history wrote", Args: cobra.ExactArgs(1)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		text, err := readText(args[0])
		if err != nil {
			return cli.UsageError(err.Error(), "")
		}
		files, err := unfold(text)
		if err != nil {
			return err
		}
		return a.withScope(cmd.Context(), &f, func(ctx context.Context, d *cli.Door) error {
			return a.importFiles(ctx, d, f.Scope(), files)
		})
	}
	f.Add(cmd.Flags())
	return cmd
}

// unfold makes the files of an export again from one file.
func unfold(text []byte) (map[string]string, error) {
	var file ledgerFile
	if err := json.Unmarshal(text, &file); err != nil || file.Version != 1 || file.Commits == nil {
		return nil, cli.UsageError("this is no export with history", "write one by `memhost ledger export --history -o FILE`")
	}
	branches, err := json.Marshal(map[string]any{"version": 1, "branches": file.Branches})
	if err != nil {
		return nil, err
	}
	files := map[string]string{"branches.json": string(branches) + "\n", "HEAD": file.CurrentBranch + "\n"}
	for dir, list := range map[string][]json.RawMessage{"events/": file.Events, "commits/": file.Commits} {
		for _, raw := range list {
			var o struct{ ID string }
			if err := json.Unmarshal(raw, &o); err != nil {
				return nil, cli.UsageError(err.Error(), "")
			}
			canonical, err := canonicalJSON(raw)
			if err != nil {
				return nil, cli.UsageError(err.Error(), "")
			}
			files[dir+o.ID+".json"] = canonical
		}
	}
	return files, nil
}

// canonicalJSON is an object as the ledger hashes it (RFC 8785): names in order, no blanks, and no escapes but those
// that must be.
func canonicalJSON(raw []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return "", err
	}
	text, err := plainjson.Marshal(value)
	if err != nil {
		return "", err
	}
	// The encoder escapes two characters more. A backslash that is itself escaped is no part of that.
	return strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029").Replace(string(text)) + "\n", nil
}
