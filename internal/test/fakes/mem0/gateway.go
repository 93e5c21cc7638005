package mem0

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/internal/test/fakes/embed"
)

// Gateway is what memhost's gateway over mem0ai has beyond mem0's own server (gateways/mem0). The zero value has none
// of what is configured there.
type Gateway struct {
	// Reranker is the provider's name, "" for none. RerankFails makes each of its calls fail.
	Reranker    string
	RerankFails bool
	// ObservationDate is the patch; Entities "off", "model" or "failed", "" is off; NoKeywords: the store has no
	// keyword signal.
	ObservationDate bool
	Entities        string
	NoKeywords      bool
	// Uptime is for how long the process has run; 0: it does not say, as gateways before 0.3.
	Uptime time.Duration
}

// gatewayRoutes are the routes that mem0's own server answers with 404.
func (s *OSS) gatewayRoutes(r *http.Request, body []byte) map[string]func() (any, error) {
	if s.options.Gateway == nil {
		return nil
	}
	return map[string]func() (any, error){
		"GET /capabilities":   func() (any, error) { return s.capabilities(), nil },
		"POST /memories/list": func() (any, error) { return s.listFiltered(body) },
		"GET /messages":       func() (any, error) { return s.lastMessages(r) },
	}
}

func (s *OSS) capabilities() any {
	g := s.options.Gateway
	store, _ := s.config["vector_store"].(map[string]any)["provider"].(string)
	patches := []string{}
	if g.ObservationDate {
		patches = append(patches, "observation_date")
	}
	var reranker any
	if g.Reranker != "" {
		reranker = g.Reranker
	}
	reported := map[string]any{"gateway": "0.2.0", "library": "2.2.1", "store": store, "exact": s.options.Exact,
		"keyword_search": !g.NoKeywords, "reranker": reranker, "explain": true,
		"procedural": true, "vision": false, "entities": cmp.Or(g.Entities, "off"), "embedded": false, "max_rows": nil,
		"patches": patches}
	if g.Uptime > 0 {
		reported["uptime_ms"] = g.Uptime.Milliseconds()
	}
	return reported
}

// refuseAs is a refusal that only the gateway makes.
func refuseAs(code, detail string) *problem {
	return &problem{status: 400, body: map[string]any{"detail": detail, "code": code}}
}

// checkScope refuses what could leave a scope: an id "*", and ids inside of conditions.
func checkScope(filters []member) error {
	for _, m := range filters {
		if strings.HasSuffix(m.key, "_id") && !strings.HasPrefix(m.key, "mh_") {
			if id := ""; json.Unmarshal(m.value, &id) != nil || strings.TrimSpace(id) == "*" {
				return refuseAs("id_refused", m.key+": '*' would open every user's memories")
			}
			continue
		}
		if text := string(m.value); (m.key == "AND" || m.key == "OR" || m.key == "NOT") &&
			strings.Contains(text, `_id":`) {
			return refuseAs("id_refused", "filters."+m.key+": an id in here would take the place of the scope's")
		}
	}
	return nil
}

// listFiltered is POST /memories/list: what fits the filters, as many as are asked for.
func (s *OSS) listFiltered(body []byte) (any, error) {
	fields, err := readObject(body)
	if err != nil {
		return nil, err
	}
	top, expired := 20, false
	_ = json.Unmarshal(fields["top_k"], &top)
	_ = json.Unmarshal(fields["show_expired"], &expired)
	filters, err := searchFilters(fields)
	if err != nil {
		return nil, err
	}
	if err := checkScope(filters); err != nil {
		return nil, err
	}
	fits, err := readFilters(filters)
	if err != nil {
		return nil, err
	}
	if err := s.database(); err != nil {
		return nil, err
	}
	s.touched = true
	items := []map[string]any{}
	for _, found := range s.rows {
		ok, err := fits(found)
		if err != nil {
			return nil, err
		}
		if (ok || s.faults.Leak) && len(items) < top && (expired || !found.expired(s.now())) {
			items = append(items, found.item(nil))
		}
	}
	return map[string]any{"results": items}, nil
}

// lastMessages is GET /messages. The extractor of this fake reads no earlier message; what counts is that a scope's
// are kept and removed.
func (s *OSS) lastMessages(r *http.Request) (any, error) {
	ids, err := idsOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	list := s.buffer[scopeKey(ids)]
	if list == nil {
		list = []map[string]any{}
	}
	return map[string]any{"results": list}, nil
}

func scopeKey(ids map[string]string) string {
	parts := make([]string, 0, len(ids))
	for name, id := range ids {
		parts = append(parts, name+"="+id)
	}
	slices.Sort(parts)
	return strings.Join(parts, "&")
}

// keepMessages remembers a scope's last ten messages, as an extracting add does.
func (s *OSS) keepMessages(a *addRequest) {
	key := scopeKey(a.ids)
	for _, m := range a.Messages {
		s.buffer[key] = append(s.buffer[key], map[string]any{"role": m.Role, "content": m.Content, "name": nil})
	}
	s.buffer[key] = s.buffer[key][max(0, len(s.buffer[key])-10):]
}

// clearBuffer removes the buffers of the scopes that the ids cover.
func (s *OSS) clearBuffer(ids map[string]string) (removed int) {
	for key, list := range s.buffer {
		covered := true
		for _, part := range strings.Split(scopeKey(ids), "&") {
			covered = covered && slices.Contains(strings.Split(key, "&"), part)
		}
		if covered {
			removed += len(list)
			delete(s.buffer, key)
		}
	}
	return removed
}

// rerankRequest is what a search may say to the gateway beyond mem0's own fields.
type rerankRequest struct {
	Rerank  bool   `json:"rerank"`
	Pool    int    `json:"rerank_pool"`
	OnError string `json:"rerank_on_error"`
}

// searchReranked searches for the pool, reranks all of it by the words that query and memory share, and cuts.
func (s *OSS) searchReranked(q *searchRequest, ask rerankRequest) (any, error) {
	g := s.options.Gateway
	if g.Reranker == "" {
		return nil, refuseAs("rerank_not_configured",
			"rerank: this gateway has no reranker; put one under mem0.reranker")
	}
	top := q.topK
	q.topK = max(top, ask.Pool)
	hits, err := s.rank(q)
	if err != nil {
		return nil, err
	}
	rerank := map[string]any{"applied": true, "provider": g.Reranker, "candidates": len(hits), "calls": len(hits),
		"failed": 0}
	items := s.hitItems(q, hits)
	switch {
	case g.RerankFails && len(hits) > 0 && ask.OnError != "plain":
		return nil, &problem{status: 502, body: map[string]any{"detail": "The reranker failed; nothing is in its " +
			"order.", "code": "rerank_failed", "request_id": "1a2b3c4d"},
			header: map[string]string{"X-Request-ID": "1a2b3c4d"}}
	case g.RerankFails && len(hits) > 0:
		rerank["applied"], rerank["calls"], rerank["failed"] = false, 1, 1
	default:
		words := embed.Words(q.query)
		for i, h := range hits {
			shared := 0
			for _, w := range words {
				if slices.Contains(h.row.words, w) {
					shared++
				}
			}
			items[i]["rerank_score"] = float64(shared) / float64(max(1, len(words)))
		}
		slices.SortStableFunc(items, func(a, b map[string]any) int {
			return cmp.Compare(b["rerank_score"].(float64), a["rerank_score"].(float64))
		})
	}
	return map[string]any{"results": items[:min(top, len(items))], "rerank": rerank}, nil
}
