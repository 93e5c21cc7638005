package mem0

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/memhost/memhost/internal/test/fakes/embed"
)

// searchRequest is the body of POST /search.
type searchRequest struct {
	query       string
	topK        int
	threshold   float64
	explain     bool
	showExpired bool
	filter      condition
	scope       condition // the filter without what is said of metadata
}

// readSearch checks a body as the real server does.
func readSearch(body []byte) (*searchRequest, error) {
	fields, err := readObject(body)
	if err != nil {
		return nil, err
	}
	q := &searchRequest{topK: 20, threshold: 0.1}
	if fields["query"] == nil {
		var input any
		_ = json.Unmarshal(body, &input)
		return nil, refuse(422, []any{map[string]any{"type": "missing", "loc": []string{"body", "query"},
			"msg": "Field required", "input": input}})
	}
	if json.Unmarshal(fields["query"], &q.query) != nil {
		return nil, wrongType("query", fields["query"])
	}
	var top *int
	if raw := fields["top_k"]; raw != nil && json.Unmarshal(raw, &top) != nil {
		return nil, invalidBody("int_parsing", "Input should be a valid integer, unable to parse string as an integer",
			raw, "top_k")
	}
	if top != nil {
		q.topK = *top
	}
	for name, into := range map[string]any{"threshold": &q.threshold, "explain": &q.explain,
		"show_expired": &q.showExpired} {
		if raw := fields[name]; raw != nil && json.Unmarshal(raw, into) != nil {
			return nil, invalidBody("type", "Input is invalid", raw, name)
		}
	}
	filters, err := searchFilters(fields)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.TrimSpace(q.query) == "":
		return nil, refuse(400, "Invalid query: cannot be empty or whitespace-only.")
	case q.topK < 0:
		return nil, refuse(400, "Invalid top_k: "+textOf(q.topK)+". Must be a non-negative integer.")
	case q.threshold < 0 || q.threshold > 1:
		return nil, refuse(400, "Invalid threshold: "+textOf(q.threshold)+".0. Must be between 0 and 1 (inclusive).")
	case len(q.query) > embedderLimit:
		return nil, upstream("provider_bad_request")
	}
	if q.filter, err = readFilters(filters); err != nil {
		return nil, err
	}
	q.scope, err = all(slices.DeleteFunc(slices.Clone(filters), func(m member) bool {
		return !strings.HasSuffix(m.key, "_id") || strings.HasPrefix(m.key, "mh_")
	}))
	return q, err
}

// searchFilters reads filters and the deprecated top-level ids, which override them.
func searchFilters(fields map[string]json.RawMessage) ([]member, error) {
	var filters []member
	if raw := fields["filters"]; raw != nil && string(raw) != "null" {
		list, err := members(raw)
		if err != nil {
			return nil, invalidBody("dict_type", "Input should be a valid dictionary", raw, "filters")
		}
		filters = list
	}
	names := []string{"user_id", "agent_id", "run_id"}
	for _, name := range names {
		if id := ""; fields[name] != nil && json.Unmarshal(fields[name], &id) == nil && id != "" {
			filters = append(slices.DeleteFunc(filters, func(m member) bool {
				return m.key == name
			}), member{name, fields[name]})
		}
	}
	scoped := false
	for i, m := range filters {
		if !slices.Contains(names, m.key) {
			continue
		}
		scoped = true
		if string(m.value) == "null" {
			return nil, upstream("unknown")
		}
		var value any
		_ = json.Unmarshal(m.value, &value)
		text := textOf(value)
		if list, ok := value.([]any); ok {
			text = strings.Repeat("x ", len(list)-1) + "['x']" // Python's text of a list: blanks between its elements
		} else if _, ok := value.(map[string]any); ok {
			text = "{'in': []}"
		}
		id, err := trimID(m.key, text)
		if err != nil {
			return nil, err
		}
		filters[i].value, _ = json.Marshal(id)
	}
	if !scoped {
		return nil, refuse(400, "filters must contain at least one of: user_id, agent_id, run_id. Example: "+
			"filters={'user_id': 'u1'}")
	}
	return filters, nil
}

// search is POST /search: nearest rows, gated by the semantic score; if any row has every word of the query, all scores
// are halved.
func (s *OSS) search(body []byte) (any, error) {
	q, err := readSearch(body)
	switch {
	case err != nil:
		return nil, err
	case s.faults.Embedder != "":
		return nil, upstream(s.faults.Embedder)
	case s.faults.Database != "":
		return nil, s.database()
	}
	s.touched = true
	if s.faults.Approximate {
		return map[string]any{"results": []map[string]any{}}, nil
	}
	var ask rerankRequest
	if s.options.Gateway != nil && json.Unmarshal(body, &ask) == nil && ask.Rerank {
		return s.searchReranked(q, ask)
	}
	hits, err := s.rank(q)
	if err != nil {
		return nil, err
	}
	return map[string]any{"results": s.hitItems(q, hits)}, nil
}

func (s *OSS) hitItems(q *searchRequest, hits []hit) []map[string]any {
	items := []map[string]any{}
	for _, h := range hits {
		score := map[string]any{"score": h.final}
		if q.explain {
			score["score_details"] = map[string]any{"semantic_score": h.semantic, "bm25_score": h.keyword,
				"entity_boost": 0.0, "raw_score": h.semantic + h.keyword,
				"max_possible_score": h.divisor, "final_score": h.final, "threshold": q.threshold}
		}
		items = append(items, h.row.item(score))
	}
	return items
}

// hit is a row with its scores.
type hit struct {
	row                               *row
	semantic, keyword, divisor, final float64
}

// keywordScore is what a full-text hit came to in the recordings: almost nothing.
const keywordScore = 0.0313709322481939

func (s *OSS) rank(q *searchRequest) ([]hit, error) {
	near, words := vector(q.query), embed.Words(q.query)
	keywords := !strings.Contains(q.query, "\x00") // the database refuses such a query, and mem0 continues without keywords
	divisor := 1.0
	var hits []hit
	now := s.now()
	for _, r := range s.rows {
		filter := q.filter
		if s.faults.IgnoreLabels {
			filter = q.scope
		}
		fits, err := filter(r)
		if err != nil {
			return nil, err
		}
		if !fits && !s.faults.Leak || r.expired(now) && !q.showExpired {
			continue
		}
		h := hit{row: r, semantic: math.Max(0, embed.Cosine(near, r.vector))}
		if keywords && len(words) > 0 && holdsAll(r.words, words) {
			h.keyword, divisor = keywordScore, 2
		}
		hits = append(hits, h)
	}
	hits = slices.DeleteFunc(hits, func(h hit) bool { return h.semantic < q.threshold })
	for i := range hits {
		hits[i].divisor = divisor
		hits[i].final = math.Min(1, (hits[i].semantic+hits[i].keyword)/divisor)
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.final, a.final) })
	return hits[:min(len(hits), q.topK)], nil
}

func holdsAll(text, words []string) bool {
	for _, w := range words {
		if !slices.Contains(text, w) {
			return false
		}
	}
	return true
}
