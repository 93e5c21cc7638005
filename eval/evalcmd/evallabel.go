package evalcmd

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/memhost/memhost/eval/model"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/internal/cli"
)

const evalLabelHelp = `A judge that was tried on made answers only may still be wrong about real ones. This writes a sheet of real answers for people:

  memhost eval label runs/first --out sheet.csv
  memhost eval label runs/first --in sheet.csv --by ann

The sheet is blind: it tells neither memory nor budget nor model. Write yes or no into its column right; leave open what you cannot decide. With 100 labels
or more, of right and wrong answers, the judge's rates are corrected on them instead of made items. A second person fills in a copy under another --by.`

func (a *commands) evalLabelCommand() *cobra.Command {
	var packPath, out, in, by string
	var most int
	var grades bool
	cmd := &cobra.Command{Use: "label RUN --out SHEET.csv | --in SHEET.csv",
		Short: "Have people label answers, to correct the judge on real ones", Long: evalLabelHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if (out == "") == (in == "") {
				return cli.UsageError("want --out, for an empty sheet, or --in, for a filled one", "")
			}
			e, err := openRun(args[0], packPath)
			if err != nil {
				return err
			}
			defer e.pack.Close()
			if out != "" {
				return a.writeLabelSheet(e, out, most, grades)
			}
			return a.takeLabelSheet(e, in, by, grades)
		}}
	f := cmd.Flags()
	f.StringVarP(&out, "out", "o", "", "write a sheet, which must be new")
	f.StringVar(&in, "in", "", "take in a filled sheet")
	f.StringVar(&by, "by", "person", "who filled it in")
	f.BoolVar(&grades, "grades", false, "conversations, to grade from 0 to 4, instead of answers")
	f.IntVar(&most, "most", 200, "how many answers the sheet has at most")
	f.StringVar(&packPath, "pack", "", "where the pack is now")
	return cmd
}

func (a *commands) writeLabelSheet(e *evaluatedRun, path string, most int, grades bool) error {
	n := 0
	err := newFile(path, func(w io.Writer) (err error) {
		if grades {
			n, err = model.GradeSheet(w, e.folder, e.run, e.pack, most)
			return err
		}
		n, err = model.Sheet(w, e.folder, e.run, e.pack, most)
		return err
	})
	if err != nil {
		return err
	}
	if grades {
		a.Out.Print("%s: %s to grade\n", path, cli.Count(n, "conversation"))
		return nil
	}
	a.Out.Print("%s: %s to label\n", path, cli.Count(n, "answer"))
	if n < 100 {
		a.Out.Note("fewer than 100: too few to correct a judge by; the agreement is shown all the same")
	}
	return nil
}

func (a *commands) takeLabelSheet(e *evaluatedRun, path, by string, grades bool) error {
	f, err := os.Open(path)
	if err != nil {
		return cli.FileError(path, err)
	}
	defer f.Close()
	if by == "judge" || by == "" {
		return cli.UsageError("--by: want a person's name", "")
	}
	if grades {
		return a.takeGrades(e, f, by)
	}
	labelled, empty, err := model.TakeLabels(f, e.folder, e.run, e.pack, by)
	if err != nil {
		return err
	}
	a.Out.Print("%s labelled by %s, %d left open\n", cli.Count(labelled, "answer"), by, empty)
	v, err := e.judged()
	if err != nil {
		return err
	}
	if v == nil {
		a.Out.Note("no judge was asked yet: `memhost eval judge %s`", e.folder)
		return nil
	}
	return a.showJudged(v)
}

// takeGrades imports a completed sheet of conversations.
func (a *commands) takeGrades(e *evaluatedRun, sheet io.Reader, by string) error {
	taken, empty, err := model.TakeGradeLabels(sheet, e.folder, e.run, e.pack, by)
	if err != nil {
		return err
	}
	a.Out.Print("%s graded by %s, %d left open\n", cli.Count(taken, "conversation"), by, empty)
	g, err := e.grades()
	if err != nil {
		return err
	}
	a.showGrades(g)
	return nil
}

// newFile writes a file that must not exist yet; after a failure it does not exist.
func newFile(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return cli.FileError(path, err)
	}
	b := bufio.NewWriter(f)
	err = write(b)
	if err == nil {
		err = b.Flush()
	}
	closed := f.Close()
	if err == nil {
		err = closed
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}

const evalAuditHelp = `Published data sets have wrong keys. This writes a sheet of a pack's probes with their answers and evidence for a person:

  memhost eval audit locomo.pack --out sheet.csv --sample 100
  memhost eval audit locomo.pack --in sheet.csv --by ann -o audit.json
  memhost eval score runs/first --audit audit.json

Write why a key is wrong into its column wrong, and nothing where it is right. Probes that are marked count for no memory; the report shows the figures before
and after. The pack itself stays as it is.`

func (a *commands) evalAuditCommand() *cobra.Command {
	var out, in, by string
	var sample int
	cmd := &cobra.Command{Use: "audit PACK --out SHEET.csv | --in SHEET.csv -o AUDIT.json",
		Short: "Have a person mark wrong gold keys", Long: evalAuditHelp, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if out == "" {
				return cli.UsageError("--out: required", "a sheet to fill in; or, with --in, the audit that it comes to")
			}
			p, err := pack.Open(args[0])
			if err != nil {
				return err
			}
			defer p.Close()
			if in == "" {
				return a.writeAuditSheet(p, out, sample)
			}
			return a.takeAuditSheet(p, in, by, out)
		}}
	f := cmd.Flags()
	f.StringVarP(&out, "out", "o", "", "what is written: the sheet, or the audit; it must be new")
	f.StringVar(&in, "in", "", "a filled sheet")
	f.StringVar(&by, "by", "person", "who filled it in")
	f.IntVar(&sample, "sample", 0, "so many probes, spread over the pack (default: all)")
	return cmd
}

func (a *commands) writeAuditSheet(p *pack.Pack, path string, sample int) error {
	n := 0
	err := newFile(path, func(w io.Writer) (err error) {
		n, err = pack.AuditSheet(w, p, sample)
		return err
	})
	if err == nil {
		a.Out.Print("%s: %s to check\n", path, cli.Count(n, "probe"))
	}
	return err
}

func (a *commands) takeAuditSheet(p *pack.Pack, in, by, out string) error {
	f, err := os.Open(in)
	if err != nil {
		return cli.FileError(in, err)
	}
	defer f.Close()
	audit, err := pack.TakeAudit(f, p, by)
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		return cli.UsageError(fmt.Sprintf("%s: %v", in, err), "")
	}
	if err != nil {
		return err
	}
	if err := newFile(out, audit.Write); err != nil {
		return err
	}
	a.Out.Print("%s: %d of %d checked probes have a wrong key; `memhost eval score RUN --audit %s` leaves them out\n",
		out, len(audit.Excluded), audit.Checked, out)
	return nil
}
