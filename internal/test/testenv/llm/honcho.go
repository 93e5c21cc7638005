package llm

import "strings"

// Honcho 3 (its deriver and dialectic): recognised by schema, tools and tags. A dream ends at once.
var honchoRules = []promptRule{
	{purpose: "honcho.deriver", match: func(p *Prompt, _ string) bool {
		return p.SchemaName == "PromptRepresentation"
	}, answer: func(_ *Prompt, text string) Answer {
		peer, _ := between(text, "Target peer:", "Messages to analyze:") // a line of its own
		peer = strings.TrimSpace(peer)
		said, _ := between(text, "<messages>", "</messages>") // the rules above speak of <messages>, too
		explicit := []any{}
		for _, t := range Turns(said) {
			if t.Speaker != peer {
				continue
			}
			for _, s := range ReadAll(peer, t.Text) {
				explicit = append(explicit, map[string]any{"content": s.Fact})
			}
		}
		return Answer{Text: toJSON(map[string]any{"explicit": explicit})}
	}},
	{purpose: "honcho.summary", match: func(p *Prompt, text string) bool {
		return len(p.Tools) == 0 && strings.Contains(text, "<previous_summary>") &&
			strings.Contains(text, "<conversation>")
	}, answer: func(_ *Prompt, text string) Answer {
		var facts []string
		for _, line := range strings.Split(tagged(text, "conversation"), "\n") {
			speaker, said, _ := strings.Cut(line, ": ") // "user-mara: I like tea."
			for _, s := range ReadAll(speaker, said) {
				facts = append(facts, s.Fact+".")
			}
		}
		return Answer{Text: clip("Summary. "+strings.Join(facts, " "), 2000)}
	}},
	{purpose: "honcho.dream", match: func(p *Prompt, _ string) bool {
		return p.Has("create_observations_deductive") || p.Has("create_observations_inductive") ||
			p.Has("update_peer_card")
	}, answer: func(*Prompt, string) Answer { return Answer{Text: "Nothing to add."} }},
	{purpose: "honcho.dialectic", match: func(p *Prompt, _ string) bool {
		return p.Has("search_memory") || p.Has("grep_messages")
	},
		answer: func(p *Prompt, _ string) Answer {
			return Answer{Text: "As far as I know: " + clip(p.Last("user"), 300)}
		}},
}
