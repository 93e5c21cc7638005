package evalcmd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/model"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/report"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/score"
	"github.com/memhost/memhost/internal/cli"
)

// evaluatedRun is a run and its pack.
type evaluatedRun struct {
	folder string
	run    *rundir.Run
	pack   *pack.Pack
}

// openRun opens a run and its pack. packPath is the pack's present path; empty means the path in run.json.
func openRun(folder, packPath string) (*evaluatedRun, error) {
	r, err := rundir.Open(folder)
	if err != nil {
		return nil, err
	}
	if packPath == "" {
		packPath = r.PackPath
	}
	p, err := pack.Open(packPath)
	if err != nil {
		return nil, err
	}
	if p.Manifest.ContentSHA256 != r.Pack.ContentSHA256 {
		_ = p.Close()
		return nil, abi.NewError(abi.CodeConflict,
			fmt.Sprintf("%s has the content %.12s, the run was made with %.12s", packPath, p.Manifest.ContentSHA256,
				r.Pack.ContentSHA256)).
			WithHint("--pack names the one that it was made with")
	}
	return &evaluatedRun{folder, r, p}, nil
}

// reportGarbage is the garbage collector's target, in percent, while reports are written: they keep the answers to all
// probes in memory.
const reportGarbage = 50

// report scores a run and writes its reports.
func (e *evaluatedRun) report(withoutText bool) (*score.Metrics, error) {
	m, t, err := score.Score(e.folder, e.pack)
	if err != nil {
		return nil, err
	}
	if err := score.Write(e.folder, m, t); err != nil {
		return nil, err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(reportGarbage))
	in := report.Input{Folder: e.folder, Run: e.run, Metrics: m, Timings: t, Pack: e.pack, WithoutText: withoutText}
	if in.Judge, err = e.judged(); err != nil {
		return nil, err
	}
	if in.Grades, err = e.grades(); err != nil {
		return nil, err
	}
	for name, write := range map[string]func(io.Writer, report.Input) error{report.HTMLFile: report.HTML,
		reportMarkdown: report.Markdown, report.LaTeXFile: report.LaTeX} {
		if err := writeReport(filepath.Join(e.folder, name), in, write); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// reportMarkdown is the report in a run's folder that terminals can show; report.HTMLFile is the one for browsers.
const reportMarkdown = "report.md"

func writeReport(path string, in report.Input, write func(io.Writer, report.Input) error) error {
	f, err := os.Create(path)
	if err != nil {
		return cli.FileError(path, err)
	}
	b := bufio.NewWriterSize(f, 1<<20)
	err = write(b, in)
	if err == nil {
		err = b.Flush()
	}
	if closed := f.Close(); err == nil && closed != nil {
		err = cli.FileError(path, closed)
	}
	return err
}

// judged returns the judge's result; nil if no judge was asked.
func (e *evaluatedRun) judged() (*model.Verdicts, error) {
	list, err := model.ReadJudgements(filepath.Join(e.folder, model.JudgementsFile))
	if err != nil || len(list) == 0 {
		return nil, err
	}
	labels, err := model.ReadLabels(e.folder)
	if err != nil {
		return nil, err
	}
	out, err := score.Excluded(e.folder, e.pack)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(j model.Judgement) bool { return out[j.ProbeID] })
	return model.Conclude(list, labels, e.run.Lab), nil
}

// grades returns the judge's grades of the run's conversations; nil if none were graded.
func (e *evaluatedRun) grades() (*model.Grades, error) {
	list, err := model.ReadGrades(filepath.Join(e.folder, model.GradesFile))
	if err != nil {
		return nil, err
	}
	labels, err := model.ReadGradeLabels(e.folder)
	if err != nil {
		return nil, err
	}
	out, err := score.Excluded(e.folder, e.pack)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(g model.Grade) bool { return out[g.ProbeID] })
	return model.ConcludeGrades(list, labels, e.run.Lab), nil
}

func (a *commands) evalScoreCommand() *cobra.Command {
	var packPath, submission, audit string
	cmd := &cobra.Command{Use: "score RUN", Short: "Compute the metrics of a run again, without asking anybody",
		Args: cobra.MaximumNArgs(1),
		Long: `Writes metrics.json (only what the clock cannot change: the same bytes again), timings.json and metrics.csv.

With --submission FILE and --pack PACK it scores a foreign ranking instead: lines of {"probe_id": ..., "event_ids": [best, ...]}. Only the retrieval columns exist.`,
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case submission != "" && packPath != "" && len(args) == 0:
				return a.scoreSubmission(submission, packPath)
			case submission != "":
				return cli.UsageError("--submission: wants --pack, and no run", "")
			case len(args) == 0:
				return cli.UsageError("name a run", "or --submission FILE --pack PACK")
			}
			e, err := openRun(args[0], packPath)
			if err != nil {
				return err
			}
			defer e.pack.Close()
			if audit != "" {
				if err := score.TakeAudit(e.folder, e.pack, audit); err != nil {
					return err
				}
			}
			m, t, err := score.Score(e.folder, e.pack)
			if err != nil {
				return err
			}
			if err := score.Write(e.folder, m, t); err != nil {
				return err
			}
			return a.evalVerdicts(e, m)
		}}
	cmd.Flags().StringVar(&audit, "audit", "", "leave out the probes with wrong keys that memhost eval audit found, "+
		"from now on")
	cmd.Flags().StringVar(&packPath, "pack", "", "where the pack is now")
	cmd.Flags().StringVar(&submission, "submission", "", "a foreign ranking")
	return cmd
}

