package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/cli/serving"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/text/conversations"
	"github.com/memhost/memhost/internal/text/convert"
)

const askHelp = `Asks several providers one question about one conversation, and shows what an agent would get from each, side by side. Each provider gets a slot of its own in a
throw-away folder with a namespace of its own, records the conversation, is asked, and erases what it recorded; a slot that runs is not touched. A provider's block,
secrets and backend are those of the configuration. FILE is what memhost record reads, exports and logs that it recognises included. With --html the whole contexts are also written as one page.`

type askFlags struct {
	cli.ScopeFlags
	providers          []string
	conversation, html string
	start              string
	maxTokens          int64
	wait               time.Duration
}

func (a *commands) askCommand() *cobra.Command {
	var f askFlags
	cmd := &cobra.Command{
		Use: "ask QUESTION", Short: "Ask several providers about a conversation", Long: askHelp, Args: cobra.ExactArgs(1),
		Example: `  memhost ask "Which tea do I like?" --providers full_history,bm25 --conversation chat.jsonl \
    --start 2026-03-02T09:00:00Z --html tea.html`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.askEach(cmd.Context(), &f, args[0]) },
	}
	f.Add(cmd.Flags())
	fs := cmd.Flags()
	fs.StringSliceVar(&f.providers, "providers", nil, "who is asked, with commas between")
	fs.StringVar(&f.conversation, "conversation", "", "the file that each records first; or an export, an archive or a folder of logs")
	fs.StringVar(&f.start, "start", "", "when the conversation began (RFC 3339), for messages without a time")
	fs.StringVar(&f.html, "html", "", "a file for the whole contexts as a page")
	fs.Int64Var(&f.maxTokens, "max-tokens", 1500, "the most tokens of a context")
	fs.DurationVar(&f.wait, "wait", time.Minute, "how long a backend may take until memory is ready")
	return cmd
}

// providerAnswer is the answer of one provider.
type providerAnswer struct {
	Provider  string  `json:"provider"`
	Context   string  `json:"context"`
	Tokens    int64   `json:"tokens"`
	LatencyMS float64 `json:"latency_ms"`
	Recorded  int     `json:"recorded"`
	// LeftBehind lists what of the conversation may still be in the provider's backend, and why.
	LeftBehind []string   `json:"left_behind,omitempty"`
	Error      *abi.Error `json:"error,omitempty"`
}

func (x *providerAnswer) cost() string {
	if x.Error != nil {
		return "code " + string(x.Error.Code)
	}
	return fmt.Sprintf("%d tokens, %.1f ms", x.Tokens, x.LatencyMS)
}

// lines returns the context, or what went wrong.
func (x *providerAnswer) lines(most int) []string {
	text := x.Context
	switch {
	case x.Error != nil:
		text = x.Error.Message
	case text == "":
		return []string{"(nothing)"}
	}
	var list []string
	for _, line := range strings.Split(text, "\n") {
		if line != "" && !strings.HasPrefix(line, "<memory-context") && line != "</memory-context>" {
			list = append(list, line)
		}
	}
	if more := len(list) - most; more > 0 {
		list = append(list[:most], fmt.Sprintf("... %d more lines, which --html shows", more))
	}
	return list
}

