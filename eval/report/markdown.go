package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Markdown writes verdicts and tables as Markdown.
func Markdown(w io.Writer, in Input) error {
	v := viewOf(in)
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", plain(v.Name))
	for _, a := range v.Alarms {
		fmt.Fprintf(&b, "**%s**\n\n", strings.ToUpper(plain(a)))
	}
	for _, s := range v.Summary {
		fmt.Fprintf(&b, "%s\n\n", plain(s))
	}
	for _, f := range v.Facts {
		fmt.Fprintf(&b, "- %s: %s\n", plain(f.Name), plain(f.Value))
	}
	b.WriteString("\n## Verdicts\n\n")
	for _, s := range append(v.First, v.Primary...) {
		fmt.Fprintf(&b, "- %s %s: %s. %s\n", marks[s.Outcome], plain(s.Label), plain(s.Verdict), plain(s.Detail))
	}
	for _, s := range v.Verdicts {
		fmt.Fprintf(&b, "- %s %s: %s\n", marks[s.Outcome], plain(s.Name), plain(s.Detail))
	}
	if len(v.Behaved) > 0 {
		writeBehaviour(&b, v)
	}
	b.WriteString("\n## Figures\n")
	for _, t := range v.Tables {
		writeTable(&b, t)
	}
	if len(v.Labels) > 0 {
		b.WriteString("\n## By label\n")
	}
	for _, t := range v.Labels {
		writeTable(&b, t)
	}
	for _, t := range v.More {
		writeTable(&b, t)
	}
	for _, t := range v.Audit {
		writeTable(&b, t)
	}
	if len(v.Behaved) == 0 {
		writeBehaviour(&b, v)
	}
	b.WriteString("\n## Cost\n")
	writeTable(&b, v.Cost)
	if len(v.Models.Rows) > 0 {
		writeTable(&b, v.Models)
	}
	if len(v.Latency.Rows) > 0 {
		writeTable(&b, v.Latency)
	}
	if len(v.Fresh.Rows) > 0 {
		writeTable(&b, v.Fresh)
	}
	b.WriteString("\n## What was not measured\n\n")
	for _, f := range v.Missing {
		fmt.Fprintf(&b, "- %s: %s\n", plain(f.Name), plain(f.Value))
	}
	b.WriteString("\n## What served\n")
	writeTable(&b, v.Modules)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeBehaviour writes what agents did, and what a judge thinks of their answers.
func writeBehaviour(b *strings.Builder, v *view) {
	b.WriteString("\n## Behaviour\n")
	for _, t := range v.Behaved {
		writeTable(b, t)
	}
	if len(v.Judged.Rows) > 0 {
		for _, t := range append([]table{v.Judged}, v.ByJudge...) {
			writeTable(b, t)
		}
	} else if len(v.Behaved) == 0 {
		b.WriteString("\nBehaviour was not measured.\n")
	}
}

var marks = map[string]string{good: "✓", bad: "✗", open: "–"}

func writeTable(b *strings.Builder, t table) {
	fmt.Fprintf(b, "\n### %s\n\n", plain(t.Title))
	if t.Note != "" {
		fmt.Fprintf(b, "%s\n\n", plain(t.Note))
	}
	for i, h := range t.Head {
		if i == 0 {
			b.WriteString("|")
		}
		fmt.Fprintf(b, " %s |", plain(h))
	}
	b.WriteString("\n|" + strings.Repeat("---|", len(t.Head)) + "\n")
	for _, r := range t.Rows {
		fmt.Fprintf(b, "| %s |", plain(r.Name))
		for _, c := range r.Cells {
			text := plain(c.Text)
			if c.Note != "" {
				text += " (" + plain(c.Note) + ")"
			}
			fmt.Fprintf(b, " %s |", text)
		}
		b.WriteString("\n")
	}
}

// plain escapes a text for Markdown and HTML.
func plain(text string) string {
	return strings.NewReplacer("\n", " ", "|", "\\|", "<", "&lt;", "`", "'", "[", "\\[", "]", "\\]", "*", "\\*", "_",
		"\\_").Replace(text)
}

// Terminal writes verdicts and the headline figures for a terminal.
func Terminal(w io.Writer, in Input, unicode bool) error {
	v := viewOf(in)
	sign := map[string]string{good: "ok", bad: "FAIL", open: "-"}
	if unicode {
		sign = marks
	}
	var b strings.Builder
	for _, t := range append(v.Behaved[:min(len(v.Behaved), len(in.Metrics.Keys.Budgets))], v.Tables...) {
		fmt.Fprintf(&b, "\n%s\n", printable(t.Title))
		tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tw, "  "+strings.Join(t.Head, "\t"))
		for _, r := range t.Rows {
			fmt.Fprintf(tw, "  %s", printable(r.Name))
			for _, c := range r.Cells {
				fmt.Fprintf(tw, "\t%s", printable(c.Text))
			}
			fmt.Fprintln(tw)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	b.WriteString("\n")
	for _, s := range append(v.First, v.Primary...) {
		fmt.Fprintf(&b, "%s %s: %s; %s\n", sign[s.Outcome], printable(s.Label), s.Verdict, s.Detail)
	}
	for _, s := range v.Verdicts {
		if s.Outcome != good {
			fmt.Fprintf(&b, "%s %s: %s\n", sign[s.Outcome], printable(s.Name), printable(s.Detail))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// printable removes control characters, which may come from a data set or a memory, from terminal output.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '\ufffd'
		}
		return r
	}, text)
}
