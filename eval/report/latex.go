package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// LaTeXFile is the name of the file with the tables in a run's folder.
const LaTeXFile = "report.tex"

// LaTeX writes every table of the report for a paper that uses the packages array, booktabs and longtable. Tables are as
// wide as the text. Texts of memories are escaped.
func LaTeX(w io.Writer, in Input) error {
	v := viewOf(in)
	var b strings.Builder
	fmt.Fprintf(&b, "%% %s: needs \\usepackage{array,booktabs,longtable}\n", strings.ReplaceAll(v.Name, "\n", " "))
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

// nameShare is the share of the text's width that the first column has; the others share the rest.
const nameShare = .2

// longestNote is the length in bytes up to which a note is printed in its cell. Longer ones follow the table, each once.
const longestNote = 30

func latexTable(b *strings.Builder, t table) {
	column := func(share float64) string {
		return fmt.Sprintf(`>{\raggedright\arraybackslash}p{\dimexpr %.3f\linewidth-2\tabcolsep}`, share)
	}
	columns := column(nameShare) + strings.Repeat(column((1-nameShare)/float64(max(1, len(t.Head)-1))), len(t.Head)-1)
	fmt.Fprintf(b, "\n\\begingroup\\footnotesize\\setlength{\\tabcolsep}{2pt}\n\\begin{longtable}{%s}\n\\caption{%s}\\\\\n\\toprule\n",
		columns, tex(t.Title))
	for i, h := range t.Head {
		if i > 0 {
			b.WriteString(" & ")
		}
		b.WriteString(tex(h))
	}
	b.WriteString(" \\\\\n\\midrule\n\\endhead\n")
	var notes []string
	for _, r := range t.Rows {
		b.WriteString(tex(r.Name))
		for _, c := range r.Cells {
			b.WriteString(" & " + tex(c.Text))
			switch {
			case len(c.Note) > longestNote:
				n := slices.Index(notes, c.Note)
				if n < 0 {
					n, notes = len(notes), append(notes, c.Note)
				}
				fmt.Fprintf(b, "\\textsuperscript{%d}", n+1)
			case c.Note != "":
				b.WriteString("\\newline{\\tiny " + tex(c.Note) + "}")
			}
		}
		b.WriteString(" \\\\\n")
	}
	b.WriteString("\\bottomrule\n\\end{longtable}\n")
	for i, note := range notes {
		fmt.Fprintf(b, "\\textsuperscript{%d}~%s.\n", i+1, tex(note))
	}
	fmt.Fprintf(b, "%s\\par\\endgroup\n", tex(t.Note))
}

var texEscapes = strings.NewReplacer(`\`, `\textbackslash{}`, "{", `\{`, "}", `\}`, "$", `\$`, "&", `\&`, "#", `\#`,
	"_", `\_\allowbreak{}`, "@", `@\allowbreak{}`, "%", `\%`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`, "\n", " ", "\r", " ", "<", `\textless{}`, ">", `\textgreater{}`,
	"–", "--", "≥", `$\geq$`, "≤", `$\leq$`)

// tex escapes a text for LaTeX.
func tex(text string) string { return texEscapes.Replace(text) }
