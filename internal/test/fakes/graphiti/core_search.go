package graphiti

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// search is search_: the four lists, each by its own part of the configuration.
func (c *call) search() {
	if !c.only("query* recipe config limit reranker_min_score center_node_uuid bfs_origin_node_uuids search_filter") {
		return
	}
	config, ok := c.config()
	if !ok || !c.filterable() {
		return
	}
	answer := object{"group_id": c.group}
	alignment := object{}
	query, _ := c.body["query"].(string)
	limit := 10
	if n, ok := config["limit"].(float64); ok {
		limit = int(n)
	}
	least, _ := config["reranker_min_score"].(float64)
	if c.s.provider {
		c.refuse(502, "llm_failed", "the embedder refused",
			object{"exception": "openai.BadRequestError", "status": 400})
		return
	}
	for _, kind := range [...][3]string{{"edge", "edges", "edge_reranker_scores"},
		{"node", "nodes", "node_reranker_scores"}, {"episode", "episodes", "episode_reranker_scores"},
		{"community", "communities", "community_reranker_scores"}} {
		items, scores := []object{}, []any{}
		part, configured := config[kind[0]+"_config"].(object)
		if configured && strings.TrimSpace(query) != "" {
			if part["reranker"] == "cross_encoder" && c.s.options.Core.NoReranker {
				c.refuse(422, "reranker_not_configured", "the gateway has no reranker", nil)
				return
			}
			if part["reranker"] == "cross_encoder" && c.s.reranker {
				c.refuse(502, "llm_failed", "the reranker failed", object{"exception": "openai.APIConnectionError"})
				return
			}
			if part["reranker"] == "node_distance" && c.body["center_node_uuid"] == nil {
				c.refuse(422, "center_node_required", "No center node provided for Node Distance reranker", nil)
				return
			}
			items, scores = c.ranked(kind[0], part, query, limit, least)
		}
		answer[kind[1]], answer[kind[2]] = items, scores
		alignment[kind[1]] = "aligned"
		if len(items) != len(scores) || kind[0] == "edge" &&
			(part["reranker"] == "episode_mentions" || part["reranker"] == "node_distance") {
			alignment[kind[1]] = "unaligned"
		}
	}
	answer["score_alignment"] = alignment
	c.say(answer)
}

// config is the request's search configuration.
func (c *call) config() (object, bool) {
	if config, ok := c.body["config"].(object); ok {
		for name, part := range config {
			inner, isPart := part.(object)
			known := []string{"edge_config", "node_config", "episode_config", "community_config", "limit",
				"reranker_min_score"}
			wrong := !slices.Contains(known, name)
			for field := range inner {
				wrong = wrong || isPart && !slices.Contains([]string{"search_methods", "reranker", "sim_min_score",
					"mmr_lambda", "bfs_max_depth"}, field)
			}
			if wrong || c.body["recipe"] != nil {
				c.refuse(422, "invalid_search_config", "unknown field "+name,
					object{"errors": []any{object{"path": name, "message": "unknown"}}})
				return nil, false
			}
		}
		return config, true
	}
	name, _ := c.body["recipe"].(string)
	if name == "" {
		name = "COMBINED_HYBRID_SEARCH_CROSS_ENCODER"
	}
	recipe, ok := recipes[name]
	if !ok {
		c.refuse(422, "unknown_recipe", `no recipe is called "`+name+`"`, object{"recipes": recipeNames()})
		return nil, false
	}
	config := maps.Clone(recipe)
	for _, field := range []string{"limit", "reranker_min_score"} {
		if c.body[field] != nil {
			config[field] = c.body[field]
		}
	}
	return config, true
}

// filterable refuses what the library would answer wrongly.
func (c *call) filterable() bool {
	filter, _ := c.body["search_filter"].(object)
	for name, v := range filter {
		list, _ := v.([]any)
		dates := slices.Contains([]string{"valid_at", "invalid_at", "created_at", "expired_at"}, name)
		wrong := len(list) == 0 || dates && len(list) != 1 || !dates &&
			!slices.Contains([]string{"node_labels", "edge_types", "edge_uuids"}, name)
		if wrong {
			c.refuse(422, "invalid_search_filter", "filter "+name,
				object{"errors": []any{object{"path": name, "message": "wrong"}}})
			return false
		}
	}
	return true
}

