package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/doors/places"
	"github.com/memhost/memhost/internal/text/conversations"
	"github.com/memhost/memhost/internal/text/convert"
)

const recordHelp = `Records JSON Lines from files, or from standard input ("-"). A line is a MemoryEvent, or a conversation: a list of OpenAI-style messages, or an object
{"messages": [...]} that may also say run_id, user_id, session_id, start, scenario, context, attribute and metadata. Of a conversation a turn is a user
message with what follows, up to the next one. A turn's id is a hash of scope, session, place and content, and its time that of its messages
("timestamp" or "created_at"), or --start plus --step for each turn before it.

The same input again doubles nothing: a slot knows what it has. So after an interruption the same command goes on.

JSON over many lines is read, too: a list of events, of conversations, or of the messages of one. So are messages on a line each, which are one conversation.

All files are read through before anything is sent; a bad line stops the command, unless --keep-going leaves it out. Standard input is sent as it comes.

Conversations that a service exported or a program logged are recognised, in files, folders and zip archives. --from says which they are, where that is
necessary; openai-jsonl is never guessed:

  chatgpt       conversations.json of ChatGPT's data export, or the archive
  claude        conversations.json of claude.ai's data export, or the archive
  claude-code   logs of Claude Code, such as ~/.claude/projects
  codex         logs of Codex, such as ~/.codex/sessions
  openai-jsonl  a request of OpenAI's chat API on each line, with its answer
  gemini        Gemini in Google Takeout's "My Activity" (ordered as JSON), and conversations that AI Studio saved

A conversation is a session. What the person and the assistant said is recorded, of the branch that was shown last, at the time it was said. Tool calls and their output,
thoughts, instructions, sub-agents' conversations, messages of other sessions, what looks like a credential and what this version does not know are left out and counted; attachments
are named. A last turn without a whole answer waits until the answer is there. A line of a log that cannot be read costs that line. --dry-run counts and sends nothing.`

type recordFlags struct {
	cli.ScopeFlags
	session, format, start string
	from, zone             string
	step                   time.Duration
	keepGoing, leaveOut    bool
	dryRun                 bool
	retries                int
}

func (a *commands) recordCommand() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use: "record [FILE...|-]", SuggestFor: []string{"add"}, Short: "Record events or conversations",
		Long: recordHelp, Args: cobra.ArbitraryArgs,
		Example: "  memhost record chatgpt-export.zip --user ann --dry-run\n" +
			"  memhost record turns.jsonl\n  memhost record chat.jsonl --run r1 --user ann --session monday " +
			"--start 2026-03-02T09:00:00+01:00\n" +
			`  echo '[{"role":"user","content":"I moved to Lyon."}]' | memhost record - --session s1 --start 2026-03-02T09:00:00Z`,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.Begins = true
			if err := f.detect(a, args); err != nil {
				return err
			}
			if f.from != "" {
				return a.recordConversations(cmd.Context(), &f, args)
			}
			return a.record(cmd.Context(), &f, args)
		},
	}
	f.Add(cmd.Flags())
	fs := cmd.Flags()
	fs.StringVar(&f.session, "session", "", "session id, for lines that name none")
	fs.StringVar(&f.start, "start", "", "when a conversation began (RFC 3339), for messages without a time")
	fs.DurationVar(&f.step, "step", time.Minute, "the time from turn to turn, with --start")
	fs.StringVar(&f.format, "format", string(convert.FormatAuto), "auto, events or messages")
	fs.BoolVar(&f.keepGoing, "keep-going", false, "leave out bad lines, and go on however many events fail; the exit "+
		"code is 7 then")
	fs.BoolVar(&f.leaveOut, "skip-attachments", false, "leave out parts of messages that are no text")
	fs.StringVar(&f.from, "from", "", "read what a service exported or a program logged: "+conversations.Names())
	fs.StringVar(&f.zone, "zone", "", "with --from: the zone of times that name none: UTC, Europe/Paris or +01:00")
	fs.BoolVar(&f.dryRun, "dry-run", false, "with --from: count what would be recorded and left out, and send nothing")
	fs.IntVar(&f.retries, "retries", 5, "how often to try again what failed for now, or is uncertain")
	return cmd
}

// detect sets --from for exports and logs that it recognises.
func (f *recordFlags) detect(a *commands, args []string) error {
	if f.from != "" || f.format != string(convert.FormatAuto) {
		return nil
	}
	source, err := conversations.Detect(args)
	if err != nil || source == "" {
		return err
	}
	a.Out.Note("these are %s: read with --from %s", source.Title(), source)
	f.from = string(source)
	return nil
}

