package config

import (
	"encoding/json"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
)

// checker checks one layer: it reports unknown keys and values of the wrong kind, and returns the layer's tree without
// nulls (which mean the same as absence) and with every value in the form that the later steps expect.
type checker struct {
	problems *problems
	layer    *layer
	keys     *node
}

func (c *checker) add(path []string, format string, args ...any) {
	c.problems.add(c.layer.origin(path), path, format, args...)
}

func (c *checker) group(n *node, m map[string]any, at []string) map[string]any {
	out := map[string]any{}
	for _, name := range c.inOrder(m, at) {
		v, p := m[name], append(slices.Clip(at), name)
		child := n.children[name]
		switch {
		case child == nil:
			c.unknownKey(n, name, p)
		case v == nil:
		case child.key != nil:
			if v, ok := c.value(child.key, v, p); ok {
				out[name] = v
			}
		default:
			if sub, ok := v.(map[string]any); ok {
				out[name] = c.group(child, sub, p)
			} else {
				c.add(p, "found %s, want an object with the keys %s", found(p, v), strings.Join(child.order, ", "))
			}
		}
	}
	return out
}

// inOrder sorts the keys of m as they are in the file, so that mistakes are reported from top to bottom.
func (c *checker) inOrder(m map[string]any, at []string) []string {
	names := sortedKeys(m)
	slices.SortStableFunc(names, func(a, b string) int {
		return c.layer.origin(append(slices.Clip(at), a)).Line - c.layer.origin(append(slices.Clip(at), b)).Line
	})
	return names
}

// whichProvider answers a key called provider, which seems natural and does not exist.
const whichProvider = "which provider serves is set by memory.backend or memory.condition"

func (c *checker) unknownKey(n *node, name string, p []string) {
	if name == "provider" || abi.Nearest(name, n.order) == "" && abi.Nearest(name, []string{"provider"}) != "" {
		c.add(p, "unknown key; %s", whichProvider)
		return
	}
	if abi.Nearest(name, n.order) == "" {
		if other := elsewhere(name); other != "" {
			c.add(p, "unknown key; the key %s stands elsewhere: %s", name, other)
			return
		}
		if n == c.keys {
			// A block at the top is the likeliest of the other mistakes.
			c.add(p, "unknown key; at the top stand %s", strings.Join(n.order, ", "))
			return
		}
	}
	c.add(p, "%s", unknown("unknown key", name, n.order))
}

func (c *checker) value(k *key, v any, p []string) (any, bool) {
	switch k.kind {
	case aBlocks:
		return c.blocks(v, p)
	case aSecrets:
		return c.secrets(v, p)
	case aHeaders:
		return c.headers(v, p)
	case aTruth:
		if b, ok := v.(bool); ok {
			return b, true
		}
	case anInteger:
		if n, ok := v.(json.Number); ok {
			i, err := strconv.ParseInt(string(schema.Canonical(n)), 10, 64)
			if err == nil && i >= k.min && i <= k.max {
				return json.Number(strconv.FormatInt(i, 10)), true
			}
		}
		if text, ok := v.(string); ok && c.layer.kind == KindFile {
			if _, err := strconv.ParseInt(text, 10, 64); err == nil {
				c.add(p, "found the string %s, want %s: write it without quotes", found(p, v), k.wants())
				return nil, false
			}
		}
	case aList:
		return c.list(k, v, p)
	default:
		return c.text(k, v, p)
	}
	c.add(p, "found %s, want %s", found(p, v), k.wants())
	return nil, false
}

