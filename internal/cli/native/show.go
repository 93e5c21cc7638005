package native

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/cli"
	"github.com/memhost/memhost/internal/text/jsonpointer"
)

// show prints an answer for people in the form that the module declares. An answer of another form is printed
// unchanged.
func (c *call) show(answer abi.Raw) error {
	show := c.decl.Show
	if show == nil {
		return c.Out.Raw(answer)
	}
	whole, err := decoded(answer)
	if err != nil {
		return c.Out.Raw(answer)
	}
	part, _ := jsonpointer.Find(whole, show.At)
	shown := false
	switch show.As {
	case abi.ShowTable:
		shown = c.showTable(show, part)
	case abi.ShowList:
		shown = c.showList("", part)
	case abi.ShowText:
		var text string
		if text, shown = part.(string); shown && text == "" {
			c.Out.Note("there is nothing")
		} else if shown {
			c.Out.Print("%s\n", strings.TrimRight(text, "\n"))
		}
	}
	if !shown {
		return c.Out.Raw(answer)
	}
	if next, _ := jsonpointer.Find(whole, show.Next); show.Next != "" {
		if after, is := next.(string); is && after != "" {
			c.Out.Note("there is more: --after %s", quoted(after))
		}
	}
	return nil
}

// verdict returns exit code 1 if the answer reports a failure.
func (c *call) verdict(answer abi.Raw, err error) error {
	if err != nil || c.decl.Failed == nil {
		return err
	}
	whole, err := decoded(answer)
	if err != nil {
		return nil // it was printed unchanged
	}
	found, there := jsonpointer.Find(whole, c.decl.Failed.Pointer)
	want, err := decoded(c.decl.Failed.Equals)
	if there && err == nil && reflect.DeepEqual(found, want) {
		return cli.Done(cli.ExitFailed)
	}
	return nil
}

// decoded decodes JSON and keeps numbers as they are written.
func decoded(text abi.Raw) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v)
}

// showTable prints rows with a heading, and returns false if there are no rows of that form.
func (c *call) showTable(show *abi.ShowDecl, part any) bool {
	rows, many := part.([]any)
	if _, one := part.(map[string]any); one {
		rows = []any{part}
	} else if !many {
		return false
	}
	if len(rows) == 0 {
		c.Out.Note("there is nothing")
		return true
	}
	lines := [][]string{nil}
	for _, column := range show.Columns {
		lines[0] = append(lines[0], cli.InALine(column.Title))
	}
	for _, row := range rows {
		var cells []string
		for _, column := range show.Columns {
			found, _ := jsonpointer.Find(row, column.At)
			text := cli.InALine(plain(found))
			if cut := []rune(text); column.Cut > 0 && int64(len(cut)) > column.Cut {
				text = string(cut[:column.Cut])
			}
			cells = append(cells, text)
		}
		lines = append(lines, cells)
	}
	widths := make([]int, len(show.Columns))
	for _, cells := range lines {
		for i, cell := range cells {
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	for i, cells := range lines {
		var b strings.Builder
		for j, cell := range cells {
			if widths[j] == 0 {
				continue
			}
			b.WriteString(cell + strings.Repeat(" ", widths[j]-uniseg.StringWidth(cell)+2))
		}
		c.Out.Print("%s\n", strings.TrimRight(b.String(), " "))
		if i > 0 && !c.oneline {
			c.showBelow(show, rows[i-1])
		}
	}
	return true
}

// showBelow prints the texts under a row.
func (c *call) showBelow(show *abi.ShowDecl, row any) {
	for _, pointer := range show.Below {
		found, _ := jsonpointer.Find(row, pointer)
		list, many := found.([]any)
		if !many {
			list = []any{found}
		}
		for _, item := range list {
			if object, is := item.(map[string]any); is && object["text"] != nil {
				item = object["text"]
			}
			if text := strings.TrimSpace(plain(item)); text != "" {
				c.Out.Print("    %s\n", strings.ReplaceAll(text, "\n", "\n    "))
			}
		}
	}
}

// showList prints a line for each value of an object and of nested objects, and returns false for anything else.
func (c *call) showList(above string, part any) bool {
	object, is := part.(map[string]any)
	if !is {
		return false
	}
	width := 0
	for name, value := range object {
		if _, deeper := value.(map[string]any); !deeper {
			width = max(width, uniseg.StringWidth(above+cli.InALine(name)))
		}
	}
	for _, name := range abi.SortedKeys(object) {
		label := above + cli.InALine(strings.ReplaceAll(name, "_", " "))
		if !c.showList(label+", ", object[name]) {
			pad := strings.Repeat(" ", max(0, width-uniseg.StringWidth(label)))
			c.Out.Print("%s\n", strings.TrimRight(label+pad+"  "+cli.InALine(plain(object[name])), " "))
		}
	}
	return true
}

// plain formats a value for people: a text without quotes, * for true, nothing for false and null.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		if v {
			return "*"
		}
		return ""
	case json.Number:
		return v.String()
	}
	text, _ := json.Marshal(v) // of what was decoded
	return string(text)
}

// showChange prints the result of a mutation: its status and the module's details, one per line, or in the form that
// the module declares.
func (c *call) showChange(r *abi.MutationReceipt) error {
	c.Out.Print("%s\n", r.Status)
	if r.Trace == nil {
		return nil
	}
	if c.decl.Show != nil {
		if err := c.show(details(r)); err != nil {
			return err
		}
	} else {
		c.showDetails(r.Trace.Details)
	}
	for _, w := range r.Trace.Warnings {
		c.Out.Note("%s", w)
	}
	return nil
}

func (c *call) showDetails(details map[string]abi.Raw) {
	for _, name := range abi.SortedKeys(details) {
		value := details[name]
		if text := string(value); text == "null" || text == "[]" {
			continue
		}
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			list = []json.RawMessage{json.RawMessage(value)}
		}
		for _, item := range list {
			text := string(item)
			var plain string
			if json.Unmarshal(item, &plain) == nil {
				text = plain
			}
			c.Out.Print("%s: %s\n", cli.InALine(name), text)
		}
	}
}
