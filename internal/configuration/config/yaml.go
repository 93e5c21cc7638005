package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
	"go.yaml.in/yaml/v3"
)

const (
	// maxValues and maxExpanded bound a document with its aliases expanded: nine lines of YAML can expand to a thousand
	// million values.
	maxValues   = 200_000
	maxExpanded = 16 << 20
)

// yaml reads one YAML document in the spirit of YAML 1.2: a date is a text, keys are texts and unique, numbers keep all
// their digits.
func (d *document) yaml(raw []byte) any {
	raw, ok := d.text(raw)
	if !ok {
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	var doc, second yaml.Node
	if err := decodeYAML(dec, &doc); err == io.EOF {
		return nil
	} else if err != nil {
		d.syntax(raw, err)
		return nil
	}
	if err := decodeYAML(dec, &second); err == nil {
		d.fail(second.Line, "a second document begins here: one file holds one configuration")
		return nil
	} else if err != io.EOF {
		d.syntax(raw, err)
		return nil
	}
	if len(doc.Content) != 1 {
		return nil
	}
	return d.value(doc.Content[0], nil, 0)
}

// decodeYAML recovers from a panic of the parser, which reads untrusted input.
func decodeYAML(dec *yaml.Decoder, into *yaml.Node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the text cannot be read as YAML: %v", p)
		}
	}()
	return dec.Decode(into)
}

// syntax reports an error of the YAML library, which writes "yaml: line 3: what".
func (d *document) syntax(raw []byte, err error) {
	line, text := splitLine(strings.TrimPrefix(err.Error(), "yaml: "))
	if lines := strings.Split(string(raw), "\n"); slices.ContainsFunc(lines, func(l string) bool {
		return strings.HasPrefix(strings.TrimLeft(l, " "), "\t")
	}) {
		text += "; lines are indented with blanks in YAML, not with tabs"
	}
	d.fail(line, "not YAML: %s", text)
}

func (d *document) value(n *yaml.Node, path []string, depth int) any {
	if d.failed && d.values > maxValues {
		return nil
	}
	if d.values++; d.values > maxValues || d.bytes > maxExpanded {
		d.values = maxValues + 1
		d.fail(n.Line, "too large: more than %d values, or %d MiB, when its aliases are expanded", maxValues,
			maxExpanded>>20)
		return nil
	}
	if depth > abi.MaxDepth {
		d.fail(n.Line, "nested deeper than %d levels", abi.MaxDepth)
		d.values = maxValues + 1 // an alias inside its own anchor would be reported forever
		return nil
	}
	d.at(path, n.Line)
	switch n.Kind {
	case yaml.AliasNode:
		return d.value(n.Alias, path, depth+1)
	case yaml.SequenceNode:
		if !d.tagIs(n, "!!seq") {
			return nil
		}
		list := []any{}
		for i, e := range n.Content {
			list = append(list, d.value(e, append(slices.Clip(path), strconv.Itoa(i)), depth+1))
		}
		return list
	case yaml.MappingNode:
		if !d.tagIs(n, "!!map") {
			return nil
		}
		return d.mapping(n, path, depth)
	}
	d.bytes += len(n.Value)
	v, err := scalar(n)
	if err != nil {
		d.fail(n.Line, "%v", err)
	}
	return v
}

func (d *document) tagIs(n *yaml.Node, want string) bool {
	if tag := n.ShortTag(); tag != want {
		d.fail(n.Line, "the tag %s is not known here: remove it", tag)
		return false
	}
	return true
}

func (d *document) mapping(n *yaml.Node, path []string, depth int) any {
	m := map[string]any{}
	lines := map[string]int{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		line := n.Content[i].Line
		if k.Kind == yaml.ScalarNode && k.ShortTag() == "!!merge" {
			merged = append(merged, v)
			continue
		}
		if k.Kind != yaml.ScalarNode || k.ShortTag() != "!!str" {
			d.fail(line, "the key %s is not a text: put it in quotes", keyText(k))
			continue
		}
		d.bytes += len(k.Value)
		at := append(slices.Clip(path), k.Value)
		if strings.ContainsRune(k.Value, 0) {
			d.fail(line, "the key %q holds a zero byte", k.Value)
			continue
		}
		if first, twice := lines[k.Value]; twice {
			d.fail(line, "the key %s stands twice, first in line %d", schema.Path(at, nil), first)
			continue
		}
		lines[k.Value] = line
		m[k.Value] = d.value(v, at, depth+1)
		d.at(at, line) // the line of the key, even if the value starts below it
	}
	for _, v := range merged {
		d.merge(m, v, path, depth+1)
	}
	return m
}