func (c *checker) text(k *key, v any, p []string) (any, bool) {
	text, ok := v.(string)
	if !ok {
		switch v.(type) {
		case json.Number, odd, bool:
			if k.path == "server.listen" {
				c.add(p, "found %s, want host:port, like 127.0.0.1:7077", found(p, v))
				break
			}
			c.add(p, "found %s, want %s: put it in quotes, %s: %q", found(p, v), k.wants(), p[len(p)-1], literal(v))
		default:
			c.add(p, "found %s, want %s", found(p, v), k.wants())
		}
		return nil, false
	}
	wrong := ""
	switch {
	case k.kind == aChoice && !isOneOf(text, k.choices):
		if near := abi.Nearest(text, k.choices); near != "" {
			wrong = fmt.Sprintf(", did you mean %q?", near)
		}
		c.add(p, "found %s, want %s%s", found(p, v), k.wants(), wrong)
		return nil, false
	case k.kind == anID && (text == "" || len(text) > maxID):
		wrong = fmt.Sprintf("found %d bytes, want %s", len(text), k.wants())
	case k.max > 0 && int64(len(text)) > k.max:
		wrong = fmt.Sprintf("found %d bytes, want a string of at most %d", len(text), k.max)
	case len(text) > maxAny:
		wrong = fmt.Sprintf("found %d bytes, want a string of at most %d", len(text), maxAny)
	case text == "" && k.def != "":
		wrong = "is empty: give it a value or remove it"
	case k.path == "server.listen":
		wrong = badAddress(text)
	case (k.path == "data.dir" || k.path == "memory.plugin") && strings.HasPrefix(text, "~"):
		wrong = fmt.Sprintf("found %q: ~ stands for your home only in a shell; write the path in full", text)
	}
	if wrong == "" && !sound(text) {
		wrong = "is not valid UTF-8 text, or holds a zero byte"
	}
	if wrong != "" {
		c.add(p, "%s", wrong)
		return nil, false
	}
	return text, true
}

// literal is a value as the file has it.
func literal(v any) string {
	switch v := v.(type) {
	case json.Number:
		return string(v)
	case odd:
		return string(v)
	}
	return fmt.Sprint(v)
}

func badAddress(text string) string {
	host, port, err := net.SplitHostPort(text)
	if err == nil {
		n, err := strconv.Atoi(port)
		switch {
		case err != nil || strings.ContainsAny(host, "/@ "):
		case n < 0, n > 65535:
			return fmt.Sprintf("found %q, want a port from 0 to 65535", schema.BlankText(text))
		default:
			return ""
		}
	}
	return fmt.Sprintf("found %q, want host:port, like 127.0.0.1:7077", schema.BlankText(text))
}

func (c *checker) list(k *key, v any, p []string) (any, bool) {
	list, ok := v.([]any)
	if !ok {
		c.add(p, "found %s, want %s", found(p, v), k.wants())
		return nil, false
	}
	want := "text"
	if k.globs {
		want = "a glob like test_*"
	}
	good := true
	for i, e := range list {
		at := append(slices.Clip(p), strconv.Itoa(i))
		text, isText := e.(string)
		switch {
		case !isText:
			c.add(p, "element %d: found %s, want a string: put it in quotes", i+1, found(at, e))
		case text == "" || !sound(text):
			c.add(p, "element %d: found %s, want %s", i+1, found(at, e), want)
		case len(k.choices) > 0:
			if isOneOf(text, k.choices) {
				continue
			}
			c.add(p, "element %d: found %s, want one of %s", i+1, found(at, e), strings.Join(k.choices, ", "))
		default:
			if _, err := path.Match(text, ""); k.globs && err != nil {
				c.add(p, "element %d: found %s, want a glob like test_*: a bracket or backslash in it is not complete",
					i+1, found(at, e))
				break
			}
			continue
		}
		good = false
	}
	return list, good
}

// blocks checks only that native blocks are objects: nothing else is required of those that are not chosen.
func (c *checker) blocks(v any, p []string) (any, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		c.add(p, "found %s, want an object that maps names of providers to their blocks", found(p, v))
		return nil, false
	}
	out := map[string]any{}
	for _, name := range c.inOrder(m, p) {
		at := append(slices.Clip(p), name)
		if m[name] == nil { // "graphiti:" with nothing after it
			out[name] = map[string]any{}
			continue
		}
		block, ok := m[name].(map[string]any)
		if !ok {
			c.add(at, "found %s, want an object: the native configuration of %s", found(at, m[name]), name)
			continue
		}
		out[name] = block
	}
	return out, true
}

// sound reports whether a text may cross the slot.
func sound(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }
