package server

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// document is the page: an index of the operations, then each operation, then their types. Every text and attribute is
// escaped, except the program's own style.
func (p *docsPage) document() g.Node {
	return h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("referrer"), h.Content("no-referrer")),
			h.TitleEl(g.Text(p.Title+" "+p.Version)),
			h.StyleEl(g.Raw(docsStyle)),
		),
		h.Body(
			h.Nav(
				h.H1(g.Text(p.Title+" "), h.Small(g.Text(p.Version))),
				g.Map(p.Groups, func(group docsGroup) g.Node {
					return g.Group{h.H2(g.Text(group.Name)), h.Ul(g.Map(group.Operations, func(op docsOperation) g.Node {
						return h.Li(h.A(h.Href("#"+op.ID), op.route()))
					}))}
				}),
				h.H2(h.A(h.Href("#types"), g.Text("types"))),
			),
			h.Main(
				g.Map(p.Intro, func(text string) g.Node { return h.P(g.Text(text)) }),
				h.P(g.Text("The same as a document for programs: "), h.A(h.Href("openapi.json"), g.Text("openapi.json")),
					g.Text(".")),
				g.Map(p.Groups, func(group docsGroup) g.Node {
					return g.Group{h.H2(g.Text(group.Name)), h.P(g.Text(group.About)),
						g.Map(group.Operations, docsOperation.section)}
				}),
				h.H2(h.ID("types"), g.Text("types")),
				g.Map(p.Types, docsType.section),
			),
		),
	))
}

// route is the method in bold and the path: GET /v1/health.
func (op docsOperation) route() g.Node { return g.Group{h.B(g.Text(op.Method)), g.Text(" " + op.Path)} }

func (op docsOperation) section() g.Node {
	return h.Section(h.ID(op.ID),
		h.H3(op.route()),
		h.P(h.Strong(g.Text(op.Summary+".")), g.Text(" "+op.About)),
		g.If(op.Request.Name != "", g.Group{h.H4(g.Text("Body: "), op.Request.link()),
			h.Pre(g.Text(op.Request.Example))}),
		h.H4(g.Text("Answer: "), op.Answer.link()),
		g.If(op.Answer.Example != "", h.Pre(g.Text(op.Answer.Example))),
		g.If(len(op.Problems) > 0, g.Group{h.H4(g.Text("Errors")),
			h.Dl(g.Map(op.Problems, func(p docsProblem) g.Node {
				return g.Group{h.Dt(g.Text(p.Status)), h.Dd(g.Text(p.About))}
			}))}),
	)
}

// link leads to the body's type; a body without a type is named by its media type.
func (b docsBody) link() g.Node {
	if b.Name == "" {
		return g.Text(b.Media)
	}
	return typeLink(b.Name)
}

func (t docsType) section() g.Node {
	return h.Section(h.ID("type-"+t.Name),
		h.H3(g.Text(t.Name)),
		h.P(g.Text(t.About)),
		h.Table(h.TBody(g.Map(t.Fields, func(f docsField) g.Node {
			return h.Tr(
				h.Td(h.Code(g.Text(f.Name)), g.If(f.Required, h.Sup(h.Title("always there"), g.Text("*")))),
				h.Td(g.Text(f.Type.Before), g.If(f.Type.Name != "", typeLink(f.Type.Name)), g.Text(f.Type.After)),
				h.Td(g.Text(f.About)))
		}))),
	)
}

func typeLink(name string) g.Node { return h.A(h.Href("#type-"+name), g.Text(name)) }