// merge handles the YAML key "<<": it adds the keys of one or several other maps that m lacks.
func (d *document) merge(m map[string]any, v *yaml.Node, path []string, depth int) {
	target := v
	for target.Kind == yaml.AliasNode {
		target = target.Alias
	}
	switch target.Kind {
	case yaml.SequenceNode:
		if depth > abi.MaxDepth {
			d.fail(v.Line, "nested deeper than %d levels", abi.MaxDepth)
			return
		}
		for _, e := range target.Content {
			d.merge(m, e, path, depth+1)
		}
	case yaml.MappingNode:
		before := d.from
		d.from = map[string]Origin{}
		from, _ := d.value(target, path, depth).(map[string]any)
		lines := d.from
		d.from = before
		for key, e := range from {
			if _, own := m[key]; own {
				continue
			}
			m[key] = e
			at := append(slices.Clip(path), key)
			d.at(at, lines[joinPath(at)].Line)
		}
	default:
		d.fail(v.Line, "<< takes an object, or a list of objects")
	}
}

func keyText(k *yaml.Node) string {
	if k.Kind == yaml.ScalarNode {
		return strconv.Quote(k.Value)
	}
	return "(a list or an object)"
}

// scalar returns the value of a YAML scalar. A date is its text; a number that is not a JSON number is schema.Odd.
func scalar(n *yaml.Node) (any, error) {
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!timestamp", "!!merge":
		return n.Value, nil
	case "!!null":
		return nil, nil
	case "!!bool":
		switch strings.ToLower(n.Value) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
		return nil, fmt.Errorf("%q is not a truth value: write true or false", n.Value)
	case "!!int", "!!float":
		return number(n.Value), nil
	default:
		return nil, fmt.Errorf("the tag %s is not known here: remove it", tag)
	}
}

// number parses what YAML takes for a number.
func number(text string) any {
	plain := strings.TrimPrefix(text, "+")
	sign := ""
	if rest, ok := strings.CutPrefix(plain, "-"); ok {
		sign, plain = "-", rest
	}
	switch {
	case strings.HasPrefix(plain, "0x"), strings.HasPrefix(plain, "0o"), strings.HasPrefix(plain, "0b"):
		i, ok := new(big.Int).SetString(plain, 0)
		if !ok || strings.Contains(plain, "_") || i.BitLen() > 64 {
			return schema.Odd(text)
		}
		return json.Number(sign + i.String())
	case strings.HasPrefix(plain, "."):
		plain = "0" + plain
	}
	mantissa, exponent, scaled := strings.Cut(strings.ToLower(plain), "e")
	mantissa = strings.TrimSuffix(mantissa, ".")
	plain = mantissa
	if scaled {
		plain += "e" + exponent
	}
	if _, err := schema.Decode([]byte(sign+plain), nil); err != nil {
		return schema.Odd(text)
	}
	return json.Number(sign + plain)
}

// scalarText parses the text of a variable or a flag as YAML would parse a scalar: 12, true, null, 'a text'. Anything
// that is not a single scalar, such as one with a comment after it, is taken as a text.
func scalarText(text string) any {
	trimmed := strings.TrimSpace(text)
	if len(trimmed) >= 2 && (trimmed[0] == '\'' || trimmed[0] == '"') && trimmed[len(trimmed)-1] == trimmed[0] {
		var n yaml.Node
		dec := yaml.NewDecoder(strings.NewReader(trimmed))
		if err := decodeYAML(dec, &n); err == nil && len(n.Content) == 1 && n.Content[0].Kind == yaml.ScalarNode &&
			n.Content[0].LineComment == "" {
			if err := decodeYAML(dec, new(yaml.Node)); errors.Is(err, io.EOF) {
				return n.Content[0].Value
			}
		}
		return text
	}
	v, err := scalar(&yaml.Node{Kind: yaml.ScalarNode, Value: trimmed})
	if _, isText := v.(string); err != nil || isText {
		return text
	}
	return v
}
