package graphiti

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// REST is the REST service (graph_service).
func (s *Server) REST() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthcheck", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, object{"status": "healthy"})
	})
	mux.HandleFunc("POST /messages", s.restMessages)
	mux.HandleFunc("POST /search", s.restSearch)
	mux.HandleFunc("GET /episodes/{group}", s.restEpisodes)
	mux.HandleFunc("GET /entity-edge/{uuid}", s.restFact)
	mux.HandleFunc("DELETE /entity-edge/{uuid}", s.restDelete("edge"))
	mux.HandleFunc("DELETE /episode/{uuid}", s.restDelete("node"))
	mux.HandleFunc("DELETE /group/{group}", s.restDeleteGroup)
	mux.HandleFunc("POST /clear", s.restClear)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		for _, m := range []string{"GET", "POST", "DELETE"} {
			other := r.Clone(r.Context())
			other.Method = m
			if _, pattern := mux.Handler(other); pattern != "" {
				answer(w, 405, object{"detail": "Method Not Allowed"})
				return
			}
		}
		answer(w, 404, object{"detail": "Not Found"})
	})
}

type object = map[string]any

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// failed is what FastAPI answers to an exception: no detail.
func failed(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusInternalServerError)
	_, _ = io.WriteString(w, "Internal Server Error")
}

func wrong(w http.ResponseWriter, kind, message string, input any, at ...any) {
	detail := object{"type": kind, "loc": at, "msg": message, "input": input}
	switch kind {
	case "literal_error":
		detail["ctx"] = object{"expected": "'user', 'assistant' or 'system'"}
	case "datetime_from_date_parsing":
		detail["ctx"] = object{"error": "input is too short"}
	case "json_invalid":
		detail["ctx"] = object{"error": "Expecting value"}
	}
	answer(w, 422, object{"detail": []any{detail}})
}

// readBody decodes a JSON object as FastAPI does.
func readBody(w http.ResponseWriter, r *http.Request) (object, bool) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		failed(w)
		return nil, false
	}
	var value any
	if r.Header.Get("Content-Type") != "application/json" {
		value = string(data)
	} else if err := json.Unmarshal(data, &value); err != nil {
		at := len(data)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && int(syntax.Offset) < len(data) {
			at = int(syntax.Offset)
		}
		wrong(w, "json_invalid", "JSON decode error", object{}, "body", at)
		return nil, false
	}
	body, ok := value.(object)
	if !ok {
		wrong(w, "model_attributes_type", "Input should be a valid dictionary or object to extract fields from", value,
			"body")
	}
	return body, ok
}

// wantText checks a required string.
func wantText(w http.ResponseWriter, in object, name string, at ...any) (string, bool) {
	value, has := in[name]
	text, ok := value.(string)
	at = append(slices.Clone(at), name)
	switch {
	case !has:
		wrong(w, "missing", "Field required", in, at...)
	case !ok:
		wrong(w, "string_type", "Input should be a valid string", value, at...)
	}
	return text, has && ok
}

func wantWhole(w http.ResponseWriter, value any, at ...any) (int, bool) {
	switch v := value.(type) {
	case float64:
		return int(v), true
	case string:
		if n, err := strconv.Atoi(v); err == nil {
			return n, true
		}
	}
	wrong(w, "int_parsing", "Input should be a valid integer, unable to parse string as an integer", value, at...)
	return 0, false
}

func (s *Server) restMessages(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	group, ok := wantText(w, body, "group_id", "body")
	if !ok {
		return
	}
	list, has := body["messages"].([]any)
	if !has {
		wrong(w, "missing", "Field required", body, "body", "messages")
		return
	}
	var jobs []job
	for i, m := range list {
		in, _ := m.(object)
		j, ok := s.message(w, in, i)
		if !ok {
			return
		}
		j.group = group
		jobs = append(jobs, j)
	}
	s.set(func() {
		for _, j := range jobs {
			s.take(&s.rest, j)
		}
	})
	answer(w, 202, object{"message": "Messages added to processing queue", "success": true})
}

// message reads one Message (dto/common.py).
func (s *Server) message(w http.ResponseWriter, in object, i int) (j job, ok bool) {
	at := []any{"body", "messages", i}
	content, ok := wantText(w, in, "content", at...)
	if !ok {
		return j, false
	}
	roleType, _ := in["role_type"].(string)
	if !slices.Contains([]string{"user", "assistant", "system"}, roleType) {
		wrong(w, "literal_error", "Input should be 'user', 'assistant' or 'system'", in["role_type"],
			append(at, "role_type")...)
		return j, false
	}
	role, has := in["role"]
	if !has {
		wrong(w, "missing", "Field required", in, append(at, "role")...)
		return j, false
	}
	speaker, _ := role.(string)
	j = job{source: "message", content: speaker + "(" + roleType + "): " + content, at: s.options.Now()}
	j.name, _ = in["name"].(string)
	j.about, _ = in["source_description"].(string)
	j.uuid, _ = in["uuid"].(string)
	switch at_ := in["timestamp"].(type) {
	case float64:
		j.at = time.UnixMilli(int64(at_ * 1000)).UTC()
	case string:
		var err error
		if j.at, j.naive, err = readTime(at_); err != nil {
			wrong(w, "datetime_from_date_parsing", "Input should be a valid datetime or date, input is too short", at_,
				append(at, "timestamp")...)
			return j, false
		}
	}
	return j, true
}

