package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/examples/demo"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/cli/memory"
	"github.com/memhost/memhost/internal/cli/serving"
	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/doors/server"
	"github.com/memhost/memhost/internal/text/convert"
)

const demoHelp = `Starts a slot with full_history in a data folder of its own, records an example conversation, and shows what an agent would get for a few questions
under several providers side by side: they take turns behind the same slot, while it serves. Then it serves on, for you to try. On a pipe or with CI=true it
ends after the show. Configuration files and MEMHOST_ variables do not count here.`

func (a *commands) demoCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use: "demo", Short: "See it work, on an example conversation", Long: demoHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), listen) },
	}
	cmd.Flags().StringVar(&listen, "listen", "",
		"the address of the HTTP door (default "+server.DefaultListen+", or a free port where that is taken)")
	return cmd
}

// demoProvider is a provider that the demo puts behind the slot.
type demoProvider struct {
	name  string
	block func() ([]byte, error) // nil: none
}

// demoProviders returns the providers that the demo shows, the serving one first: three, or four if they fit side by
// side.
func (a *commands) demoProviders() []demoProvider {
	const columnAtLeast = 36
	all := []demoProvider{{name: "full_history"}, {name: "oracle_ipas", block: demo.Oracle},
		{name: "no_memory"}, {name: "static_profile", block: demo.Profiles}}
	if a.Out.Width < len(all)*columnAtLeast {
		all = all[:3]
	}
	known := a.KnownProviders()
	return slices.DeleteFunc(all, func(p demoProvider) bool {
		return !slices.ContainsFunc(known, func(k config.Provider) bool { return k.Name == p.name })
	})
}

func (a *commands) demo(ctx context.Context, listen string) error {
	if a.Flags.Config != "" || a.Flags.Server != "" || len(a.Flags.Set) > 0 {
		return cli.UsageError("demo: takes no --config, --server or --set",
			"it shows the embedded default; `memhost run` serves what is configured")
	}
	bar := a.Out     // its progress bar is for standard error
	output := *a.Out // the demo's text is the result, so all of it goes to standard output
	output.Stderr = output.Stdout
	a.Out = &output
	c, o, err := a.demoConfig(listen)
	if err != nil {
		return err
	}
	a.Out.Note("memhost demo: one slot, an example conversation, several kinds of memory\n")
	s := &cli.Steps{Out: a.Out, Quiet: true}
	s.Pass("config", "none needed: full_history, a control condition that keeps every turn")
	starting, stop := a.UntilInterrupted(ctx)
	slot, err := serving.Start(starting, a.App, c, o, "", s)
	stop()
	if err != nil {
		return a.demoFailed(err, c)
	}
	defer slot.Close()
	show, stop := a.UntilInterrupted(ctx)
	err = a.demoShow(show, slot, bar)
	stop()
	if err == nil && a.Interrupted {
		err = cli.ErrInterrupted
	}
	if err != nil {
		return err
	}
	a.demoNext(slot)
	if !a.Out.TTY || a.Getenv("CI") == "true" {
		a.Out.Note("\nNot a terminal, or CI=true: ending here. The memory stays in %s.", slot.Dir)
		return nil
	}
	a.Out.Note("\nServing at %s. Ctrl-C ends.", slot.URL)
	slot.NotePage(a.App)
	slot.OpenPage(ctx, a.App)
	return slot.ServeUntilSignal(a.App)
}

// demoConfig is the embedded default configuration with a folder of its own.
func (a *commands) demoConfig(listen string) (*config.Config, config.Options, error) {
	o := config.Options{Flags: map[string]any{}, Known: a.KnownProviders()}
	for _, pair := range a.Environ {
		if !strings.HasPrefix(pair, "MEMHOST_") {
			o.Environ = append(o.Environ, pair)
		}
	}
	if o.Environ == nil {
		o.Environ = []string{"PATH="} // nil would mean the process's own environment
	}
	dir := a.Flags.Data
	if dir == "" {
		o.Dir = filepath.FromSlash("/") // a folder without the user's memhost.yaml
		home, err := config.Load(o)
		if err != nil {
			return nil, o, err
		}
		dir = filepath.Join(home.Data.Dir, "demo")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, o, cli.FileError(dir, err)
	}
	o.Dir = dir
	o.Flags["data"], o.Flags["condition"], o.Flags["listen"] = dir, "full_history", a.demoListen(listen)
	o.Flags["memory.archive"] = true // the page's comparison fills other memories from it
	for name, v := range map[string]string{"log-level": a.Flags.LogLevel, "log-format": a.Flags.LogFormat} {
		if v != "" {
			o.Flags[name] = v
		}
	}
	c, err := config.Load(o)
	a.Loaded = c
	return c, o, err
}