// options returns how the input is read.
func (f *recordFlags) options(a *commands) (convert.Options, error) {
	o := convert.Options{Format: convert.Format(f.format), SessionID: f.session, Step: f.step,
		SkipAttachments: f.leaveOut}
	if f.step <= 0 {
		return o, cli.UsageError("--step: want more than 0, found "+f.step.String(), "")
	}
	if f.retries < 0 {
		return o, cli.UsageError(fmt.Sprintf("--retries: want 0 or more, found %d", f.retries), "")
	}
	if f.start != "" {
		t, err := abi.ParseTime(f.start)
		if err != nil {
			return o, cli.UsageError("--start: "+abi.AsError(err).Message, "")
		}
		o.Start = t
	}
	if err := f.Complete(a.App); err != nil {
		return o, err
	}
	o.RunID, o.UserID, o.AgentID, o.CheckScope = f.Run, f.User, f.Agent, rejectPlaceholders
	return o, nil
}

// rejectPlaceholders rejects a line whose ids contain a placeholder of a hook: it is a template that was never filled
// in.
//
// Errors: invalid_argument.
func rejectPlaceholders(scope abi.MemoryScope) error {
	err := places.Check(scope)
	if err == nil {
		return nil
	}
	return abi.AsError(err).WithHint("a line's own ids are recorded as they are: leave the id out of the line, and give " +
		"--run or --user, where {project} and {person} are filled in")
}

func (a *commands) record(ctx context.Context, f *recordFlags, args []string) error {
	if f.dryRun {
		return cli.UsageError("--dry-run: only with --from", "")
	}
	if f.zone != "" {
		return cli.UsageError("--zone: only with --from", "other times name their zone")
	}
	o, err := f.options(a)
	if err != nil {
		return err
	}
	inputs, total, err := a.openInputs(ctx, args, o, f.keepGoing)
	if err != nil {
		return err
	}
	defer closeInputs(inputs)
	soft, hard, stop := a.InTwoStages(ctx)
	defer stop()
	d, err := a.Connect(soft)
	if err != nil {
		return err
	}
	defer d.Close()
	r := &Recorder{Slot: d, Batch: BatchSize(hard, d), Retries: f.retries, keepGoing: f.keepGoing, Sleep: a.Sleep,
		Out: a.Out, Progress: a.Out.Progress(total, "recording"), Sum: NewSummary()}
	began := a.Now()
	var stopped error
	for _, in := range inputs {
		if stopped = r.file(soft, hard, in, o, len(inputs) > 1); stopped != nil {
			break
		}
	}
	r.Progress.Finish()
	r.Sum.Seconds = a.Now().Sub(began).Seconds()
	r.Sum.Slot = d.Owner(hard)
	return a.reportRecord(hard, d, &r.Sum, stopped)
}

// reportRecord prints the summary and decides the exit code.
func (a *commands) reportRecord(ctx context.Context, d *cli.Door, sum *recordSummary, stopped error) error {
	code := sum.ExitCode(stopped)
	var problem *abi.Error
	if stopped != nil && !errors.Is(stopped, cli.ErrInterrupted) {
		problem = cli.AsAdapterError(stopped)
	}
	if a.Out.JSON {
		sum.Error, sum.Interrupted = problem, errors.Is(stopped, cli.ErrInterrupted)
		if err := a.Out.Object(sum); err != nil {
			return err
		}
	} else {
		a.Out.Print("%s\n", sum.Text())
		sum.Details(a.Out)
		if stopped == nil && sum.isEmpty() {
			a.Out.Note("  there was nothing to record: no event was read")
		}
		if sum.NotRetained > 0 {
			d.WarnIfNothingKept(ctx, a.Out)
		}
		if errors.Is(stopped, cli.ErrInterrupted) {
			a.Out.Note("interrupted after %s %d; the same command goes on from there", sum.unit(), sum.LastLine)
		}
		if problem != nil {
			e := *problem
			if sum.LastLine > 0 && e.Retryable {
				e.Hint = strings.TrimPrefix(e.Hint+"; the same command goes on from there", "; ")
			}
			a.Out.Fail(&e)
		}
	}
	if code != cli.ExitOK {
		return cli.Done(code)
	}
	return nil
}

// input is one input of record.
type input struct {
	name   string
	stream io.Reader
	file   *os.File // nil for a stream that can be read only once
}

