package report

import (
	"fmt"
	"slices"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// page is the whole document. Every text and attribute is escaped, except what goes through g.Raw: the program's own
// style and script, and data that cannot end an element.
func page(v *view) g.Node {
	return h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(g.Attr("http-equiv", "Content-Security-Policy"), h.Content(v.Policy)),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("referrer"), h.Content("no-referrer")),
			h.TitleEl(g.Text(v.Name+": memories compared")),
			h.StyleEl(g.Raw(pageCSS)),
		),
		h.Body(
			h.Header(
				h.H1(g.Text(v.Name)),
				g.Map(v.Alarms, func(a string) g.Node { return h.P(h.Class("alarm"), g.Text(a)) }),
				g.Map(v.Summary, func(s string) g.Node { return h.P(g.Text(s)) }),
				g.Map(v.Lead, plotNode),
				details("What exactly was run", factList(v.Facts)),
			),
			h.Main(sections(v)),
			h.Script(h.Type("application/json"), h.ID("index"), g.Raw(v.Index)),
			g.Map(v.Chunks, func(c chunk) g.Node {
				return h.Script(h.Type("text/plain"), h.ID(fmt.Sprintf("chunk-%d", c.N)), g.Raw(c.Data))
			}),
			h.Script(g.Raw(pageJS)),
		),
	))
}

func sections(v *view) g.Node {
	const unmeasured = "Behaviour was not measured: no agent answered, or no judge was asked. The figures above are about what " +
		"memory shows."
	judged := g.Group{tableNode(v.Judged), g.Map(v.ByJudge, tableNode)}
	return g.Group{
		section("verdicts", "Verdicts", verdictLists(v)),
		g.If(len(v.Behaved) > 0, section("behaviour", "Behaviour", g.Map(v.Behaved, tableNode),
			g.If(len(v.Judged.Rows) > 0, judged))),
		g.If(len(v.Type.Rows) > 0, section("types", "By type of question", tableNode(v.Type))),
		section("cost", "Cost against quality",
			g.Map(v.Worth, plotNode),
			tableNode(v.Cost),
			g.If(len(v.Models.Rows) > 0, tableNode(v.Models)),
			tableOr(v.Latency, "Latency was not measured: no cell ran alone, with one persona at a time."),
			g.If(len(v.Fresh.Rows) > 0, tableNode(v.Fresh))),
		section("tables", "Figures",
			g.Map(v.Tables, tableNode),
			details("By label", g.Map(v.Labels, tableNode)),
			details("What the figures mean", factList(v.Terms))),
		g.If(len(v.More) > 0, section("more", "Pending, speakers, errors", g.Map(v.More, tableNode))),
		g.If(len(v.Audit) > 0, section("audit", "Before and after the audit", g.Map(v.Audit, tableNode))),
		g.If(len(v.Plots) > 0, section("plots", "Plots", h.Div(h.Class("plots"), g.Map(v.Plots, plotNode)))),
		g.If(len(v.Behaved) == 0, section("behaviour", "Behaviour",
			g.If(len(v.Judged.Rows) > 0, judged), g.If(len(v.Judged.Rows) == 0, h.P(g.Text(unmeasured))))),
		section("probes", "Probes", explorer(v)),
		section("missing", "What was not measured",
			g.If(len(v.Missing) > 0, factList(v.Missing)),
			g.If(len(v.Missing) == 0, h.P(g.Text("Nothing is missing.")))),
		section("served", "What served, and how to run it again",
			tableNode(v.Modules),
			h.Pre(h.TabIndex("0"), g.Map(v.Again, func(command string) g.Node { return g.Text(command + "\n") }))),
	}
}

// section is a part of the page with a heading, whose id can be linked to.
func section(id, heading string, content ...g.Node) g.Node {
	return h.Section(h.Aria("labelledby", id), h.H2(h.ID(id), g.Text(heading)), g.Group(content))
}

func details(summary string, content g.Node) g.Node {
	return h.Details(h.Summary(g.Text(summary)), content)
}