// readTime reads an ISO time; naive tells that it has no zone.
func readTime(text string) (at time.Time, naive bool, err error) {
	if at, err = time.Parse(time.RFC3339Nano, text); err == nil {
		return at, false, nil
	}
	at, err = time.Parse("2006-01-02T15:04:05.999999999", text)
	return at, true, err
}

func (s *Server) restSearch(w http.ResponseWriter, r *http.Request) {
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	groups, ok := body["group_ids"].([]any)
	if body["group_ids"] != nil && !ok {
		wrong(w, "list_type", "Input should be a valid list", body["group_ids"], "body", "group_ids")
		return
	}
	query, ok := wantText(w, body, "query", "body")
	if !ok {
		return
	}
	most := 10
	if value, has := body["max_facts"]; has {
		if most, ok = wantWhole(w, value, "body", "max_facts"); !ok {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work()
	facts, ok := s.find(groups, query, most)
	if !ok {
		failed(w)
		return
	}
	list := []any{}
	for _, f := range facts {
		list = append(list, s.restFactOf(f))
	}
	answer(w, 200, object{"facts": list})
}

// find is Graphiti.search: without groups, or with an empty one alone, it searches all of them.
func (s *Server) find(groups []any, query string, most int) ([]*fact, bool) {
	group := ""
	for _, g := range groups {
		text, _ := g.(string)
		if !validGroup(text) {
			return nil, false
		}
		group = text // the last one counts: the condition is not put in parentheses
	}
	if strings.TrimSpace(query) == "" {
		return nil, true
	}
	s.limit = max(most, 0)
	if most < 0 || s.down || s.provider || tooManyClauses(query) {
		return nil, false
	}
	return s.graph.search(group, query, most), true
}

func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.999999+00:00")
}

// zulu is pydantic's own way to write a time: in the zone that it was stored with, UTC as Z.
func zulu(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.Format("2006-01-02T15:04:05.999999Z07:00")
}

func (s *Server) restFactOf(f *fact) object {
	o := object{"uuid": f.uuid, "name": f.relation, "fact": f.text, "valid_at": stamp(f.validAt),
		"invalid_at": stamp(f.invalidAt),
		"created_at": stamp(f.createdAt), "expired_at": stamp(f.expiredAt)}
	if s.options.Head {
		o["source_node_uuid"], o["target_node_uuid"], o["episodes"] = f.source, f.target, f.episodes
	}
	return o
}

func (s *Server) restEpisodes(w http.ResponseWriter, r *http.Request) {
	var last any
	if r.URL.Query().Has("last_n") {
		last = r.URL.Query().Get("last_n")
	} else {
		wrong(w, "missing", "Field required", nil, "query", "last_n")
		return
	}
	n, ok := wantWhole(w, last, "query", "last_n")
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work()
	if n < 0 || s.down {
		failed(w)
		return
	}
	list := []*episode{}
	for _, e := range s.graph.episodes {
		if e.group == r.PathValue("group") && !e.naive && !e.validAt.After(s.options.Now()) {
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b *episode) int { return a.validAt.Compare(b.validAt) })
	list = list[len(list)-min(n, len(list)):]
	out := []any{}
	for _, e := range list {
		out = append(out, object{"uuid": e.uuid, "name": e.name, "group_id": e.group, "labels": []any{},
			"created_at": zulu(e.createdAt), "source": e.source,
			"source_description": e.about, "content": e.content, "valid_at": zulu(e.validAt),
			"entity_edges": texts(e.facts), "episode_metadata": nil})
	}
	answer(w, 200, out)
}

// texts is never null.
func texts(list []string) []string { return append([]string{}, list...) }

func (s *Server) restFact(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work()
	f := s.graph.fact(r.PathValue("uuid"))
	switch {
	case s.down:
		failed(w)
	case f == nil:
		answer(w, 404, object{"detail": "edge " + r.PathValue("uuid") + " not found"})
	default:
		answer(w, 200, s.restFactOf(f))
	}
}

func (s *Server) restDelete(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		uuid := r.PathValue("uuid")
		s.mu.Lock()
		defer s.mu.Unlock()
		s.work()
		drop, name := s.graph.dropFact, "Entity Edge deleted"
		if kind == "node" {
			drop, name = s.graph.dropEpisode, "Episode deleted"
		}
		switch {
		case s.down:
			failed(w)
		case !drop(uuid):
			answer(w, 404, object{"detail": kind + " " + uuid + " not found"})
		default:
			answer(w, 200, object{"message": name, "success": true})
		}
	}
}

func (s *Server) restDeleteGroup(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work()
	if s.down {
		failed(w)
		return
	}
	s.graph.clear(r.PathValue("group"))
	answer(w, 200, object{"message": "Group deleted", "success": true})
}

func (s *Server) restClear(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.graph = graph{}
	answer(w, 200, object{"message": "Graph cleared", "success": true})
}
