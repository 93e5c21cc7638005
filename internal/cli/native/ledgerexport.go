package native

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
)

// ledgerFile is one file of all: what an export in JSON is.
type ledgerFile struct {
	Version       int               `json:"version"`
	ExportedAt    string            `json:"exported_at"`
	CurrentBranch string            `json:"current_branch"`
	Branches      []ledgerBranch    `json:"branches"`
	Memories      []ledgerEntry     `json:"memories"`
	Events        []json.RawMessage `json:"events,omitempty"`
	Commits       []json.RawMessage `json:"commits,omitempty"`
}

const ledgerExportHelp = `Writes the memories of the current branch, without what is private or confidential. --history adds every
commit with its events, forgotten, private and confidential ones included. As JSON that can be imported again; as
Markdown it is a list, newest first.`

func (a *commands) ledgerExport() *cobra.Command {
	var f cli.ScopeFlags
	var format, to, branch string
	var history, withPrivate bool
	cmd := &cobra.Command{Use: "export", Short: "Write the memories as one file", Args: cobra.NoArgs,
		Long: ledgerExportHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "json" && format != "markdown" {
				return cli.UsageError("--format is "+format, "want json or markdown")
			}
			return a.withLedger(cmd.Context(), &f, func(ctx context.Context, d *cli.Door, l *ledgerFiles) error {
				file := ledgerFile{Version: 1, ExportedAt: time.Now().UTC().Format(time.RFC3339),
					CurrentBranch: l.current, Branches: l.branches, Memories: []ledgerEntry{}}
				wanted, err := l.named(branch)
				if err != nil {
					return err
				}
				for _, b := range wanted {
					list, err := a.entries(ctx, d, f.Scope(), b.Name, false)
					if err != nil {
						return err
					}
					for _, e := range list {
						if e.Sensitivity == "private" && !withPrivate {
							continue
						}
						e.Branch, e.Timestamp, e.EventType, e.CreatedAt = b.Name, e.CreatedAt, "", ""
						file.Memories = append(file.Memories, e)
					}
				}
				text := file.markdown()
				if history {
					text += l.markdown()
				}
				if format == "json" {
					if history {
						for _, path := range slices.Sorted(maps.Keys(l.files)) {
							switch dir, _, _ := strings.Cut(path, "/"); dir {
							case "events":
								file.Events = append(file.Events, json.RawMessage(l.files[path]))
							case "commits":
								file.Commits = append(file.Commits, json.RawMessage(l.files[path]))
							}
						}
					}
					out, err := json.MarshalIndent(file, "", "  ")
					if err != nil {
						return err
					}
					text = string(out) + "\n"
				}
				if to == "" {
					a.Out.Print("%s", text)
					a.Out.Note("%s", memories(len(file.Memories)))
					return nil
				}
				if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
					return cli.UsageError(err.Error(), "")
				}
				a.Out.Print("%s\n", memories(len(file.Memories)))
				return nil
			})
		}}
	f.Add(cmd.Flags())
	cmd.Flags().StringVar(&format, "format", "json", "json or markdown")
	cmd.Flags().StringVar(&branch, "branch", "current", "current, all, or a branch's name")
	cmd.Flags().StringVarP(&to, "output", "o", "", "the file; standard output otherwise")
	cmd.Flags().BoolVar(&history, "history", false, "every commit and event too")
	cmd.Flags().BoolVar(&withPrivate, "include-private", false, "private memories too")
	return cmd
}

// named are the branches that --branch means.
func (l *ledgerFiles) named(branch string) ([]ledgerBranch, error) {
	if branch == "all" {
		return l.branches, nil
	}
	if branch == "current" {
		branch = l.current
	}
	i := slices.IndexFunc(l.branches, func(b ledgerBranch) bool { return b.Name == branch })
	if i < 0 {
		return nil, cli.UsageError("--branch: no branch is called "+branch, "`memhost ledger branches` lists them")
	}
	return l.branches[i : i+1], nil
}

// eventSigns show what an event does.
var eventSigns = map[string]string{"add": "+", "modify": "~", "forget": "-", "observe": "?"}

// markdown lists the commits, newest first, each with its events.
func (l *ledgerFiles) markdown() string {
	var b strings.Builder
	b.WriteString("\n## History\n\n")
	line := func(text string) string { return strings.ReplaceAll(text, "\n", " ") }
	for _, k := range slices.Backward(l.oldestFirst()) {
		b.WriteString("- " + k.Timestamp + " `" + shortID(k.ID) + "` on " + k.Branch + ": " +
			line(k.Message) + "\n")
		for _, id := range k.Events {
			var e ledgerEntry
			if json.Unmarshal([]byte(l.files["events/"+id+".json"]), &e) != nil {
				continue // fsck reports damage
			}
			text := strings.TrimSpace(e.Subject + " " + e.Predicate + " " + e.Object)
			b.WriteString("    - `" + eventSigns[e.EventType] + "` " + line(text) + "\n")
		}
	}
	return b.String()
}

// ledgerMemoryFile is the name of the summary for people in an exported ledger. It is made from the ledger, and an
// import ignores it.
const ledgerMemoryFile = "MEMORY.md"

// addMemoryFile adds that summary, of the current branch, to the files of a ledger; other files stay as they are.
func (a *commands) addMemoryFile(ctx context.Context, d *cli.Door, scope abi.MemoryScope, files map[string]string) error {
	if !isLedger(files) {
		return nil
	}
	branch := strings.TrimSpace(files["HEAD"])
	list, err := a.entries(ctx, d, scope, branch, false)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(e ledgerEntry) bool { return e.Sensitivity == "private" })
	files[ledgerMemoryFile] = "# Memory of the branch " + branch + "\n\n" + (&ledgerFile{Memories: list}).markdown()
	return nil
}

func isLedger(files map[string]string) bool {
	return files["HEAD"] != "" && files["branches.json"] != ""
}

func memories(n int) string {
	if n == 1 {
		return "1 memory"
	}
	return fmt.Sprintf("%d memories", n)
}

// markdown groups the memories by topic, then by subject. What several branches have is one line.
func (f *ledgerFile) markdown() string {
	var b strings.Builder
	listed := map[string]bool{}
	list := slices.SortedStableFunc(slices.Values(f.Memories), func(a, b ledgerEntry) int {
		return strings.Compare(a.Topic+"\x00"+a.Subject, b.Topic+"\x00"+b.Subject)
	})
	list = slices.DeleteFunc(list, func(e ledgerEntry) bool {
		again := listed[e.ID]
		listed[e.ID] = e.ID != ""
		return again
	})
	topic, subject := "\x00", "\x00"
	for i, e := range list {
		if i > 0 && (e.Topic != topic || e.Subject != subject) {
			b.WriteByte('\n')
		}
		if e.Topic != topic {
			topic, subject = e.Topic, "\x00"
			title := topic
			if title == "" {
				title = "General"
			}
			b.WriteString("## " + title + "\n\n")
		}
		if e.Subject != subject {
			subject = e.Subject
			b.WriteString("### " + subject + "\n\n")
		}
		b.WriteString("- " + strings.ReplaceAll(e.Predicate+" "+e.Object, "\n", "\n  ") + "\n")
	}
	return b.String()
}