// demoListen returns the default address, or a free port if that address is taken.
func (a *commands) demoListen(asked string) string {
	if asked != "" {
		return asked
	}
	l, err := net.Listen("tcp", server.DefaultListen)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			a.Out.Note("(%s is taken, so this takes a free port)", server.DefaultListen)
		}
		return "127.0.0.1:0"
	}
	_ = l.Close()
	return server.DefaultListen
}

// demoFailed says what to do when another demo uses the folder.
func (a *commands) demoFailed(err error, c *config.Config) error {
	e := *abi.AsError(err)
	if e.Reason == cli.ReasonOwned {
		e.Hint = "another demo is running there; use it, stop it, or give this one a folder of its own: --data DIR"
	}
	return &e
}

// demoShow records the conversation and asks the questions of each provider.
func (a *commands) demoShow(ctx context.Context, slot *serving.ServedSlot, bar *cli.Output) error {
	c, err := client.New(slot.URL, "")
	if err != nil {
		return err
	}
	defer c.Close()
	if err := a.demoRecord(ctx, c, bar); err != nil {
		return err
	}
	questions, err := demoQuestions()
	if err != nil {
		return err
	}
	providers := a.demoProviders()
	answers, err := a.demoAsk(ctx, c, providers, questions)
	if err != nil {
		return err
	}
	for i, q := range questions {
		a.Out.Print("\n")
		a.Out.Paragraph(q.PersonaID + " asks, in a new session: " + q.Query)
		a.Out.Paragraph("A good memory shows: " + q.Why)
		a.Out.Paragraph("What the agent gets (here: the last lines with " + strings.Join(q.words, " or ") + "):")
		var cells []cli.Column
		for j, p := range providers {
			cells = append(cells, cli.Column{Head: p.name, Lines: answers[j][i].text, Foot: answers[j][i].cost})
		}
		a.Out.Columns(cells)
	}
	return nil
}

// demoQuestion is a question with the words by which a person finds the answer in a long context. The words only choose
// the lines to show.
type demoQuestion struct {
	demo.Question
	words []string
}

// demoQuestions returns the three questions, each about both people.
func demoQuestions() ([]demoQuestion, error) {
	all, err := demo.Questions()
	if err != nil {
		return nil, err
	}
	var list []demoQuestion
	for _, wanted := range []struct {
		session string
		words   []string
	}{{"mara-test-drink", []string{"flat white", "green tea"}}, {"mara-test-tone", []string{"formal", "emoji"}},
		{"jonas-test-meeting", []string{"8:30", "10:30"}}} {
		for _, q := range all {
			if q.SessionID == wanted.session {
				list = append(list, demoQuestion{q, wanted.words})
			}
		}
	}
	return list, nil
}

func (a *commands) demoRecord(ctx context.Context, c *client.Client, bar *cli.Output) error {
	if mode, err := c.Mode(ctx); err == nil && mode.ReadOnly {
		a.Out.Note("  the slot was left read-only; the demo writes, so it ends that")
		if _, err := c.SetMode(ctx, &abi.AdapterMode{Reason: "demo"}); err != nil {
			return err
		}
	}
	f, err := demo.Events()
	if err != nil {
		return err
	}
	defer f.Close()
	total, err := countEvents()
	if err != nil {
		return err
	}
	reader, err := convert.NewReader(f, convert.Options{})
	if err != nil {
		return err
	}
	began := a.Now()
	r := &memory.Recorder{Slot: c, Batch: memory.BatchSize(ctx, c), Retries: 1, Sleep: a.Sleep, Out: a.Out,
		Progress: bar.Progress(total, "recording"), Sum: memory.NewSummary()}
	err = r.Run(ctx, ctx, reader)
	r.Progress.Finish()
	if err != nil {
		return err
	}
	r.Sum.Seconds = a.Now().Sub(began).Seconds()
	a.Out.Note("%s %-16s %s", a.Out.Passed(), "record", r.Sum.Text())
	if r.Sum.Duplicates > 0 {
		a.Out.Note("  an event is delivered once: what an earlier demo recorded is not doubled")
	}
	if code := r.Sum.ExitCode(nil); code != cli.ExitOK {
		r.Sum.Details(a.Out)
		return cli.Done(code)
	}
	return nil
}

func countEvents() (int, error) {
	f, err := demo.Events()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r, err := convert.NewReader(f, convert.Options{})
	if err != nil {
		return 0, err
	}
	for n := 0; ; n++ {
		if _, err := r.Next(); err != nil {
			return n, nil
		}
	}
}

// demoAnswer is what one provider gave for one question.
type demoAnswer struct {
	text []string
	cost string
}