func factList(facts []fact) g.Node {
	return h.Dl(h.Class("facts"), g.Map(facts, func(f fact) g.Node {
		return h.Div(h.Dt(g.Text(f.Name)), h.Dd(g.Text(f.Value)))
	}))
}

func verdictLists(v *view) g.Node {
	passed := !slices.ContainsFunc(v.Verdicts, func(s Verdict) bool { return s.Outcome != good })
	list := func(all []sentence) g.Node {
		return h.Ul(h.Class("verdicts"), g.Map(all, func(s sentence) g.Node {
			return verdict(s.Outcome, s.Label+": "+s.Verdict, s.Detail)
		}))
	}
	checks := g.Map(v.Verdicts, func(s Verdict) g.Node { return verdict(s.Outcome, s.Name, s.Detail) })
	return g.Group{
		g.If(len(v.First) > 0, list(v.First)),
		g.If(len(v.Primary) > 0, list(v.Primary)),
		g.If(len(v.Primary) == 0,
			h.P(g.Text("No comparison was sealed before the run. Every figure below is exploratory."))),
		g.If(!passed, h.Ul(h.Class("verdicts"), checks)),
		g.If(passed, details(fmt.Sprintf("All %d checks passed", len(v.Verdicts)), h.Ul(h.Class("verdicts"), checks))),
	}
}

func verdict(outcome, text, detail string) g.Node {
	return h.Li(h.Class(outcome), h.Strong(g.Text(text)), g.Text(" "), h.Span(g.Text(detail)))
}

func tableNode(t table) g.Node {
	return h.Div(h.Class("scroll"), h.TabIndex("0"), h.Role("region"), h.Aria("label", t.Title),
		h.Table(
			h.Caption(h.Strong(g.Text(t.Title)), g.If(t.Note != "", g.Group{h.Br(), g.Text(t.Note)})),
			h.THead(h.Tr(g.Map(t.Head, func(name string) g.Node { return h.Th(h.Scope("col"), g.Text(name)) }))),
			h.TBody(g.Map(t.Rows, func(r row) g.Node {
				return h.Tr(g.If(r.Reference, h.Class("reference")),
					h.Th(h.Scope("row"), g.Text(r.Name)), g.Map(r.Cells, cellNode))
			})),
		))
}

func cellNode(c cell) g.Node {
	return h.Td(g.Text(c.Text), g.If(c.Note != "", g.Group{h.Br(), h.Small(g.Text(c.Note))}))
}

// tableOr is the table, or a sentence if it has no rows.
func tableOr(t table, otherwise string) g.Node {
	if len(t.Rows) == 0 {
		return h.P(g.Text(otherwise))
	}
	return tableNode(t)
}

func plotNode(p plot) g.Node {
	return h.Figure(h.FigCaption(h.Strong(g.Text(p.Title)), h.Br(), g.Text(p.Note)), p.SVG)
}

// explorer is filled by page.js: the list of probes, and the selected one.
func explorer(v *view) g.Node {
	about := "This report was made without text: questions, answers and contexts are left out."
	if v.Text {
		about = "Choose one to see what each memory gave for it."
		if v.LeftOut > 0 {
			about += fmt.Sprintf(" The texts of %d probes are left out, so that this file stays below 50 MB.", v.LeftOut)
		}
	}
	return g.Group{
		h.P(g.Text(about)),
		h.P(
			h.Label(g.Text("Find "),
				h.Input(h.ID("find"), h.Type("search"), h.Placeholder("id, persona, label or words"))),
			g.Text(" "), g.El("output", h.ID("found"))),
		h.Div(h.Class("explorer"),
			h.Ol(h.ID("list"), h.TabIndex("0"), h.Aria("label", "Probes")),
			h.Div(h.ID("detail"), h.Aria("live", "polite"))),
		h.NoScript(h.P(g.Text("Without scripts the list of probes is not shown. Everything above is complete."))),
	}
}
