package memory

import (
	"bytes"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

const askStyle = `
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem; overflow-wrap: anywhere; }
main { display: grid; gap: 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); }
pre { white-space: pre-wrap; font: 13px/1.5 ui-monospace, monospace; border: 1px solid #8886; padding: .7rem; }
`

// askPage renders the answers as one page without scripts, with every text escaped.
func askPage(question string, all []*providerAnswer) ([]byte, error) {
	page := h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(g.Attr("http-equiv", "Content-Security-Policy"),
				h.Content("default-src 'none'; style-src 'unsafe-inline'")),
			h.TitleEl(g.Text("memhost ask")),
			h.StyleEl(g.Raw(askStyle)),
		),
		h.Body(
			h.H1(h.Dir("auto"), g.Text(question)),
			h.Main(g.Map(all, (*providerAnswer).section)),
		),
	))
	var b bytes.Buffer
	err := page.Render(&b)
	return b.Bytes(), err
}

func (x *providerAnswer) section() g.Node {
	text := x.Context
	switch {
	case x.Error != nil:
		text = x.Error.Message
	case text == "":
		text = "(nothing)"
	}
	return h.Section(
		h.H2(g.Text(x.Provider)),
		h.P(g.Textf("%s, %d events recorded", x.cost(), x.Recorded)),
		h.Pre(h.Dir("auto"), h.TabIndex("0"), g.Text(text)))
}
