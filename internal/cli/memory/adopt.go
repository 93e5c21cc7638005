package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/agenthook"
	"github.com/memhost/memhost/internal/doors/agenthook/hookcmd"
	"github.com/memhost/memhost/internal/text/conversations"
	"github.com/memhost/memhost/internal/text/convert"
)

const adoptHelp = `Gives an agent a memory that knows its past, in one command: records the conversations that it has logged, puts memhost's hooks into its settings, and
shows the context that its next session gets.

  claude-code   logs in ~/.claude/projects (CLAUDE_CONFIG_DIR counts)
  codex         logs in ~/.codex/sessions (CODEX_HOME counts)
  chatgpt       the data export that you name; it has no hook, and goes into the scope of the configuration

Each session goes into the memory that the hook reads in the folder that the session began in: that of its project and of
you. Only sessions of the current folder's project are recorded, unless --all takes every project.

First it shows where everything goes, how many turns there are, what is left out, and how often a model is asked; then it
asks. Without a terminal it wants --yes. A turn that the memory has is not recorded again, and a turn that is recorded
here is not recorded again by the hook.

--undo takes the hooks out and forgets what was adopted. What was forgotten is not recorded again later.`

// adoptionTarget is an agent or service that can be adopted.
type adoptionTarget struct {
	source conversations.Source
	title  string
	hooks  bool
}

var adoptables = []adoptionTarget{{conversations.ClaudeCode, "Claude Code", true}, {conversations.Codex, "Codex", true}, {conversations.ChatGPT, "ChatGPT", false}}

type adoptFlags struct {
	cli.ScopeFlags
	all, yes, undo bool
	zone           string
}

func (a *commands) adoptCommand() *cobra.Command {
	var f adoptFlags
	cmd := &cobra.Command{Use: "adopt AGENT [FILE...]", Short: "Give an agent a memory that knows its past", Long: adoptHelp,
		Args:      cobra.MinimumNArgs(1),
		ValidArgs: []string{"claude-code", "codex", "chatgpt"},
		Example: "  memhost adopt claude-code\n  memhost adopt codex --all\n  memhost adopt chatgpt chatgpt-export.zip --user ann\n" +
			"  memhost adopt claude-code --undo",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.adopt(cmd, &f, args[0], args[1:])
		}}
	f.Add(cmd.Flags())
	fs := cmd.Flags()
	fs.Lookup("run").Usage = "run id; {project} stands for the repository that a session began in (default: {project})"
	fs.Lookup("user").Usage = "whose memory; {person} stands for the user of this computer (default: {person}); --persona means the same"
	fs.BoolVar(&f.all, "all", false, "every project's sessions, not only the current folder's")
	fs.BoolVar(&f.yes, "yes", false, "do not ask")
	fs.BoolVar(&f.undo, "undo", false, "take the hooks out, and forget what was adopted")
	fs.StringVar(&f.zone, "zone", "", "the zone of times that name none: UTC, Europe/Paris or +01:00")
	return cmd
}

// adoption is a plan of what the command will do.
type adoption struct {
	adoptionTarget
	paths  []string
	parts  []adoptedPart
	change *hookcmd.Change // nil: no hooks
}

// adoptedPart is what is recorded into one scope.
type adoptedPart struct {
	project string // "" without hooks
	scope   abi.MemoryScope
	options conversations.Options
	counts  conversations.Counts
	bad     []string
}

func (a *commands) adopt(cmd *cobra.Command, f *adoptFlags, agent string, paths []string) error {
	at := slices.IndexFunc(adoptables, func(k adoptionTarget) bool { return string(k.source) == agent })
	if at < 0 {
		return cli.UsageError("adopt: no agent is called "+cli.Quote(agent), "claude-code, codex or chatgpt; `memhost record` takes others' exports")
	}
	p := &adoption{adoptionTarget: adoptables[at], paths: paths}
	if p.hooks {
		a.NamedFileOnly = true // as in the hook itself: both must mean the same slot
	}
	if f.undo {
		return a.undoAdoption(cmd, f, p)
	}
	if err := a.planAdoption(cmd, f, p); err != nil {
		return err
	}
	return a.carryOutAdoption(cmd.Context(), f, p)
}

