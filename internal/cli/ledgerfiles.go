package cli

import (
	"bytes"
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
	"github.com/memhost/memhost/internal/text/plainjson"
)

// What the command line makes of a ledger's files, so that the module need not: a graph, counts, and one file of all.

// ledgerFiles is an exported ledger, read.
type ledgerFiles struct {
	files    map[string]string
	commits  map[string]*ledgerCommit
	branches []ledgerBranch
	current  string
}

type ledgerBranch struct {
	Name      string          `json:"name"`
	Head      *string         `json:"head"`
	Persona   *string         `json:"persona"`
	CreatedAt string          `json:"created_at"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

func (k *ledgerCommit) line() string { return k.ID[:min(8, len(k.ID))] + " " + printable(k.Message) }

func readLedger(files map[string]string) (*ledgerFiles, error) {
	l := &ledgerFiles{files: files, commits: map[string]*ledgerCommit{}, current: strings.TrimSpace(files["HEAD"])}
	var listed struct{ Branches []ledgerBranch }
	if err := json.Unmarshal([]byte(files["branches.json"]), &listed); err != nil {
		return nil, abi.NewError(abi.CodeUnsupported, "the provider's files are no ledger")
	}
	l.branches = listed.Branches
	for path, text := range files {
		if !strings.HasPrefix(path, "commits/") {
			continue
		}
		k := new(ledgerCommit)
		if err := json.Unmarshal([]byte(text), k); err != nil {
			return nil, abi.NewError(abi.CodeBackend, path+": "+err.Error())
		}
		l.commits[k.ID] = k
	}
	return l, nil
}

// oldestFirst lists the commits by their time; those of one time stand behind their parents.
func (l *ledgerFiles) oldestFirst() []*ledgerCommit {
	depth := map[string]int{"": 0}
	for id := range l.commits {
		var chain []string
		for ; l.commits[id] != nil; id = l.commits[id].ParentID {
			if _, known := depth[id]; known {
				break
			}
			chain = append(chain, id)
		}
		for i := len(chain) - 1; i >= 0; i-- {
			depth[chain[i]] = depth[l.commits[chain[i]].ParentID] + 1
		}
	}
	return slices.SortedFunc(maps.Values(l.commits), func(a, b *ledgerCommit) int {
		if c := strings.Compare(a.Timestamp, b.Timestamp); c != 0 {
			return c
		}
		if c := depth[a.ID] - depth[b.ID]; c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
}

// mostDrawn is how many commits a graph has.
const mostDrawn = 200

// mermaid draws the commits as a gitGraph.
func (l *ledgerFiles) mermaid() string {
	var b strings.Builder
	b.WriteString("gitGraph\n")
	drawn, tips, on := map[string]bool{}, map[string]bool{"main": true}, "main"
	list := l.oldestFirst()
	for i, k := range list {
		if i == mostDrawn {
			fmt.Fprintf(&b, "%%%% the first %d of %d commits\n", mostDrawn, len(list))
			break
		}
		if !tips[k.Branch] {
			if parent := l.commits[k.ParentID]; parent != nil && drawn[parent.ID] && parent.Branch != on {
				fmt.Fprintf(&b, "  checkout %s\n", mermaidName(parent.Branch))
			}
			fmt.Fprintf(&b, "  branch %s\n", mermaidName(k.Branch))
			tips[k.Branch], on = true, k.Branch
		}
		if k.Branch != on {
			fmt.Fprintf(&b, "  checkout %s\n", mermaidName(k.Branch))
			on = k.Branch
		}
		from := l.commits[k.MergeParentID]
		switch {
		case from != nil && drawn[from.ID] && from.Branch != k.Branch && drawn[k.ParentID]:
			fmt.Fprintf(&b, "  merge %s id: %q\n", mermaidName(from.Branch), k.label())
		case k.Metadata.CherryPickedFrom != "":
			fmt.Fprintf(&b, "  commit id: %q tag: %q\n", k.label(), "cherry-pick "+k.Metadata.CherryPickedFrom[:min(8, len(k.Metadata.CherryPickedFrom))])
		default:
			fmt.Fprintf(&b, "  commit id: %q\n", k.label())
		}
		drawn[k.ID] = true
	}
	return b.String()
}

// mermaidName keeps a branch's name from being read as a word of the language.
func mermaidName(name string) string { return `"` + name + `"` }

// label is a commit's id and message without what ends a quoted text.
func (k *ledgerCommit) label() string {
	message := strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case strings.ContainsRune("[](){}<>\\", r) || r < ' ' || r == 0x7f:
			return ' '
		}
		return r
	}, k.Message)
	if cut := []rune(message); len(cut) > 60 {
		message = string(cut[:60])
	}
	return k.ID[:min(8, len(k.ID))] + ": " + message
}

// timeline is a line for each commit, by day.
func (l *ledgerFiles) timeline() string {
	var b strings.Builder
	day := ""
	for _, k := range l.oldestFirst() {
		if d, _, _ := strings.Cut(k.Timestamp, "T"); d != day {
			day = d
			b.WriteString(day + "\n")
		}
		fmt.Fprintf(&b, "  %s %s %s\n", strings.TrimSuffix(strings.TrimPrefix(k.Timestamp, day+"T"), "Z"), k.Branch, k.line())
	}
	return b.String()
}

func (a *app) withLedger(ctx context.Context, f *scopeFlags, use func(ctx context.Context, d *door, l *ledgerFiles) error) error {
	return a.withScope(ctx, f, func(ctx context.Context, d *door) error {
		files, err := filesOf(ctx, d, f.scope())
		if err != nil {
			return err
		}
		l, err := readLedger(files)
		if err != nil {
			return err
		}
		return use(ctx, d, l)
	})
}

func (a *app) ledgerGraph() *cobra.Command {
	var f scopeFlags
	var format string
	cmd := &cobra.Command{Use: "graph", Short: "Draw the commits of all branches", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		if format != "mermaid" && format != "timeline" {
			return usageError("--format is "+format, "want mermaid or timeline")
		}
		return a.withLedger(cmd.Context(), &f, func(_ context.Context, _ *door, l *ledgerFiles) error {
			if format == "timeline" {
				a.out.print("%s", l.timeline())
			} else {
				a.out.print("%s", l.mermaid())
			}
			return nil
		})
	}}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&format, "format", "mermaid", "mermaid or timeline")
	return cmd
}

// entries lists what a branch has, by the query view; all includes what is forgotten or expired.
func (a *app) entries(ctx context.Context, d *door, scope abi.MemoryScope, branch string, all bool) (list []ledgerEntry, err error) {
	params := map[string]abi.Raw{"branch": quoted(branch), "all": abi.Raw(fmt.Sprint(all))}
	for {
		r, err := d.NativeQuery(ctx, &abi.NativeQuery{Scope: scope, Name: "view", Params: params})
		if err != nil {
			return nil, err
		}
		var page struct {
			Entries []ledgerEntry
			Next    string
		}
		if err := json.Unmarshal(r.Result, &page); err != nil {
			return nil, abi.NewError(abi.CodeBackend, "view: "+err.Error())
		}
		list = append(list, page.Entries...)
		if page.Next == "" {
			return list, nil
		}
		params["after"] = quoted(page.Next)
	}
}

// ledgerEntry is an entry of a view, in the form of an export.
type ledgerEntry struct {
	ID          string      `json:"id"`
	EventType   string      `json:"event_type,omitempty"`
	Subject     string      `json:"subject"`
	Predicate   string      `json:"predicate"`
	Object      string      `json:"object"`
	Scope       string      `json:"scope"`
	Topic       string      `json:"topic"`
	Confidence  json.Number `json:"confidence"`
	Sensitivity string      `json:"sensitivity"`
	Source      string      `json:"source"`
	Evidence    string      `json:"evidence,omitempty"`
	CreatedAt   string      `json:"created_at,omitempty"`
	ForgottenAt string      `json:"forgotten_at,omitempty"`
	Timestamp   string      `json:"timestamp"`
	Branch      string      `json:"branch"`
}

func (a *app) ledgerStats() *cobra.Command {
	var f scopeFlags
	cmd := &cobra.Command{Use: "stats", Short: "Count what a ledger has", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		return a.withLedger(cmd.Context(), &f, func(ctx context.Context, d *door, l *ledgerFiles) error {
			list, err := a.entries(ctx, d, f.scope(), l.current, true)
			if err != nil {
				return err
			}
			inventory, err := d.Inventory(ctx, &abi.InventoryRequest{Scope: f.scope()})
			if err != nil {
				return err
			}
			stats := map[string]any{"branches": len(l.branches), "commits": len(l.commits), "current_branch": l.current}
			events, bytes := map[string]int{}, 0
			for path, text := range l.files {
				bytes += len(text)
				var e ledgerEntry
				if strings.HasPrefix(path, "events/") && json.Unmarshal([]byte(text), &e) == nil {
					events[e.EventType]++
				}
			}
			stats["events"], stats["bytes"] = events, bytes
			entries := map[string]map[string]int{"active": {}, "forgotten": {}, "observed": {}}
			for _, e := range list {
				kind := "active"
				if e.ForgottenAt != "" {
					kind = "forgotten"
				} else if e.EventType == "observe" {
					kind = "observed"
				}
				entries[kind][e.Scope+"/"+e.Sensitivity]++
			}
			stats["entries"] = entries
			if order := l.oldestFirst(); len(order) > 0 {
				stats["first_commit_at"], stats["last_commit_at"] = order[0].Timestamp, order[len(order)-1].Timestamp
			}
			for _, k := range inventory.Kinds {
				if k.Kind == "inbox" || k.Kind == "dead" {
					stats[k.Kind] = k.Count
				}
			}
			return a.showCounts(stats)
		})
	}}
	f.add(cmd.Flags())
	return cmd
}

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

const ledgerExportHelp = `Writes the memories of the current branch, without what is private or confidential. --history adds every commit with its events,
forgotten, private and confidential ones included. As JSON that can be imported again; as Markdown it is a list, newest first.`

func (a *app) ledgerExport() *cobra.Command {
	var f scopeFlags
	var format, to, branch string
	var history, withPrivate bool
	cmd := &cobra.Command{Use: "export", Short: "Write the memories as one file", Args: cobra.NoArgs,
		Long: ledgerExportHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "json" && format != "markdown" {
				return usageError("--format is "+format, "want json or markdown")
			}
			return a.withLedger(cmd.Context(), &f, func(ctx context.Context, d *door, l *ledgerFiles) error {
				file := ledgerFile{Version: 1, ExportedAt: time.Now().UTC().Format(time.RFC3339), CurrentBranch: l.current, Branches: l.branches, Memories: []ledgerEntry{}}
				for _, b := range l.branches {
					if branch != "all" && b.Name != l.current {
						continue
					}
					list, err := a.entries(ctx, d, f.scope(), b.Name, false)
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
					a.out.print("%s", text)
					a.out.note("%d memories", len(file.Memories))
					return nil
				}
				if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
					return usageError(err.Error(), "")
				}
				a.out.print("%d memories\n", len(file.Memories))
				return nil
			})
		}}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&format, "format", "json", "json or markdown")
	cmd.Flags().StringVar(&branch, "branch", "current", "current or all")
	cmd.Flags().StringVarP(&to, "output", "o", "", "the file; standard output otherwise")
	cmd.Flags().BoolVar(&history, "history", false, "every commit and event too")
	cmd.Flags().BoolVar(&withPrivate, "include-private", false, "private memories too")
	return cmd
}

// eventSigns show what an event does.
var eventSigns = map[string]string{"add": "+", "modify": "~", "forget": "-", "observe": "?"}

// markdown lists the commits, newest first, each with its events.
func (l *ledgerFiles) markdown() string {
	var b strings.Builder
	b.WriteString("\n## History\n\n")
	line := func(text string) string { return strings.ReplaceAll(printable(text), "\n", " ") }
	for _, k := range slices.Backward(l.oldestFirst()) {
		b.WriteString("- " + k.Timestamp + " `" + shortID(k.ID) + "` on " + printable(k.Branch) + ": " + line(k.Message) + "\n")
		for _, id := range k.Events {
			var e ledgerEntry
			if json.Unmarshal([]byte(l.files["events/"+id+".json"]), &e) != nil {
				continue // fsck tells of what is damaged
			}
			text := strings.TrimSpace(e.Subject + " " + e.Predicate + " " + e.Object)
			b.WriteString("    - `" + eventSigns[e.EventType] + "` " + line(text) + "\n")
		}
	}
	return b.String()
}

// ledgerMemoryFile is the name of the summary for people in an exported ledger. It is made from the ledger, and an
// import leaves it.
const ledgerMemoryFile = "MEMORY.md"

// addMemoryFile adds that summary, of the current branch, to the files of a ledger; other files stay as they are.
func (a *app) addMemoryFile(ctx context.Context, d *door, scope abi.MemoryScope, files map[string]string) error {
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

// markdown groups the memories by topic, then by subject.
func (f *ledgerFile) markdown() string {
	var b strings.Builder
	list := slices.SortedStableFunc(slices.Values(f.Memories), func(a, b ledgerEntry) int {
		return strings.Compare(a.Topic+"\x00"+a.Subject, b.Topic+"\x00"+b.Subject)
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
			b.WriteString("## " + printable(title) + "\n\n")
		}
		if e.Subject != subject {
			subject = e.Subject
			b.WriteString("### " + printable(subject) + "\n\n")
		}
		b.WriteString("- " + strings.ReplaceAll(printable(e.Predicate+" "+e.Object), "\n", "\n  ") + "\n")
	}
	return b.String()
}

func (a *app) ledgerImport() *cobra.Command {
	var f scopeFlags
	cmd := &cobra.Command{Use: "import FILE", Short: "Take in what export --history wrote", Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
		text, err := os.ReadFile(args[0])
		if err != nil {
			return usageError(err.Error(), "")
		}
		files, err := unfold(text)
		if err != nil {
			return err
		}
		return a.withScope(cmd.Context(), &f, func(ctx context.Context, d *door) error { return a.importFiles(ctx, d, f.scope(), files) })
	}}
	f.add(cmd.Flags())
	return cmd
}

// unfold makes the files of an export again from one file.
func unfold(text []byte) (map[string]string, error) {
	var file ledgerFile
	if err := json.Unmarshal(text, &file); err != nil || file.Version != 1 || file.Commits == nil {
		return nil, usageError("this is no export with history", "write one by `memhost ledger export --history -o FILE`")
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
				return nil, usageError(err.Error(), "")
			}
			canonical, err := canonicalJSON(raw)
			if err != nil {
				return nil, usageError(err.Error(), "")
			}
			files[dir+o.ID+".json"] = canonical
		}
	}
	return files, nil
}

// canonicalJSON is an object as the ledger hashes it (RFC 8785): names in order, no blanks, and no escapes but those that must be.
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
