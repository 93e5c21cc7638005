package llm

// Cognee (cognee 1.6.5, cognee/shared/data_models.py): the JSON schema's name says that a chunk's graph is wanted, and
// the last message of the user is the chunk.
var cogneeRules = []promptRule{{purpose: "cognee.graph", answer: cogneeGraph, match: func(p *Prompt, _ string) bool {
	return p.SchemaName == "KnowledgeGraph"
}}}

type cogneeNode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
}

type cogneeEdge struct {
	Source      string `json:"source_node_id"`
	Target      string `json:"target_node_id"`
	Relation    string `json:"relationship_name"`
	Description string `json:"description"`
}

// cogneeGraph names the speakers and what each statement is about, with an edge for each statement.
func cogneeGraph(p *Prompt, _ string) Answer {
	nodes, edges, seen := []cogneeNode{}, []cogneeEdge{}, map[string]bool{}
	add := func(name, kind string) {
		if !seen[name] {
			seen[name] = true
			nodes = append(nodes, cogneeNode{ID: name, Name: name, Type: kind, Description: name})
		}
	}
	for _, s := range episodeStatements(p.Last("user")) {
		about := entityOf(s)
		if s.Speaker == "" || about == "" {
			continue
		}
		add(s.Speaker, "Person")
		add(about, "Thing")
		edges = append(edges, cogneeEdge{Source: s.Speaker, Target: about, Relation: s.Relation, Description: s.Fact})
	}
	return Answer{Text: toJSON(map[string]any{"nodes": nodes, "edges": edges})}
}