// planAdoption reads everything, and changes nothing.
func (a *commands) planAdoption(cmd *cobra.Command, f *adoptFlags, p *adoption) (err error) {
	if err := p.findLogs(a); err != nil {
		return err
	}
	zone, err := zoneOf(f.zone)
	if err != nil {
		return err
	}
	if !p.hooks {
		if err := f.Complete(a.App); err != nil {
			return err
		}
		return a.addPart(cmd.Context(), p, "", f.Scope(), conversations.Options{Zone: zone})
	}
	if f.Run == "" {
		f.Run = agenthook.PlaceProject
	}
	if f.User == "" {
		f.User = agenthook.PlacePerson
	}
	if err := agenthook.CheckPlaces(f.Scope()); err != nil {
		return err
	}
	if p.change, err = hookcmd.Prepare(a.App, cmd.Flags(), string(p.source), false); err != nil {
		return err
	}
	folders, err := conversations.Folders(p.source, p.paths)
	if err != nil {
		return err
	}
	byProject := map[string]map[string]bool{}
	for folder := range folders {
		if folder == "" {
			a.Out.Note("%s left out, which do not say in which folder they began: `memhost record --from %s` takes them",
				cli.Count(folders[folder], "log"), p.source)
			continue
		}
		project := agenthook.Project(folder)
		if byProject[project] == nil {
			byProject[project] = map[string]bool{}
		}
		byProject[project][folder] = true
	}
	here := agenthook.Project(".")
	var projects []string
	for project := range byProject {
		if f.all || project == here {
			projects = append(projects, project)
		}
	}
	if len(projects) == 0 {
		return cli.UsageError(fmt.Sprintf("adopt: no session of %s began in this project, %s", p.title, here),
			fmt.Sprintf("--all takes the %s that the logs are of; or go to a project's folder", cli.Count(len(byProject), "project")))
	}
	slices.Sort(projects)
	for _, project := range projects {
		o := conversations.Options{Zone: zone, InFolder: func(folder string) bool { return byProject[project][folder] }}
		if err := a.addPart(cmd.Context(), p, project, agenthook.Expand(f.Scope(), project, cli.Person()), o); err != nil {
			return err
		}
	}
	return nil
}

// findLogs sets the agent's own folder of logs if no files were named.
func (p *adoption) findLogs(a *commands) error {
	if len(p.paths) > 0 {
		return nil
	}
	if !p.hooks {
		return cli.UsageError("adopt "+string(p.source)+": want the file of the data export",
			"ChatGPT sends it on demand: Settings, Data controls, Export data")
	}
	settings, err := agenthook.SettingsFile(string(p.source), false, a.Getenv)
	if err != nil {
		return cli.UsageError("the home folder is not known: "+err.Error(), "name the folder with the logs")
	}
	folder := "projects"
	if p.source == conversations.Codex {
		folder = "sessions"
	}
	path := filepath.Join(filepath.Dir(settings), folder)
	if _, err := os.Stat(path); err != nil {
		return cli.UsageError(fmt.Sprintf("adopt: %s has no logs in %s", p.title, path),
			fmt.Sprintf("name their folder; or `memhost hook install %s` gives it a memory that begins now", p.source))
	}
	p.paths = []string{path}
	return nil
}

// addPart reads what belongs to one scope. It leaves out sessions that cannot be read, and names them.
func (a *commands) addPart(ctx context.Context, p *adoption, project string, scope abi.MemoryScope, o conversations.Options) error {
	if err := scope.Validate(); err != nil {
		return err
	}
	o.RunID, o.UserID, o.AgentID = scope.RunID, scope.PersonaID, scope.AgentID
	o.Format = convert.FormatAuto
	counts, bad, err := a.checkConversations(ctx, p.source, p.paths, o, true)
	if err != nil {
		return err
	}
	p.parts = append(p.parts, adoptedPart{project, scope, o, counts, bad})
	return nil
}