func (a *commands) askEach(ctx context.Context, f *askFlags, question string) error {
	if len(f.providers) == 0 || f.conversation == "" {
		return cli.UsageError("ask: --providers and --conversation are required", "`memhost providers` lists providers")
	}
	if err := requireWords(question); err != nil {
		return err
	}
	if f.maxTokens < 1 {
		return cli.UsageError(fmt.Sprintf("--max-tokens: found %d, want 1 or more", f.maxTokens), "")
	}
	if err := f.Complete(a.App); err != nil {
		return err
	}
	o := convert.Options{Format: convert.FormatAuto, SessionID: "conversation", Step: time.Minute, RunID: f.Run,
		UserID: f.User, AgentID: f.Agent}
	if f.start != "" {
		t, err := abi.ParseTime(f.start)
		if err != nil {
			return cli.UsageError("--start: "+abi.AsError(err).Message, "")
		}
		o.Start = t
	}
	scopes, err := a.conversationScopes(ctx, f, o)
	if err != nil {
		return err
	}
	var all []*providerAnswer
	var failed error
	for _, name := range f.providers {
		x := &providerAnswer{Provider: name}
		if err := a.askOne(ctx, f, o, scopes, question, x); err != nil {
			x.Error, failed = abi.AsError(err), cli.Done(cli.ExitFailed)
		}
		all = append(all, x)
	}
	if f.html != "" {
		page, err := askPage(question, all)
		if err == nil {
			err = os.WriteFile(f.html, page, 0o600)
		}
		if err != nil {
			return cli.FileError(f.html, err)
		}
	}
	if a.Out.JSON {
		if err := a.Out.Object(map[string]any{"question": question, "answers": all}); err != nil {
			return err
		}
		return failed
	}
	a.Out.Paragraph(question)
	var cells []cli.Column
	for _, x := range all {
		const most = 24
		cells = append(cells, cli.Column{Head: x.Provider, Lines: x.lines(most), Foot: x.cost()})
	}
	a.Out.Columns(cells)
	for _, x := range all {
		for _, left := range x.LeftBehind {
			a.Out.Note("%s may still have the conversation: %s", x.Provider, left)
		}
	}
	return failed
}