// openInputs opens every input and checks files. total is the number of their events, -1 if unknown.
//
// Errors: those of check; ErrInterrupted, after a line about what was read.
func (a *commands) openInputs(ctx context.Context, args []string, o convert.Options, keepGoing bool) (inputs []*input, total int, err error) {
	ctx, stop := a.UntilInterrupted(ctx)
	defer stop()
	if len(args) == 0 {
		args = []string{""}
	}
	read := 0 // events of all files
	defer func() {
		if err != nil {
			closeInputs(inputs)
		}
	}()
	for _, arg := range args {
		in, err := a.openInput(arg)
		if err != nil {
			return inputs, 0, err
		}
		inputs = append(inputs, in)
		events := -1
		if in.file != nil {
			events, err = in.check(ctx, o, keepGoing)
			if read += events; errors.Is(err, cli.ErrInterrupted) {
				a.Out.Note("read until then: %s in %s; nothing was sent", cli.Count(read, "event"), cli.Count(len(inputs), "file"))
			}
			if err != nil {
				return inputs, 0, err
			}
		}
		if total >= 0 && events >= 0 {
			total += events
		} else {
			total = -1
		}
	}
	return inputs, total, nil
}

func closeInputs(inputs []*input) {
	for _, in := range inputs {
		in.close()
	}
}

// file records one input. named means that messages name it, because there are several.
func (r *Recorder) file(soft, hard context.Context, in *input, o convert.Options, named bool) error {
	stream := in.stream
	if in.file != nil {
		stream = convert.UTF8(in.file)
	}
	reader, err := convert.NewReader(stream, o)
	if err != nil {
		return in.unreadable(err)
	}
	r.Sum.LastLine = 0
	if named {
		r.name = in.name
	}
	return r.Run(soft, hard, reader)
}

// unreadable adds the input's name to an error about it as a whole.
func (in *input) unreadable(err error) error {
	e := *abi.AsError(err)
	e.Message = in.name + ": " + e.Message
	return &e
}

func (a *commands) openInput(name string) (*input, error) {
	if name == "" && cli.IsTerminal(a.Stdin) {
		return nil, cli.UsageError("record: want a file, or - for standard input",
			"`memhost record --help` shows what a line looks like")
	}
	if name == "" || name == "-" {
		return &input{name: "standard input", stream: a.Stdin}, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, cli.FileError(name, err)
	}
	in := &input{name: name, stream: f}
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, cli.FileError(name, err)
	case info.IsDir():
		return nil, cli.UsageError(name+": is a folder in which no conversations were recognised",
			"name the files of JSON Lines in it; or say with --from whose export or logs it has: "+conversations.Names())
	case info.Mode().IsRegular():
		in.file = f
	}
	return in, nil
}

func (in *input) close() {
	if c, ok := in.stream.(io.Closer); ok && in.name != "standard input" {
		_ = c.Close()
	}
}

// skipBadLines ends the hint about bad lines, for commands that can leave them out.
const skipBadLines = ", or leave bad lines out with --keep-going"

// maxBadLines bounds the bad lines that one message lists.
const maxBadLines = 10

// check reads a whole file before anything is sent, counts its events and rewinds it.
//
// Errors: invalid_argument with the bad lines, unless they may be skipped; ErrInterrupted.
func (in *input) check(ctx context.Context, o convert.Options, keepGoing bool) (events int, err error) {
	r, err := convert.NewReader(convert.UTF8(in.file), o)
	if err != nil {
		return 0, in.unreadable(err)
	}
	var bad, hints []string // hints of the lines in bad, each once
	more := 0
	for {
		if ctx.Err() != nil {
			return events, cli.ErrInterrupted
		}
		_, err := r.Next()
		if err == io.EOF {
			break
		}
		var line *convert.LineError
		var whole *abi.Error
		switch {
		case err == nil:
			events++
		case !errors.As(err, &line) && errors.As(err, &whole):
			return 0, in.unreadable(err)
		case !errors.As(err, &line):
			return 0, cli.FileError(in.name, err)
		case len(bad) == maxBadLines:
			more++
		default:
			bad = append(bad, in.name+": "+line.Error())
			if hint := line.Err.Hint; hint != "" && !slices.Contains(hints, hint) {
				hints = append(hints, hint)
			}
		}
	}
	if len(bad) > 0 && !keepGoing {
		if more > 0 {
			bad = append(bad, "... and "+cli.Count(more, "more bad line"))
		}
		hints = append(hints, "nothing was sent; mend the file"+skipBadLines)
		return 0, cli.UsageError(strings.Join(bad, "\n"), strings.Join(hints, "\n        "))
	}
	if _, err := in.file.Seek(0, io.SeekStart); err != nil {
		return 0, cli.FileError(in.name, err)
	}
	return events, nil
}
