package report

import (
	"fmt"
	"io"
	"strings"
)

// Markdown writes verdicts and tables as text.
func Markdown(w io.Writer, in Input) error {
	v := viewOf(in)
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", plain(v.Name))
	for _, a := range v.Alarms {
		fmt.Fprintf(&b, "**%s**\n\n", strings.ToUpper(plain(a)))
	}
	for _, f := range v.Facts {
		fmt.Fprintf(&b, "- %s: %s\n", plain(f.Name), plain(f.Value))
	}
	b.WriteString("\n## Verdicts\n\n")
	for _, s := range v.Primary {
		fmt.Fprintf(&b, "- %s %s: %s. %s\n", marks[s.Outcome], plain(s.Label), plain(s.Verdict), plain(s.Detail))
	}
	for _, s := range v.Verdicts {
		fmt.Fprintf(&b, "- %s %s: %s\n", marks[s.Outcome], plain(s.Name), plain(s.Detail))
	}
	b.WriteString("\n## Figures\n")
	for _, t := range v.Tables {
		writeTable(&b, t)
	}
	b.WriteString("\n## Cost\n")
	writeTable(&b, v.Cost)
	if len(v.Latency.Rows) > 0 {
		writeTable(&b, v.Latency)
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

// plain keeps a text from being Markdown or HTML.
func plain(text string) string {
	return strings.NewReplacer("\n", " ", "|", "\\|", "<", "&lt;", "`", "'", "[", "\\[", "]", "\\]", "*", "\\*", "_", "\\_").Replace(text)
}
