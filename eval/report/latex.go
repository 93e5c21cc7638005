package report

import (
	"fmt"
	"io"
	"strings"
)

// LaTeXFile is the name of the file with the tables in a run's folder.
const LaTeXFile = "report.tex"

// LaTeX writes every table of the report for a paper that uses the packages booktabs and longtable. Texts of memories
// are escaped.
func LaTeX(w io.Writer, in Input) error {
	v := viewOf(in)
	var b strings.Builder
	fmt.Fprintf(&b, "%% %s: needs \\usepackage{booktabs,longtable}\n", strings.ReplaceAll(v.Name, "\n", " "))
	for _, t := range v.all() {
		if len(t.Rows) > 0 {
			latexTable(&b, t)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// all returns the tables in the report's order.
func (v *view) all() []table {
	var list []table
	for _, part := range [][]table{v.Behaved, v.Tables, v.Labels, v.More, v.Audit, {v.Judged}, v.ByJudge,
		{v.Cost, v.Models, v.Latency, v.Fresh, v.Modules}} {
		list = append(list, part...)
	}
	return list
}

func latexTable(b *strings.Builder, t table) {
	fmt.Fprintf(b, "\n\\begin{longtable}{%s}\n\\caption{%s}\\\\\n\\toprule\n", strings.Repeat("l", len(t.Head)), tex(t.Title))
	for i, h := range t.Head {
		if i > 0 {
			b.WriteString(" & ")
		}
		b.WriteString(tex(h))
	}
	b.WriteString(" \\\\\n\\midrule\n\\endhead\n")
	for _, r := range t.Rows {
		b.WriteString(tex(r.Name))
		for _, c := range r.Cells {
			b.WriteString(" & " + tex(c.Text))
			if c.Note != "" {
				b.WriteString(" {\\footnotesize (" + tex(c.Note) + ")}")
			}
		}
		b.WriteString(" \\\\\n")
	}
	b.WriteString("\\bottomrule\n\\end{longtable}\n")
	if t.Note != "" {
		fmt.Fprintf(b, "{\\footnotesize %s\\par}\n", tex(t.Note))
	}
}

var texEscapes = strings.NewReplacer(`\`, `\textbackslash{}`, "{", `\{`, "}", `\}`, "$", `\$`, "&", `\&`, "#", `\#`, "_", `\_`,
	"%", `\%`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "\n", " ", "\r", " ", "<", `\textless{}`, ">", `\textgreater{}`,
	"–", "--", "≥", `$\geq$`, "≤", `$\leq$`)

// tex escapes a text for LaTeX.
func tex(text string) string { return texEscapes.Replace(text) }
