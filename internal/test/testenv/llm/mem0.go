package llm

import (
	"strings"
)

// mem0Rules answer mem0 (package mem0ai, mem0/configs/prompts.py): one call per add with inference, whose user prompt
// has named sections; a call without them for a procedural memory; one per row for its LLM reranker.
var mem0Rules = []promptRule{
	{purpose: "mem0.extract", match: func(p *Prompt, _ string) bool {
		last := p.Last("user")
		return strings.Contains(last, "## New Messages\n") && strings.Contains(last, "## Observation Date\n")
	}, answer: mem0Extract},
	{purpose: "mem0.procedure", match: func(_ *Prompt, text string) bool {
		return strings.HasSuffix(strings.TrimSpace(text), "Create procedural memory of the above conversation.")
	}, answer: mem0Procedure},
	{purpose: "mem0.rerank", match: func(p *Prompt, _ string) bool {
		last := p.Last("user")
		return strings.HasPrefix(last, "Query: ") && strings.Contains(last, "\n\nDocument: ")
	}, answer: func(p *Prompt, _ string) Answer {
		query, document, _ := strings.Cut(strings.TrimPrefix(p.Last("user"), "Query: "), "\n\nDocument: ")
		return Answer{Text: score(query, document)}
	}},
}

// mem0Extract keeps what statements reads, as it was said, except questions. Hash comparison and the rest are mem0's
// own.
func mem0Extract(p *Prompt, _ string) Answer {
	section, _ := between(p.Last("user"), "## New Messages\n", "\n## Observation Date\n")
	type memory struct {
		ID         string `json:"id"`
		Text       string `json:"text"`
		Attributed string `json:"attributed_to"`
	}
	list := []memory{}
	for _, turn := range Turns(section) {
		for _, s := range statements([]Turn{turn}, "") {
			list = append(list, memory{ID: itoa(len(list)), Text: s.Text, Attributed: turn.Role})
		}
	}
	return Answer{Text: toJSON(map[string]any{"memory": list})}
}

func mem0Procedure(p *Prompt, _ string) Answer {
	var parts []string
	for _, m := range p.Messages {
		if m.Role != "system" && m.Content != "" {
			parts = append(parts, m.Content)
		}
	}
	return Answer{Text: "Summary of the procedure: " + strings.Join(parts, " | ")}
}
