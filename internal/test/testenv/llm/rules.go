package llm

import (
	"cmp"
	"encoding/json"
	"regexp"
	"sort"
	"strings"

	"github.com/memhost/memhost/internal/text/plainjson"
)

// promptRule answers one kind of prompt.
type promptRule struct {
	purpose string
	match   func(p *Prompt, text string) bool
	answer  func(p *Prompt, text string) Answer
}

// rules in the order of asking: first those that go by tools and schemas, which are unmistakable.
var rules = concat(nanobotRules, graphitiRules, mem0Rules, honchoRules, memosRules, cogneeRules, evalRules)

// Reply answers a prompt: the purpose that the first matching rule has, and its answer. A prompt that no rule knows has
// the purpose "unknown": its schema is filled in, or the last user text is acknowledged.
func Reply(p *Prompt) (purpose string, answer Answer) {
	text := p.Text()
	for _, r := range rules {
		if r.match(p, text) {
			return r.purpose, r.answer(p, text)
		}
	}
	if p.SchemaName != "" {
		return "unknown." + p.SchemaName, Answer{Text: fillSchema(p.Schema, p.Last("user"))}
	}
	if p.JSON {
		return "unknown", Answer{Text: "{}"}
	}
	said := p.Last("user")
	if all := Sentences(said); len(all) > 0 {
		said = all[len(all)-1]
	}
	return "unknown", Answer{Text: "Noted: " + clip(said, 300)}
}

// Turn is a message as a prompt shows it.
type Turn struct {
	// Role is user, assistant, system or tool; "" if the line does not say.
	Role string
	// Speaker is the name before the colon, or the role if there is no name.
	Speaker string
	// Time as the line shows it, without brackets.
	Time string
	Text string
}

// The forms in which the prompts show a message: "[2026-01-12 08:42] USER [tools: a]: text" (Nanobot), "user:
// [2026-01-12T08:42:00Z]: text" (MemOS), "mara(user): text" (Graphiti), "2026-01-12 08:42:00 mara: text" (Honcho),
// "user: text" (mem0). A line of another form continues the message before it.
var turnForms = []*regexp.Regexp{
	regexp.MustCompile(`^\[(?P<time>[0-9?][^\]]*)\] (?P<speaker>[A-Z]+)(?: \[tools: [^\]]*\])?: ?(?P<text>.*)$`),
	regexp.MustCompile(`^(?P<role>user|assistant|system|tool): \[(?P<time>[^\]]+)\]: ?(?P<text>.*)$`),
	regexp.MustCompile(`^(?P<speaker>.*?)\((?P<role>user|assistant|system|tool)\): ?(?P<text>.*)$`),
	regexp.MustCompile(`^(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<speaker>[^:]+): ?(?P<text>.*)$`),
	regexp.MustCompile(`^(?P<role>user|assistant|system|tool|User|Assistant|System|Tool): ?(?P<text>.*)$`),
}

// Turns reads the messages in a part of a prompt.
func Turns(text string) []Turn {
	var out []Turn
	for _, line := range strings.Split(text, "\n") {
		turn, ok := turnOf(line)
		switch {
		case ok:
			out = append(out, turn)
		case len(out) > 0:
			out[len(out)-1].Text += "\n" + line
		}
	}
	for i := range out {
		out[i].Text = strings.TrimSpace(out[i].Text)
	}
	return out
}

func turnOf(line string) (Turn, bool) {
	for _, form := range turnForms {
		m := form.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var t Turn
		for i, name := range form.SubexpNames() {
			switch name {
			case "role":
				t.Role = strings.ToLower(m[i])
			case "speaker":
				t.Speaker = m[i]
			case "time":
				t.Time = m[i]
			case "text":
				t.Text = m[i]
			}
		}
		if t.Role == "" {
			t.Role = strings.ToLower(t.Speaker)
		}
		if t.Speaker == "" {
			t.Speaker = t.Role
		}
		return t, true
	}
	return Turn{}, false
}

