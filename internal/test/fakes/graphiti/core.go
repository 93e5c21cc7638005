package graphiti

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Gateway is memhost-gateway-graphiti: graphiti-core itself over HTTP, by its API.md.
func (s *Server) Gateway() http.Handler {
	mux := http.NewServeMux()
	g := "/v1/groups/{group}"
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, object{"status": "ok"})
	})
	for pattern, handle := range map[string]func(*call){
		"GET /v1/ready": (*call).ready, "GET /v1/info": (*call).info, "GET /v1/usage": (*call).usage,
		"GET " + g + "/sagas": func(c *call) {
			c.page("sagas")
		}, "POST " + g + "/sagas/{uuid}/summary": (*call).summarize,
		"POST " + g + "/episodes": (*call).add, "POST " + g + "/episodes/bulk": (*call).bulk, "POST " + g +
			"/triplets": (*call).triplet,
		"GET " + g + "/jobs": (*call).jobs, "GET " + g + "/jobs/{job}": (*call).job, "DELETE " + g +
			"/jobs/{job}": (*call).forget,
		"POST " + g + "/search_":           (*call).search,
		"GET " + g + "/episodes/{uuid}":    func(c *call) { c.one("episode") },
		"GET " + g + "/nodes/{uuid}":       func(c *call) { c.one("node") },
		"GET " + g + "/edges/{uuid}":       func(c *call) { c.one("edge") },
		"POST " + g + "/episodes/lookup":   func(c *call) { c.lookup("episodes") },
		"POST " + g + "/nodes/lookup":      func(c *call) { c.lookup("nodes") },
		"POST " + g + "/edges/lookup":      func(c *call) { c.lookup("edges") },
		"GET " + g + "/episodes":           func(c *call) { c.page("episodes") },
		"GET " + g + "/nodes":              func(c *call) { c.page("nodes") },
		"GET " + g + "/edges":              func(c *call) { c.page("edges") },
		"POST " + g + "/episodes/retrieve": (*call).last, "POST " + g + "/episodes/contents": (*call).contents,
		"DELETE " + g + "/episodes/{uuid}": (*call).dropEpisode,
		"DELETE " + g + "/edges/{uuid}":    func(c *call) { c.drop("edge") },
		"DELETE " + g + "/nodes/{uuid}":    func(c *call) { c.drop("node") },
		"DELETE " + g:                      (*call).clear, "POST " + g + "/communities": (*call).communities, "GET " +
			g: (*call).group_,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.admit(w, r, handle) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			refuse(w, 404, "no_such_route", "no such route", nil)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// call is one request to the gateway, under the server's lock.
type call struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	group string
	body  object
}

func refuse(w http.ResponseWriter, status int, code, message string, details object) {
	if details == nil {
		details = object{}
	}
	answer(w, status, object{"error": object{"code": code, "message": message, "details": details}})
}

func (c *call) refuse(status int, code, message string, details object) {
	refuse(c.w, status, code, message, details)
}

func (c *call) say(body object) { answer(c.w, 200, body) }

func (c *call) absent(kind, id string) {
	c.refuse(404, "not_found", kind+" "+id+" is not in this group", object{"kind": kind, "id": id})
}

var coreGroup = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)