// evalVerdicts prints the primary comparison, and the headline figures of every column.
func (a *commands) evalVerdicts(e *evaluatedRun, m *score.Metrics) error {
	if a.Out.JSON {
		return a.Out.Object(m)
	}
	for _, note := range m.Notes {
		a.Out.Print("%s\n", strings.ToUpper(note))
	}
	in := report.Input{Folder: e.folder, Run: e.run, Metrics: m, Timings: &score.Timings{}, Pack: e.pack,
		WithoutText: true}
	return report.Terminal(a.Out.Stdout, in, a.Out.Unicode)
}

func (a *commands) evalReportCommand() *cobra.Command {
	var packPath string
	var open, withoutText bool
	cmd := &cobra.Command{Use: "report RUN", Short: "Write the report of a run", Args: cobra.ExactArgs(1),
		Long: "Scores the run, and writes report.html (one file, no outside assets), report.md, report.tex (every table, for a paper), metrics.json, " +
			"timings.json and metrics.csv into its folder.",
		RunE: func(_ *cobra.Command, args []string) error {
			e, err := openRun(args[0], packPath)
			if err != nil {
				return err
			}
			defer e.pack.Close()
			m, err := e.report(withoutText)
			if err != nil {
				return err
			}
			if err := a.evalVerdicts(e, m); err != nil {
				return err
			}
			path := filepath.Join(e.folder, report.HTMLFile)
			a.Out.Note("%s", path)
			if open {
				a.openFile(path)
			}
			return nil
		}}
	f := cmd.Flags()
	f.BoolVar(&open, "open", false, "open it in the browser")
	f.BoolVar(&withoutText, "without-text", false,
		"leave out what people and memories said: for a report that may go where the data may not")
	f.StringVar(&packPath, "pack", "", "where the pack is now")
	return cmd
}

// openFile opens a file with the desktop's default program, if there is a desktop.
func (a *commands) openFile(path string) {
	name, ok := map[string]string{"darwin": "open", "windows": "explorer", "linux": "xdg-open"}[runtime.GOOS]
	if runtime.GOOS == "linux" && a.Getenv("DISPLAY") == "" && a.Getenv("WAYLAND_DISPLAY") == "" {
		ok = false
	}
	if !ok || exec.Command(name, path).Start() != nil {
		a.Out.Note("open it in a browser: %s", path)
	}
}

func (a *commands) evalShowCommand() *cobra.Command {
	var packPath string
	cmd := &cobra.Command{Use: "show RUN PROBE", Short: "One probe, with what every memory gave for it",
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			e, err := openRun(args[0], packPath)
			if err != nil {
				return err
			}
			defer e.pack.Close()
			told, err := report.Probe(report.Input{Folder: e.folder, Run: e.run, Pack: e.pack}, args[1])
			if err != nil {
				return err
			}
			if a.Out.JSON {
				return a.Out.Object(told)
			}
			a.Out.Print("%s\n", told.Probe.Query)
			text, err := json.MarshalIndent(told.Probe.Gold, "  ", "  ")
			if err != nil {
				return err
			}
			a.Out.Print("  %s\n", string(text))
			for _, answer := range told.Answers {
				a.Out.Print("\n%s/%d, %d tokens at most, %d items\n", answer.Label, answer.Replicate, answer.Budget,
					answer.Of)
				if answer.Error != nil {
					a.Out.Print("  %s %s: %s\n", a.Out.Broken(), answer.Error.Code, answer.Error.Message)
				}
				context, err := rundir.Contexts(e.folder).Text(answer.Context)
				if err != nil {
					return err
				}
				a.Out.Print("%s\n", string(context))
			}
			return nil
		}}
	cmd.Flags().StringVar(&packPath, "pack", "", "where the pack is now")
	return cmd
}

