package mem0

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/internal/test/fakes/embed"
)

// platformKeys are what the platform filters by at the top level.
var platformKeys = strings.Fields("AND OR NOT user_id agent_id app_id run_id created_at updated_at timestamp " +
	"expiration_date text categories metadata keywords_search memory_ids keywords")

func platformFilter(v any) (func(*row) bool, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, detailed("filters: want an object")
	}
	var list []func(*row) bool
	for key, value := range object {
		if !slices.Contains(platformKeys, key) {
			return nil, detailed("filters: unknown field " + key)
		}
		f, err := platformCondition(key, value)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return func(r *row) bool { return !slices.ContainsFunc(list, func(f func(*row) bool) bool { return !f(r) }) }, nil
}

func platformCondition(key string, value any) (func(*row) bool, error) {
	switch key {
	case "AND", "OR", "NOT":
		parts, _ := value.([]any)
		var list []func(*row) bool
		for _, part := range parts {
			f, err := platformFilter(part)
			if err != nil {
				return nil, err
			}
			list = append(list, f)
		}
		return func(r *row) bool {
			hits := 0
			for _, f := range list {
				if f(r) {
					hits++
				}
			}
			return key == "AND" && hits == len(list) || key == "OR" && hits > 0 || key == "NOT" && hits == 0
		}, nil
	case "created_at":
		bounds, _ := value.(map[string]any)
		return func(r *row) bool {
			at, err := time.Parse(time.RFC3339, r.created)
			upper, wrong := time.Parse(time.RFC3339, textOf(bounds["lte"]))
			return err == nil && (wrong != nil || !at.After(upper))
		}, nil
	case "metadata":
		wanted, _ := value.(map[string]any)
		return func(r *row) bool {
			for k, v := range wanted {
				if operator, ok := v.(map[string]any); ok {
					v = operator["eq"]
				} else if v == "*" {
					continue
				}
				if textOf(r.metadata[k]) != textOf(v) {
					return false
				}
			}
			return true
		}, nil
	}
	return func(r *row) bool {
		own := map[string]string{"user_id": r.user, "agent_id": r.agent, "run_id": r.run}[key]
		switch {
		case value == "*":
			return own != ""
		case own == "" && key == "user_id":
			return true // for DropUser: records without a user are found by their run
		}
		return own == value
	}, nil
}

func (p *Platform) matching(body []byte) (map[string]any, []*row, error) {
	var q map[string]any
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, nil, detailed("not JSON")
	}
	for _, id := range []string{"user_id", "agent_id", "run_id", "app_id"} {
		if q[id] != nil {
			return nil, nil, detailed(id + ": pass it in filters")
		}
	}
	filter, err := platformFilter(q["filters"])
	if err != nil {
		return nil, nil, err
	}
	var rows []*row
	for _, r := range p.store.rows {
		if filter(r) && (q["show_expired"] == true || !r.expired(p.store.now())) {
			rows = append(rows, r)
		}
	}
	return q, rows, nil
}

func (p *Platform) item(r *row, run string) map[string]any {
	item := map[string]any{"id": r.id, "memory": r.text, "user_id": nil, "agent_id": nil, "app_id": nil, run: r.run,
		"metadata": r.metadata, "categories": []string{},
		"created_at": r.created, "updated_at": nil, "expiration_date": nil}
	if r.user != "" {
		item["user_id"] = r.user
	}
	return item
}

func (p *Platform) search(body []byte) (any, error) {
	q, rows, err := p.matching(body)
	if err != nil {
		return nil, err
	}
	text, _ := q["query"].(string)
	top, ok := q["top_k"].(float64)
	threshold, given := q["threshold"].(float64)
	switch {
	case text == "":
		return nil, detailed("query: this field may not be blank")
	case !ok:
		top = 10
	case top < 1 || top > 1000:
		return nil, detailed("top_k: want 1 to 1000")
	}
	if !given {
		threshold = 0.1
	}
	near := vector(text)
	items := []map[string]any{}
	for _, r := range rows {
		semantic := math.Max(0, embed.Cosine(near, r.vector))
		if semantic >= threshold {
			item := p.item(r, "run_id")
			item["score"], item["score_breakdown"] = semantic,
				map[string]any{"semantic": semantic, "bm25": 0.0, "entity": 0.0}
			items = append(items, item)
		}
	}
	slices.SortStableFunc(items, func(a, b map[string]any) int {
		return int(math.Copysign(1, b["score"].(float64)-a["score"].(float64)) * boolInt(a["score"] != b["score"]))
	})
	return map[string]any{"results": items[:min(len(items), int(top))]}, nil
}

func boolInt(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
