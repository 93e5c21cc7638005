package native

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
)

// What the command line makes of a ledger's files, to keep the module small: counts here, a graph in ledgergraph.go,
// one file of everything in ledgerexport.go.

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

func (k *ledgerCommit) line() string {
	return k.ID[:min(8, len(k.ID))] + " " + k.Message
}

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

func (a *commands) withLedger(ctx context.Context, f *cli.ScopeFlags,
	use func(ctx context.Context, d *cli.Door, l *ledgerFiles) error) error {
	return a.withScope(ctx, f, func(ctx context.Context, d *cli.Door) error {
		files, err := filesOf(ctx, d, f.Scope())
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

// entries lists what a branch has, by the query view; all includes what is forgotten or expired.
func (a *commands) entries(ctx context.Context, d *cli.Door, scope abi.MemoryScope, branch string, all bool) (list []ledgerEntry,
	err error) {
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

func (a *commands) ledgerStats() *cobra.Command {
	var f cli.ScopeFlags
	cmd := &cobra.Command{Use: "stats", Short: "Count what a ledger has", Args: cobra.NoArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.withLedger(cmd.Context(), &f, func(ctx context.Context, d *cli.Door, l *ledgerFiles) error {
			list, err := a.entries(ctx, d, f.Scope(), l.current, true)
			if err != nil {
				return err
			}
			inventory, err := d.Inventory(ctx, &abi.InventoryRequest{Scope: f.Scope()})
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
	}
	f.Add(cmd.Flags())
	return cmd
}