// events counts the turns.
func (p *adoption) events() (n int) {
	for i := range p.parts {
		n += p.parts[i].counts.Events
	}
	return n
}

// carryOutAdoption shows the plan, asks, and does it.
func (a *commands) carryOutAdoption(ctx context.Context, f *adoptFlags, p *adoption) error {
	soft, hard, stop := a.InTwoStages(ctx)
	defer stop()
	a.Begins = true
	where, cost, err := a.destination(soft, p.events())
	if err != nil {
		return err
	}
	a.Out.Note("into: %s", where)
	for i := range p.parts {
		part := &p.parts[i]
		a.Out.Note("%s:\n  %s", cli.ScopeText(part.scope), strings.ReplaceAll(conversationsText(part.counts), "\n", "\n  "))
		for _, why := range part.bad[:min(len(part.bad), maxBadLines)] {
			a.Out.Note("  left out, since it cannot be read: %s", why)
		}
	}
	a.Out.Note("calls to a language model: %s", cost)
	what := fmt.Sprintf("Record %s", cli.Count(p.events(), "turn"))
	if p.change != nil && p.change.Diff != "" {
		a.Out.Note("hooks, in %s:\n%s", p.change.Path, p.change.Diff)
		what += ", and install the hooks"
	}
	if !f.yes {
		if !cli.IsTerminal(a.Stdin) {
			return cli.UsageError("adopt cannot ask here, and did nothing", "say --yes if that is meant")
		}
		fmt.Fprintf(a.Out.Stderr, "%s? Type yes: ", what)
		if err := a.confirmed(soft, "nothing was recorded or installed"); err != nil {
			return err
		}
	}
	d, err := a.Connect(soft)
	if err != nil {
		return err
	}
	defer d.Close()
	sum, stopped := a.recordAdopted(soft, hard, d, p)
	if code := sum.ExitCode(stopped); code != cli.ExitOK {
		return a.reportRecord(hard, d, sum, stopped)
	}
	hooked := p.change != nil && p.change.Diff != ""
	if hooked {
		if err := p.change.Write(); err != nil {
			return err
		}
		if err := a.noteAdoption(p, nil, true); err != nil {
			return err
		}
	}
	if err := a.reportRecord(hard, d, sum, nil); err != nil || a.Out.JSON {
		return err
	}
	switch {
	case hooked && p.source == conversations.Codex:
		a.Out.Note("The hooks are installed. Trust them in Codex (/hooks): until then it does not run them.")
	case hooked:
		a.Out.Note("The hooks are installed: they count from %s's next session on.", p.title)
	case p.hooks:
		a.Out.Note("The hooks were installed before.")
	}
	a.Out.Note("`memhost adopt %s --undo` takes it all back. The next session begins with:", p.source)
	return a.retrieve(hard, d, p.firstRequest())
}

// firstRequest is what the hook asks when a session starts: in the current project, if that was adopted.
func (p *adoption) firstRequest() *abi.RetrieveRequest {
	budget := int64(agenthook.DefaultMaxTokens)
	r := &abi.RetrieveRequest{Query: "What is known about the user?", Scope: p.parts[0].scope, SessionID: "adopt",
		Budget: abi.ContextBudget{MaxTokens: &budget}}
	if !p.hooks {
		return r
	}
	project := p.parts[0].project
	if here := agenthook.Project("."); slices.ContainsFunc(p.parts, func(part adoptedPart) bool { return part.project == here }) {
		project = here
	}
	for i := range p.parts {
		if p.parts[i].project == project {
			r.Scope = p.parts[i].scope
		}
	}
	r.Query = agenthook.StartQuestion(project)
	return r
}