// admit checks token, group, body and database.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, handle func(*call)) {
	c := &call{s: s, w: w, r: r, group: r.PathValue("group")}
	if t := s.options.Core.Token; t != "" && r.Header.Get("Authorization") != "Bearer "+t {
		c.refuse(401, "unauthorized", "no token, or another one", nil)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/v1/groups/") && !coreGroup.MatchString(c.group) {
		c.refuse(422, "invalid_group_id", "not a group id", object{"group_id": c.group})
		return
	}
	if r.Method == http.MethodPost {
		data, err := io.ReadAll(r.Body)
		if err != nil || json.NewDecoder(bytes.NewReader(data)).Decode(&c.body) != nil {
			c.refuse(422, "invalid_request", "the body is no JSON object", object{"errors": []any{}})
			return
		}
		for name, v := range c.body { // null and absent are the same
			if v == nil {
				delete(c.body, name)
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work()
	if s.down && r.URL.Path != "/v1/info" {
		c.refuse(503, "database_unavailable", "no connection to the database",
			object{"exception": "ServiceUnavailable", "stored": "nothing"})
		return
	}
	handle(c)
}

// only checks that the body has no other fields than those named, and the required ones, which have a star.
func (c *call) only(fields string) bool {
	names := strings.Fields(fields)
	wrong := ""
	for name := range c.body {
		if !slices.Contains(names, name) && !slices.Contains(names, name+"*") {
			wrong = name
		}
	}
	for _, name := range names {
		if required, ok := strings.CutSuffix(name, "*"); ok && c.body[required] == nil {
			wrong = required
		}
	}
	if wrong != "" {
		c.refuse(422, "invalid_request", "the request is wrong",
			object{"errors": []any{object{"path": wrong, "message": "unknown or missing field"}}})
	}
	return wrong == ""
}

func (c *call) ready() {
	c.say(object{"status": "ready", "database": "ok", "accepting": true, "jobs": object{}, "waiting": 0})
}

// recipes are the library's 16: what each kind is searched and ranked by.
var recipes = func() map[string]object {
	kinds := map[string][]string{"COMBINED": {"edge", "node", "episode", "community"}, "EDGE": {"edge"},
		"NODE": {"node"}, "COMMUNITY": {"community"}}
	rerankers := map[string]string{"RRF": "reciprocal_rank_fusion", "MMR": "mmr", "CROSS_ENCODER": "cross_encoder",
		"NODE_DISTANCE": "node_distance", "EPISODE_MENTIONS": "episode_mentions"}
	all := map[string]object{}
	for prefix, parts := range kinds {
		for suffix, reranker := range rerankers {
			if (prefix == "COMBINED" || prefix == "COMMUNITY") &&
				(suffix == "NODE_DISTANCE" || suffix == "EPISODE_MENTIONS") {
				continue
			}
			config := object{}
			for _, kind := range parts {
				part := object{"search_methods": []any{"bm25", "cosine_similarity"}, "reranker": reranker}
				if prefix == "COMBINED" && suffix == "MMR" {
					part["mmr_lambda"] = 1.0
				}
				if kind == "episode" {
					part["search_methods"] = []any{"bm25"}
					if suffix == "MMR" {
						part["reranker"] = "reciprocal_rank_fusion"
					}
				}
				config[kind+"_config"] = part
			}
			all[prefix+"_HYBRID_SEARCH_"+suffix] = config
		}
	}
	return all
}()

func recipeNames() []string {
	var names []string
	for name := range recipes {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// WriteSeconds is how long the gateway lets a write take.
const WriteSeconds = 900

func (c *call) info() {
	types := func(names []string) object {
		o := object{}
		for _, name := range names {
			o[name] = object{"description": name, "properties": object{}}
		}
		return o
	}
	o := c.s.options.Core
	c.say(object{"gateway": "0.1.0", "graphiti_core": "0.29.3", "database": "neo4j",
		"models":  object{"llm": "stub", "small": "stub", "embedder": "stub", "dimensions": 1024, "reranker": nil},
		"recipes": recipeNames(), "sources": []any{"json", "message", "text"}, "entity_types": types(o.EntityTypes),
		"edge_types": types(o.EdgeTypes),
		"queue":      !o.NoQueue, "reranker": !o.NoReranker, "communities": true,
		"limits": object{"body_bytes": 16 << 20, "bulk_episodes": o.BulkMost, "results": 1000, "lookup": 1000,
			"page": 1000, "write_seconds": WriteSeconds}})
}

// usage counts nothing: the fake asks no model.
func (c *call) usage() {
	c.say(object{"counted": true, "prompts": []any{}, "total": object{"input_tokens": 0, "output_tokens": 0}})
}

// summarize gives a saga its group's texts for a summary.
func (c *call) summarize() {
	uuid := c.r.PathValue("uuid")
	for _, n := range c.s.graph.sagas {
		if n.group != c.group || n.uuid != uuid {
			continue
		}
		n.summary = ""
		for _, e := range c.s.graph.episodes {
			if e.group == c.group {
				n.summary += e.content + " "
			}
		}
		c.say(object{"group_id": c.group, "saga": c.s.sagaObject(n)})
		return
	}
	c.absent("saga", uuid)
}

func (s *Server) sagaObject(n *entity) object {
	return object{"uuid": n.uuid, "name": n.name, "group_id": n.group, "labels": []any{"Saga"}, "created_at": nil,
		"summary": n.summary, "first_episode_uuid": nil,
		"last_episode_uuid": nil, "last_summarized_at": nil, "last_summarized_episode_valid_at": nil}
}

// coreTime is a time as the gateway writes it.
func coreTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.999999Z")
}

func (s *Server) episodeObject(e *episode) object {
	return object{"uuid": e.uuid, "name": e.name, "group_id": e.group, "labels": []any{},
		"created_at": coreTime(e.createdAt), "source": e.source, "source_description": e.about,
		"content": e.content, "valid_at": coreTime(e.validAt), "entity_edges": texts(e.facts), "episode_metadata": nil}
}

func (s *Server) nodeObject(n *entity) object {
	labels := []string{"Entity"}
	if n.label != "" {
		labels = append(labels, n.label)
	}
	return object{"uuid": n.uuid, "name": n.name, "group_id": n.group, "labels": labels,
		"created_at": coreTime(n.createdAt), "summary": n.summary, "attributes": object{}}
}

func (s *Server) edgeObject(f *fact) object {
	return object{"uuid": f.uuid, "group_id": f.group, "source_node_uuid": f.source, "target_node_uuid": f.target,
		"created_at": coreTime(f.createdAt), "name": f.relation, "fact": f.text,
		"episodes": texts(f.episodes), "expired_at": coreTime(f.expiredAt), "valid_at": coreTime(f.validAt),
		"invalid_at": coreTime(f.invalidAt), "reference_time": coreTime(f.referenceTime),
		"attributes": object{}}
}

func (s *Server) communityObject(n *entity) object {
	return object{"uuid": n.uuid, "name": n.name, "group_id": n.group, "labels": []string{"Community"},
		"created_at": coreTime(n.createdAt), "summary": n.summary}
}

// all are the group's objects of a kind, by uuid.
func (c *call) all(kind string) []object {
	list := []object{}
	switch kind {
	case "episode", "episodes":
		for _, e := range c.s.graph.episodes {
			if e.group == c.group {
				list = append(list, c.s.episodeObject(e))
			}
		}
	case "node", "nodes":
		for _, n := range c.s.graph.entities {
			if n.group == c.group {
				list = append(list, c.s.nodeObject(n))
			}
		}
	case "sagas":
		for _, n := range c.s.graph.sagas {
			if n.group == c.group {
				list = append(list, c.s.sagaObject(n))
			}
		}
	default:
		for _, f := range c.s.graph.facts {
			if f.group == c.group {
				list = append(list, c.s.edgeObject(f))
			}
		}
	}
	return list
}

func (c *call) one(kind string) {
	uuid := c.r.PathValue("uuid")
	for _, o := range c.all(kind) {
		if o["uuid"] == uuid {
			c.say(object{kind: o})
			return
		}
	}
	c.absent(kind, uuid)
}

func (c *call) lookup(kind string) {
	by, wanted := "uuids", c.body["uuids"]
	field := "uuid"
	if names, ok := c.body["names"]; ok && kind == "episodes" {
		by, field, wanted = "names", "name", names
	}
	list, ok := wanted.([]any)
	if !ok || len(list) > 1000 || len(c.body) != 1 {
		c.refuse(422, "invalid_request", "the request is wrong",
			object{"errors": []any{object{"path": by, "message": "wrong"}}})
		return
	}
	found, missing := []any{}, []any{}
	all := c.all(kind)
	for _, want := range list {
		n := len(found)
		for _, o := range all {
			if o[field] == want {
				found = append(found, o)
			}
		}
		if len(found) == n {
			missing = append(missing, want)
		}
	}
	c.say(object{kind: found, "missing": missing})
}

func (c *call) page(kind string) {
	most, err := strconv.Atoi(c.r.URL.Query().Get("limit"))
	if err != nil {
		most = 100
	}
	cursor := c.r.URL.Query().Get("cursor")
	all := c.all(kind)
	sort.Slice(all, func(i, j int) bool { return all[i]["uuid"].(string) > all[j]["uuid"].(string) })
	list := []any{}
	var next any
	for _, o := range all {
		if cursor != "" && o["uuid"].(string) >= cursor {
			continue
		}
		if len(list) == most {
			next = list[most-1].(object)["uuid"]
			break
		}
		list = append(list, o)
	}
	c.say(object{kind: list, "next_cursor": next})
}

func (c *call) last() {
	if !c.only("reference_time* last_n source saga") {
		return
	}
	said, _ := c.body["reference_time"].(string)
	at, err := time.Parse(time.RFC3339Nano, said)
	if err != nil {
		c.refuse(422, "invalid_request", "reference_time is no time", nil)
		return
	}
	var list []*episode
	for _, e := range c.s.graph.episodes {
		if e.group == c.group && !e.validAt.After(at) && (c.body["source"] == nil || c.body["source"] == e.source) {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b *episode) int { return a.validAt.Compare(b.validAt) })
	n := 10
	if f, ok := c.body["last_n"].(float64); ok {
		n = int(f)
	}
	out := []any{}
	for _, e := range list[len(list)-min(n, len(list)):] {
		out = append(out, c.s.episodeObject(e))
	}
	c.say(object{"episodes": out})
}

func (c *call) contents() {
	list, _ := c.body["episode_uuids"].([]any)
	nodes, edges := []any{}, []any{}
	for _, v := range list {
		uuid, _ := v.(string)
		e := c.s.graph.episode(uuid)
		if e == nil || e.group != c.group {
			c.refuse(422, "reference_not_found", "no such episode",
				object{"field": "episode_uuids", "uuids": []any{uuid}})
			return
		}
		for _, f := range c.s.graph.facts {
			if slices.Contains(e.facts, f.uuid) {
				edges = append(edges, c.s.edgeObject(f))
			}
			if slices.Contains(f.episodes, uuid) {
				nodes = append(nodes, c.s.nodeObject(c.s.graph.entity(f.source)))
			}
		}
	}
	c.say(object{"nodes": nodes, "edges": edges})
}

func (c *call) counts() map[string]int {
	n := map[string]int{"episodes": len(c.all("episodes")), "nodes": len(c.all("nodes")), "edges": len(c.all("edges")),
		"communities": 0, "sagas": 0}
	for kind, list := range map[string][]*entity{"communities": c.s.graph.communities, "sagas": c.s.graph.sagas} {
		for _, e := range list {
			if e.group == c.group {
				n[kind]++
			}
		}
	}
	return n
}

func (c *call) group_() {
	c.say(object{"group_id": c.group, "counts": c.counts(), "jobs": c.s.coreCounts(c.group)})
}