// conversationScopes returns the scopes of the conversation's events, in the order of their first events.
//
// Errors: invalid_argument for a file that cannot be read completely, and for one without events of the requested
// scope.
func (a *commands) conversationScopes(ctx context.Context, f *askFlags, o convert.Options) ([]abi.MemoryScope, error) {
	c, err := a.Config()
	if err != nil {
		return nil, err
	}
	in, err := a.openConversation(ctx, f, o)
	if err != nil {
		return nil, err
	}
	defer func() { in.close() }()
	if in.events == 0 {
		return nil, cli.UsageError(f.conversation+": has no events", "")
	}
	r, err := in.read(o)
	if err != nil {
		return nil, err
	}
	var scopes []abi.MemoryScope
	for {
		item, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		scope := abi.MemoryScope{RunID: item.Event.RunID, PersonaID: item.Event.UserID}
		if c.Memory.AgentScoped {
			scope.AgentID = item.Event.AgentID
		}
		if !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	if slices.Contains(scopes, f.Scope()) {
		return scopes, nil
	}
	first, more := scopes[0], ""
	if len(scopes) > 1 {
		more = fmt.Sprintf(" and %d more", len(scopes)-1)
	}
	return nil, cli.UsageError(fmt.Sprintf("%s: no event is of run %q, user %q; there are those of run %q, user %q%s",
		f.conversation, f.Run, f.User, first.RunID, first.PersonaID, more),
		"say whose memory is asked, with --run and --user")
}

// conversation is what every provider records: a file in record's format, or an export or logs.
type conversation struct {
	events int
	// read returns its events, once.
	read  func(o convert.Options) (itemReader, error)
	close func()
}

// openConversation opens what --conversation names and reads it to its end.
//
// Errors: invalid_argument for anything that cannot be read completely.
func (a *commands) openConversation(ctx context.Context, f *askFlags, o convert.Options) (*conversation, error) {
	paths := []string{f.conversation}
	source, err := conversations.Detect(paths)
	if err != nil {
		return nil, err
	}
	if source != "" {
		counts, _, err := a.checkConversations(ctx, source, paths, conversations.Options{Options: o}, false)
		if err != nil {
			return nil, withoutSkipping(err)
		}
		c := &conversation{events: counts.Events, close: func() {}}
		c.read = func(o convert.Options) (itemReader, error) {
			r, err := conversations.Open(source, paths, conversations.Options{Options: o})
			if err == nil {
				c.close = func() { _ = r.Close() }
			}
			return r, err
		}
		return c, nil
	}
	inputs, events, err := a.openInputs(ctx, paths, o, false)
	if err != nil {
		return nil, withoutSkipping(err)
	}
	c := &conversation{events: events, close: func() { closeInputs(inputs) }}
	if inputs[0].file == nil {
		c.close()
		return nil, cli.UsageError("--conversation: want a file, which every provider reads anew", "")
	}
	c.read = func(o convert.Options) (itemReader, error) { return convert.NewReader(convert.UTF8(inputs[0].file), o) }
	return c, nil
}

// withoutSkipping removes the advice to leave bad lines out from an error, because this command cannot do that.
func withoutSkipping(err error) error {
	if errors.Is(err, cli.ErrInterrupted) {
		return err
	}
	e := *abi.AsError(err)
	e.Hint = strings.Replace(e.Hint, skipBadLines, "", 1)
	return &e
}

// askOne fills in the answer of one provider, in a folder that is removed afterwards. scopes are those of the
// conversation.
func (a *commands) askOne(ctx context.Context, f *askFlags, o convert.Options, scopes []abi.MemoryScope, question string,
	x *providerAnswer) error {
	dir, err := os.MkdirTemp("", "memhost-ask-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	options, err := a.ConfigOptions()
	if err != nil {
		return err
	}
	m, err := a.OpenModule(x.Provider, false)
	if err != nil {
		return err
	}
	word := config.WordBackend
	if decl := m.Serves(x.Provider); decl != nil && decl.Kind == abi.KindControl {
		word = config.WordCondition
	}
	for name, value := range map[string]string{"data": dir, "listen": "127.0.0.1:0", "page": "off", "smoke": "never",
		"namespace": filepath.Base(dir)} {
		options.Flags[name] = value
	}
	options.Flags["memory.archive"] = false // the folder is removed
	c, err := cli.Reread(options, word, x.Provider)
	if err != nil {
		return err
	}
	quiet := *a.Out
	quiet.Stderr, quiet.ErrTTY = io.Discard, false
	slot, err := serving.Start(ctx, a.App, c, options, "", &cli.Steps{Out: &quiet, Quiet: true})
	if err != nil {
		return err
	}
	defer slot.Close()
	d, err := client.New(slot.URL, "")
	if err != nil {
		return err
	}
	defer d.Close()
	scope := f.Scope()
	defer func() { // the namespace is never used again
		for _, s := range scopes {
			r, err := d.ResetScope(context.WithoutCancel(ctx), s)
			if left := notErased(r, err); left != "" {
				x.LeftBehind = append(x.LeftBehind, fmt.Sprintf("run %q, user %q in namespace %q: %s", s.RunID,
					s.PersonaID, c.Memory.Namespace, left))
			}
		}
	}()
	in, err := a.openConversation(ctx, f, o)
	if err != nil {
		return err
	}
	defer func() { in.close() }()
	events, err := in.read(o)
	if err != nil {
		return err
	}
	r := &Recorder{Slot: d, Batch: BatchSize(ctx, d), Retries: 1, Sleep: a.Sleep, Out: &quiet,
		Progress: quiet.Progress(-1, ""), Sum: NewSummary()}
	if err := r.Run(ctx, ctx, events); err != nil {
		return err
	}
	if len(r.Sum.Failures) > 0 { // an answer from a part of the conversation would not be comparable
		return r.Sum.Failures[0].Error
	}
	x.Recorded = r.Sum.Recorded + r.Sum.NotRetained
	if can, err := d.Capabilities(ctx); err == nil && slices.Contains(can.Capabilities, abi.OpReadiness) {
		if _, err := d.Readiness(ctx, &abi.ReadinessRequest{Scope: scope, TimeoutMS: f.wait.Milliseconds()}); err != nil {
			return err
		}
	}
	q := &abi.RetrieveRequest{Query: question, Scope: scope, SessionID: "ask"}
	q.Budget.MaxTokens = &f.maxTokens
	result, err := d.Retrieve(ctx, q)
	if err != nil {
		return err
	}
	x.Context = result.FormattedContext
	if t := result.Trace; t != nil {
		x.LatencyMS = t.LatencyMS
		if t.TokenCount != nil {
			x.Tokens = *t.TokenCount
		}
	}
	return nil
}

// notErased describes what a reset did not remove; "" if it removed everything.
func notErased(r *abi.ResetReceipt, err error) string {
	switch {
	case err != nil:
		return abi.AsError(err).Message
	case len(r.Remains) > 0:
		return strings.Join(r.Remains, "; ")
	case r.Status != abi.ResetDone:
		return "the reset is " + string(r.Status)
	}
	return ""
}