// destination describes where the turns go, and how often recording them makes the backend ask a language model. It
// opens nothing.
func (a *commands) destination(ctx context.Context, events int) (where, cost string, err error) {
	c, err := a.Config()
	if err != nil {
		return "", "", err
	}
	provider, word, block := c.Block()
	where = provider + ", in the data folder " + c.Data.Dir
	var d *cli.Door
	if server := a.ServerNamed(); server != "" {
		d, err = a.DialNamed(ctx, server)
	} else {
		d, err = a.Running(ctx, c)
	}
	if err != nil {
		return "", "", err
	}
	if d != nil {
		defer d.Close()
		m, err := d.Manifest(ctx)
		if err != nil {
			return "", "", err
		}
		where, provider, block = d.Owner(ctx), m.Provider, m.Config
		if word = config.WordBackend; m.ConditionKind == abi.KindControl {
			word = config.WordCondition
		}
	}
	return where, a.languageCalls(provider, word, block, events), nil
}

// languageCalls describes how often recording that many events makes the backend ask a language model.
func (a *commands) languageCalls(provider, word string, block abi.Raw, events int) string {
	const unknown = "not known: the provider does not declare them"
	m, err := a.OpenModule(provider, false)
	if err != nil {
		return unknown
	}
	if len(m.Info.Manifest.Origins) == 0 {
		return "none, it works by itself"
	}
	list, declared, err := m.Info.ModelCalls(provider, word, block)
	if err != nil || !declared {
		return unknown
	}
	var texts []string
	for i := range list {
		if c := &list[i]; c.Operation == abi.OpRecordEvent && c.Model == abi.ModelLanguage {
			texts = append(texts, host.ModelCallsText(c, int64(events)))
		}
	}
	if len(texts) == 0 {
		return "none: the configuration asks for none"
	}
	return strings.Join(texts, "; ")
}

// recordAdopted records every part, and notes which events were new.
func (a *commands) recordAdopted(soft, hard context.Context, d *cli.Door, p *adoption) (*recordSummary, error) {
	r := &Recorder{Slot: d, Batch: BatchSize(hard, d), Retries: 5, keepGoing: true, Sleep: a.Sleep, Out: a.Out,
		Progress: a.Out.Progress(p.events(), "recording"), Sum: NewSummary()}
	defer r.Progress.Finish()
	began := a.Now()
	for i := range p.parts {
		part := &p.parts[i]
		before, err := listedIDs(soft, d, part.scope)
		if err != nil {
			return &r.Sum, err
		}
		part.options.Known = conversations.NewKnownIDs(before)
		reader, err := conversations.Open(p.source, p.paths, part.options)
		if err != nil {
			return &r.Sum, err
		}
		sent := &notingReader{in: reader}
		bad := r.Sum.BadLines
		stopped := r.Run(soft, hard, sent)
		r.Sum.BadLines = bad // they were shown before
		r.Sum.addKnown(reader.Counts())
		r.Sum.Slot, r.Sum.Seconds = d.Owner(hard), a.Now().Sub(began).Seconds()
		after, err := listedIDs(hard, d, part.scope)
		if err == nil {
			err = a.noteAdoption(p, &adoptedEvents{part.scope, newOf(sent.ids(), before, after)}, false)
		}
		_ = reader.Close()
		if stopped = errors.Join(stopped, err); stopped != nil {
			return &r.Sum, stopped
		}
	}
	return &r.Sum, nil
}

// newOf returns the ids that were sent and that the slot did not have before.
func newOf(sent, before, after []string) (ids []string) {
	had, has := map[string]bool{}, map[string]bool{}
	for _, id := range before {
		had[id] = true
	}
	for _, id := range after {
		has[id] = true
	}
	for _, id := range sent {
		if has[id] && !had[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// notingReader keeps the ids of the events that it returns.
type notingReader struct {
	in   itemReader
	mu   sync.Mutex
	list []string
}

// Next implements itemReader.
func (n *notingReader) Next() (convert.Item, error) {
	item, err := n.in.Next()
	if err == nil {
		n.mu.Lock()
		n.list = append(n.list, item.Event.EventID)
		n.mu.Unlock()
	}
	return item, err
}

func (n *notingReader) ids() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}