func (a *commands) evalJudgeCommand() *cobra.Command {
	var packPath string
	cmd := &cobra.Command{Use: "judge RUN", Short: "Have a judge decide which answers of the agent are right",
		Args: cobra.ExactArgs(1),
		Long: "Asks the lab's judge about every answer, and about made answers whose truth is known, so that its own " +
			"errors can be taken out. It goes on where it was ended.",
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := openRun(args[0], packPath)
			if err != nil {
				return err
			}
			defer e.pack.Close()
			return a.evalJudge(cmd.Context(), e)
		}}
	cmd.Flags().StringVar(&packPath, "pack", "", "where the pack is now")
	return cmd
}

func (a *commands) evalJudge(ctx context.Context, e *evaluatedRun) error {
	ctx, stop := a.UntilInterrupted(ctx)
	defer stop()
	talked, err := model.HasConversations(e.folder, e.run)
	if err != nil {
		return err
	}
	if talked {
		if err := a.judging(ctx, e, "grading", model.RunGrades); err != nil {
			return err
		}
		g, err := e.grades()
		if err != nil {
			return err
		}
		if a.Out.JSON && e.run.Lab.Agent == nil {
			return a.Out.Object(g)
		}
		a.showGrades(g)
	}
	if talked && e.run.Lab.Agent == nil {
		return nil
	}
	if err := a.judging(ctx, e, "judging", model.RunJudge); err != nil {
		return err
	}
	v, err := e.judged()
	if err != nil {
		return err
	}
	return a.showJudged(v)
}

// judging has a judge work through a run, with progress.
func (a *commands) judging(ctx context.Context, e *evaluatedRun, what string, work func(context.Context, string, *rundir.Run,
	*pack.Pack, func(string) string, func(done, total int)) error) error {
	var bar *cli.Progress
	last := 0
	err := work(ctx, e.folder, e.run, e.pack, a.Getenv, func(done, total int) {
		if bar == nil {
			bar = a.Out.Progress(total, what)
		}
		bar.Add(done - last)
		last = done
	})
	bar.Finish()
	if a.Interrupted {
		return cli.ErrInterrupted
	}
	return err
}

// showGrades prints the judge's grades of conversations, and their agreement with people's.
func (a *commands) showGrades(g *model.Grades) {
	if g == nil || a.Out.JSON {
		return
	}
	if g.Stub {
		a.Out.Print("A STUB JUDGED INSTEAD OF A MODEL\n")
	}
	for _, p := range g.Providers {
		if p.Mean == nil {
			a.Out.Print("%-24s %6d  no grade for any of %d conversations\n", p.Label, p.Budget, p.Missing)
			continue
		}
		a.Out.Print("%-24s %6d  iqi_judge %.2f [%.2f, %.2f] of %d, %d conversations missing\n", p.Label, p.Budget, p.Mean.Mean,
			p.Mean.Low, p.Mean.High, model.MaxGrade, p.Missing)
	}
	for _, x := range g.Agreement {
		kappa := "not known"
		if x.Kappa != nil {
			kappa = fmt.Sprintf("%.2f", *x.Kappa)
		}
		a.Out.Print("%s and %s graded the same %d conversations, weighted kappa %s\n", x.A, x.B, x.Items, kappa)
	}
}

// showJudged prints the judge's result, and its agreement with people.
func (a *commands) showJudged(v *model.Verdicts) error {
	if a.Out.JSON {
		return a.Out.Object(v)
	}
	if v.Stub {
		a.Out.Print("A STUB JUDGED INSTEAD OF A MODEL\n")
	}
	for _, p := range v.Providers {
		if p.Answers == 0 {
			a.Out.Print("%-24s %6d  no verdict on any of %d answers\n", p.Label, p.Budget, p.Missing)
			continue
		}
		if p.Missing > 0 {
			a.Out.Print("%-24s %6d  no verdict on %d of %d answers\n", p.Label, p.Budget, p.Missing,
				p.Answers+p.Missing)
		}
		if !p.Rate.Identifiable {
			a.Out.Print("%-24s %6d  judged %.3f, not identifiable: false accepts %.2f, false rejects %.2f\n", p.Label,
				p.Budget, p.Rate.Judged, p.Rate.FalseAccepts, p.Rate.FalseRejects)
			continue
		}
		a.Out.Print("%-24s %6d  judged %.3f, corrected on %s %.3f [%.3f, %.3f]\n", p.Label, p.Budget, p.Rate.Judged,
			v.CorrectedOn, p.Rate.Rate, p.Rate.Low, p.Rate.High)
	}
	for _, g := range v.Agreement {
		kappa := "not known"
		if g.Kappa != nil {
			kappa = fmt.Sprintf("%.2f", *g.Kappa)
		}
		a.Out.Print("%s and %s agree on %d of %d answers, kappa %s\n", g.A, g.B, g.Agreed,
			g.Items, kappa)
	}
	return nil
}