// passes applies the request's filters to a fact, or to an entity (its label alone).
func (c *call) passes(f *fact, labels ...string) bool {
	filter, _ := c.body["search_filter"].(object)
	for name, v := range filter {
		list, _ := v.([]any)
		switch name {
		case "node_labels":
			for _, label := range labels {
				if label != "Entity" && !slices.Contains(list, any(label)) && !slices.Contains(list, any("Entity")) ||
					label == "Entity" && !slices.Contains(list, any("Entity")) {
					return false
				}
			}
		case "edge_types":
			if f != nil && !slices.Contains(list, any(f.relation)) {
				return false
			}
		case "edge_uuids":
			if f != nil && !slices.Contains(list, any(f.uuid)) {
				return false
			}
		default:
			if f == nil {
				continue
			}
			at := map[string]time.Time{"valid_at": f.validAt, "invalid_at": f.invalidAt, "created_at": f.createdAt,
				"expired_at": f.expiredAt}[name]
			conditions, _ := list[0].([]any)
			for _, condition := range conditions {
				o, _ := condition.(object)
				if !holdsAt(at, o) {
					return false
				}
			}
		}
	}
	return true
}

func holdsAt(at time.Time, condition object) bool {
	said, _ := condition["date"].(string)
	date, _ := time.Parse(time.RFC3339Nano, said)
	switch condition["comparison_operator"] {
	case "IS NULL":
		return at.IsZero()
	case "IS NOT NULL":
		return !at.IsZero()
	}
	if at.IsZero() || date.IsZero() {
		return false
	}
	o := at.Compare(date)
	return map[any]bool{"=": o == 0, "<>": o != 0, ">": o > 0, "<": o < 0, ">=": o >= 0,
		"<=": o <= 0}[condition["comparison_operator"]]
}

// candidate is what a search may find.
type candidate struct {
	text string
	item object
	// source is a fact's source node, mentions how many episodes name it.
	uuid, source string
	mentions     int
}

func (c *call) candidates(kind string) []candidate {
	var list []candidate
	label := func(n *entity) string {
		if n == nil || n.label == "" {
			return "Entity"
		}
		return n.label
	}
	switch kind {
	case "edge":
		for _, f := range c.s.graph.facts {
			if f.group == c.group && c.passes(f, label(c.s.graph.entity(f.source)), label(c.s.graph.entity(f.target))) {
				list = append(list, candidate{f.relation + " " + f.text, c.s.edgeObject(f), f.uuid, f.source,
					len(f.episodes)})
			}
		}
	case "node":
		for _, n := range c.s.graph.entities {
			if n.group == c.group && c.passes(nil, label(n)) {
				mentions := 0
				for _, f := range c.s.graph.facts {
					if f.source == n.uuid || f.target == n.uuid {
						mentions += len(f.episodes)
					}
				}
				list = append(list, candidate{n.name + " " + n.summary, c.s.nodeObject(n), n.uuid, n.uuid, mentions})
			}
		}
	case "episode":
		for _, e := range c.s.graph.episodes {
			if e.group == c.group {
				list = append(list, candidate{e.content, c.s.episodeObject(e), e.uuid, "", 1})
			}
		}
	default:
		for _, n := range c.s.graph.communities {
			if n.group == c.group {
				list = append(list, candidate{n.name + " " + n.summary, c.s.communityObject(n), n.uuid, "", 0})
			}
		}
	}
	return list
}

// ranked finds one kind of items and scores them by the reranker: by nearness, by the distance to a node, by mentions.
// What a client can see of search.py besides the ranks is kept: which lists are truncated, and in which lists scores
// and items do not correspond.
func (c *call) ranked(kind string, part object, query string, limit int, least float64) ([]object, []any) {
	list := c.candidates(kind)
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = list[i].text
	}
	near, order := nearness(texts, query), rank(texts, query, len(texts))
	score := func(i int) float64 { return near[i] }
	if part["reranker"] == "node_distance" {
		score = func(i int) float64 { return c.distance(list[i].source) }
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(score(b), score(a)) })
	}
	items, scores := []object{}, []any{}
	seen := map[string]bool{}
	for _, i := range order {
		if score(i) < least || len(items) == limit {
			continue
		}
		items = append(items, list[i].item)
		switch {
		case part["reranker"] == "node_distance" && kind == "edge": // one score for each source node
			if !seen[list[i].source] {
				scores = append(scores, score(i))
			}
			seen[list[i].source] = true
		case part["reranker"] == "episode_mentions" && kind != "edge":
			if list[i].mentions == 0 {
				scores = append(scores, nil)
				continue
			}
			scores = append(scores, list[i].mentions)
		default:
			scores = append(scores, score(i))
		}
	}
	return items, scores
}

// distance scores a node by its distance to the request's center: 10 for itself, 1 for a neighbour.
func (c *call) distance(uuid string) float64 {
	center, _ := c.body["center_node_uuid"].(string)
	switch {
	case uuid == center:
		return 10
	case slices.ContainsFunc(c.s.graph.facts, func(f *fact) bool {
		return f.source == center && f.target == uuid || f.target == center && f.source == uuid
	}):
		return 1
	}
	return 0
}