// statements reads what was said in the turns: all sentences of the user, and of the assistant those that last, so that
// a dialogue of two people is remembered of both and a mere "Noted." is not. user names the user; "" means that each
// turn names its own speaker.
func statements(turns []Turn, user string) []Statement {
	var out []Statement
	for _, t := range turns {
		switch t.Role {
		case "user":
			out = append(out, ReadAll(cmp.Or(user, t.Speaker), t.Text)...)
		case "assistant":
			for _, s := range ReadAll(cmp.Or(t.Speaker, "The assistant"), t.Text) {
				if s.Lasting {
					out = append(out, s)
				}
			}
		}
	}
	return out
}

// between gives the text after the last occurrence of one mark and before the next occurrence of the other; an end mark
// "" means the rest.
func between(text, from, to string) (string, bool) {
	at := strings.LastIndex(text, from)
	if at < 0 {
		return "", false
	}
	text = text[at+len(from):]
	if to == "" {
		return text, true
	}
	end := strings.Index(text, to)
	if end < 0 {
		return "", false
	}
	return text[:end], true
}

// tagged gives the text between <name> and </name>. The first pair counts: prompts repeat their tags in examples
// further down.
func tagged(text, name string) string {
	_, after, ok := strings.Cut(text, "<"+name+">")
	if !ok {
		return ""
	}
	inside, _, _ := strings.Cut(after, "</"+name+">")
	return strings.TrimSpace(inside)
}

// keywords returns the content words of a text in their order, without repetitions.
func keywords(text string, most int) []string {
	out, seen := []string{}, map[string]bool{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !isWordRune(r) && r != '-' && r != '\''
	}) {
		if functionWords[strings.ReplaceAll(word, "'", "")] || seen[word] {
			continue
		}
		seen[word] = true
		if out = append(out, word); len(out) == most {
			break
		}
	}
	return out
}

func clip(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

func toJSON(v any) string {
	text, err := plainjson.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(text)
}

// fillSchema gives the smallest JSON of a schema; texts become a clip of the given one.
func fillSchema(raw json.RawMessage, text string) string {
	var schema map[string]any
	if json.Unmarshal(raw, &schema) != nil {
		return "{}"
	}
	return toJSON(fillNode(schema, schema, clip(strings.TrimSpace(text), 200), 0))
}

func fillNode(root, node map[string]any, text string, depth int) any {
	if depth > 12 {
		return nil
	}
	if ref, ok := node["$ref"].(string); ok {
		name := ref[strings.LastIndex(ref, "/")+1:]
		for _, key := range []string{"$defs", "definitions"} {
			defs, _ := root[key].(map[string]any)
			if def, ok := defs[name].(map[string]any); ok {
				return fillNode(root, def, text, depth+1)
			}
		}
		return nil
	}
	if list, ok := node["enum"].([]any); ok && len(list) > 0 {
		return list[0]
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := node[key].([]any); ok {
			for _, option := range list {
				o, _ := option.(map[string]any)
				if o["type"] == "null" {
					return nil
				}
			}
			if len(list) > 0 {
				o, _ := list[0].(map[string]any)
				return fillNode(root, o, text, depth+1)
			}
		}
	}
	switch node["type"] {
	case "object":
		out := map[string]any{}
		properties, _ := node["properties"].(map[string]any)
		for name, p := range properties {
			property, _ := p.(map[string]any)
			out[name] = fillNode(root, property, text, depth+1)
		}
		return out
	case "array":
		return []any{}
	case "string":
		return text
	case "integer", "number":
		return 0
	case "boolean":
		return false
	}
	return nil
}

func sortStable[T any](list []T, less func(a, b T) bool) {
	sort.SliceStable(list, func(i, j int) bool { return less(list[i], list[j]) })
}

func concat[T any](lists ...[]T) []T {
	var out []T
	for _, list := range lists {
		out = append(out, list...)
	}
	return out
}
