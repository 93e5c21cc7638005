package score

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// SideBySide has the headline metrics of two comparable runs.
type SideBySide struct {
	A       string       `json:"a"` // names of the runs
	B       string       `json:"b"`
	Columns []BothColumn `json:"columns"`
}

// BothColumn is a column of either run. InA and InB say which runs have it.
type BothColumn struct {
	Label   string       `json:"label"`
	InA     bool         `json:"in_a"`
	InB     bool         `json:"in_b"`
	Figures []BothFigure `json:"figures"`
}

// BothFigure is a metric at a budget in both runs.
type BothFigure struct {
	Budget int64   `json:"budget"`
	Metric string  `json:"metric"`
	A      *Figure `json:"a"`
	B      *Figure `json:"b"`
	// Difference is A - B if both have a value. It has no verdict: runs at different times are not paired.
	Difference *float64 `json:"difference,omitempty"`
}

// Compare combines two runs.
//
// Errors: invalid_argument with every comparability key in which they differ.
func Compare(a, b *Metrics) (*SideBySide, error) {
	if different := a.Keys.differences(&b.Keys); len(different) > 0 {
		return nil, wrong("the runs cannot be compared: they differ in %s", strings.Join(different, "; ")).
			WithHint("run both with the same pack, budgets, policies, tokenizer, frame, profile and contract")
	}
	s := &SideBySide{A: a.Run.Name, B: b.Run.Name, Columns: []BothColumn{}}
	for i := range a.Columns {
		s.Columns = append(s.Columns, bothColumn(a, &a.Columns[i], b.column(a.Columns[i].Label)))
	}
	for i := range b.Columns {
		if a.column(b.Columns[i].Label) == nil {
			s.Columns = append(s.Columns, bothColumn(b, nil, &b.Columns[i]))
		}
	}
	return s, nil
}

func (m *Metrics) column(label string) *Column {
	i := slices.IndexFunc(m.Columns, func(c Column) bool { return c.Label == label })
	if i < 0 {
		return nil
	}
	return &m.Columns[i]
}

// bothColumn combines a column of each run; one of them may be nil.
func bothColumn(m *Metrics, a, b *Column) BothColumn {
	c := BothColumn{InA: a != nil, InB: b != nil, Figures: []BothFigure{}}
	for _, column := range []*Column{a, b} {
		if column != nil {
			c.Label = column.Label
		}
	}
	for _, budget := range m.Keys.Budgets {
		for i := range m.Catalogue {
			f := BothFigure{Budget: budget, Metric: m.Catalogue[i].Name, A: a.overall(budget, m.Catalogue[i].Name),
				B: b.overall(budget, m.Catalogue[i].Name)}
			if !m.Catalogue[i].Headline || f.A == nil && f.B == nil {
				continue
			}
			if f.A != nil && f.B != nil && f.A.Value != nil && f.B.Value != nil {
				d := f.A.Value.Mean - f.B.Value.Mean
				f.Difference = &d
			}
			c.Figures = append(c.Figures, f)
		}
	}
	return c
}

func (c *Column) overall(budget int64, metric string) *Figure {
	if c == nil {
		return nil
	}
	i := slices.IndexFunc(c.Budgets, func(b Budgeted) bool { return b.Budget == budget })
	if i < 0 {
		return nil
	}
	f, there := c.Budgets[i].Overall[metric]
	if !there {
		return nil
	}
	return &f
}

// differences lists the keys in which two runs differ, such as "tokenizer: o200k_base and bytes4", sorted.
func (k *Keys) differences(o *Keys) []string {
	a, b := k.flat(), o.flat()
	var list []string
	for name, value := range a {
		other, there := b[name]
		if !there && strings.HasPrefix(name, "order.") { // a label that only one run has
			continue
		}
		if value != other {
			list = append(list, fmt.Sprintf("%s: %s and %s", name, orNone(value), orNone(other)))
		}
	}
	for name, value := range b {
		if _, there := a[name]; !there && !strings.HasPrefix(name, "order.") {
			list = append(list, fmt.Sprintf("%s: none and %s", name, value))
		}
	}
	slices.Sort(list)
	return list
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// flat returns the keys by their path in metrics.json, with their values as text.
func (k *Keys) flat() map[string]string {
	text, _ := json.Marshal(k) // plain values can always be marshaled
	var tree map[string]any
	_ = json.Unmarshal(text, &tree)
	flat := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if object, is := v.(map[string]any); is {
			for name, member := range object {
				walk(strings.TrimPrefix(path+"."+name, "."), member)
			}
			return
		}
		flat[path] = fmt.Sprint(v)
	}
	walk("", tree)
	return flat
}