// demoAsk swaps in one provider after the other and asks all questions, while another client keeps asking. At the end
// the first provider serves again.
func (a *commands) demoAsk(ctx context.Context, c *client.Client, providers []demoProvider,
	questions []demoQuestion) ([][]demoAnswer, error) {
	a.Out.Note("\nThe same slot, one provider after the other: POST %s/v1/swap", c.Base())
	other := keepAsking(ctx, c, questions[0])
	answers := make([][]demoAnswer, len(providers))
	for i, p := range append(providers, providers[0]) {
		if i > 0 {
			if err := a.demoSwap(ctx, c, p); err != nil {
				return nil, err
			}
		}
		if i == len(providers) {
			break
		}
		for _, q := range questions {
			answer, err := askDemo(ctx, c, q)
			if err != nil {
				return nil, err
			}
			answers[i] = append(answers[i], answer)
		}
	}
	asked, failed := other.stop()
	a.Out.Note("Meanwhile another client asked %d times; %d failed.", asked, failed)
	return answers, nil
}

func (a *commands) demoSwap(ctx context.Context, c *client.Client, p demoProvider) error {
	r := server.SwapRequest{Condition: p.name}
	if p.block != nil {
		block, err := p.block()
		if err != nil {
			return err
		}
		r.Config = block
	}
	began := a.Now()
	m, err := c.Swap(ctx, r)
	if err != nil {
		return err
	}
	a.Out.Note("%s %-16s %s (%s), %.0f ms, no restart", a.Out.Passed(), "swap", m.Provider, m.ConditionKind,
		float64(a.Now().Sub(began).Microseconds())/1000)
	return nil
}

func askDemo(ctx context.Context, c *client.Client, q demoQuestion) (demoAnswer, error) {
	result, err := c.Retrieve(ctx, &abi.RetrieveRequest{Query: q.Query,
		Scope: abi.MemoryScope{RunID: demo.RunID, PersonaID: q.PersonaID}, SessionID: q.SessionID, AsOf: q.AsOf})
	if err != nil {
		return demoAnswer{}, err
	}
	cost := "nothing"
	if t := result.Trace; t != nil && t.TokenCount != nil {
		cost = fmt.Sprintf("%d tokens, %.1f ms", *t.TokenCount, t.LatencyMS)
	}
	return demoAnswer{text: cli.Excerpt(result.FormattedContext, q.words), cost: cost}, nil
}

// competingClient asks one question repeatedly.
type competingClient struct {
	cancel        context.CancelFunc
	ended         chan struct{}
	asked, failed int
}

func keepAsking(ctx context.Context, c *client.Client, q demoQuestion) *competingClient {
	ctx, cancel := context.WithCancel(ctx)
	o := &competingClient{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		for ctx.Err() == nil {
			_, err := askDemo(ctx, c, q)
			if ctx.Err() != nil {
				return
			}
			o.asked++
			if err != nil {
				o.failed++
			}
		}
	}()
	return o
}

func (o *competingClient) stop() (asked, failed int) {
	o.cancel()
	<-o.ended
	return o.asked, o.failed
}

// demoNext prints what to try next.
func (a *commands) demoNext(slot *serving.ServedSlot) {
	server := strings.TrimPrefix(slot.URL, "http://")
	program := programName()
	a.Out.Print(`
Try next, in another terminal:

  %[4]s --server %[1]s retrieve \
    "Which seat should I book?" --run demo --user mara
  echo '[{"role":"user","content":"I drink rooibos now."},
    {"role":"assistant","content":"Noted."}]' |
    %[4]s --server %[1]s record - --run demo --user mara \
    --session today --start 2026-06-20T09:00:00+02:00
  %[4]s --server %[1]s mode read-only --reason "test session"
  curl -s %[2]s/v1/swap \
    -H 'Content-Type: application/json' -d '{"condition": "no_memory"}'
  curl -s %[2]s/v1/retrieve \
    -H 'Content-Type: application/json' \
    -d '{"session_id": "s1", "query": "tea?",
    "scope": {"run_id": "demo", "persona_id": "mara"}}'

API:  %[2]s/docs
Data: %[3]s
`, server, slot.URL, slot.Dir, program)
}

// programName is how a person at this terminal calls this program: memhost if that is on the PATH, otherwise its path
// as it can be typed in the current folder. A program that `go run` made is deleted when it ends, so the go run command
// is named instead.
func programName() string {
	const name = "memhost"
	self, err := os.Executable()
	if err != nil {
		return name
	}
	if found, err := exec.LookPath(name); err == nil && cli.SameFile(found, self) {
		return name
	}
	if strings.Contains(filepath.ToSlash(self), "/go-build") {
		return "go run ./cmd/memhost"
	}
	here, err := os.Getwd()
	if err != nil {
		return self
	}
	if near, err := filepath.Rel(here, self); err == nil && filepath.IsLocal(near) {
		return "." + string(filepath.Separator) + near
	}
	return self
}
