package memos

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// problem is an answer that is not a success: {code, message, data: null}, and for 422 a detail.
type problem struct {
	status  int
	message string
	detail  []map[string]any
}

func bad(message string) *problem { return &problem{status: 400, message: message} }

// invalid is what pydantic says about a field.
func invalid(path, field, kind, text string) *problem {
	return &problem{status: 422, message: "Parameter validation error on POST " + path + ": [body -> " + field + "] " +
		text + " (type: " + kind + ")",
		detail: []map[string]any{{"type": kind, "loc": []string{"body", field}, "msg": text}}}
}

// object is a JSON object.
type object = map[string]any

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	before := s.before
	s.seen = append(s.seen, Request{r.Method, r.URL.Path, r.URL.RawQuery, bytes.Clone(body)})
	s.mu.Unlock()
	if before != nil && before(w, r, body) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work()
	if strings.HasSuffix(r.URL.Path, "/") && r.URL.Path != "/" {
		w.Header().Set("Location", strings.TrimSuffix(r.URL.Path, "/"))
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	if r.Method == http.MethodGet {
		s.serveGet(w, r)
		return
	}
	handle, known := s.posts()[r.URL.Path]
	switch {
	case r.URL.Path == "/product/scheduler/wait":
		write(w, 200, s.wait(r.URL.Query().Get("user_name")))
	case !known && s.isGet(r.URL.Path):
		write(w, 405, object{"detail": "Method Not Allowed"})
	case !known:
		write(w, 404, object{"detail": "Not Found"})
	case !utf8.Valid(body):
		write(w, 400, object{"detail": "There was an error parsing the body"})
	case !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json"):
		fail(w, &problem{status: 500, message: "Object of type bytes is not JSON serializable"})
	default:
		in := object{}
		if err := json.Unmarshal(body, &in); err != nil || in == nil {
			fail(w, &problem{status: 422, message: "Parameter validation error on POST " + r.URL.Path +
				": [body] JSON decode error (type: json_invalid)", detail: []object{}})
			return
		}
		message, data, p := handle(in)
		if p != nil {
			fail(w, p)
			return
		}
		write(w, 200, object{"code": 200, "message": message, "data": data})
	}
}

// handler answers a POST: message and data, or a problem.
type handler func(object) (string, any, *problem)

func (s *Server) posts() map[string]handler {
	return map[string]handler{
		"/product/add": s.add, "/product/search": s.search, "/product/get_memory": s.getMemory,
		"/product/get_memory_dashboard": s.getMemory,
		"/product/get_all":              s.getAll, "/product/delete_memory": s.deleteMemory,
		"/product/delete_memory_by_record_id":  s.deleteByRecord,
		"/product/recover_memory_by_record_id": s.recoverByRecord, "/product/exist_mem_cube_id": s.exist,
		"/product/get_user_names_by_memory_ids": s.owners, "/product/feedback": s.feedback,
	}
}

func (s *Server) isGet(path string) bool {
	return path == "/health" || strings.HasPrefix(path, "/product/scheduler/") ||
		strings.HasPrefix(path, "/product/get_memory/")
}

func (s *Server) serveGet(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	reply := func(message string, data any, p *problem) {
		if p != nil {
			fail(w, p)
			return
		}
		write(w, 200, object{"code": 200, "message": message, "data": data})
	}
	switch path := r.URL.Path; {
	case path == "/health":
		write(w, 200, object{"status": "healthy", "service": "memos", "version": "1.0.1"})
	case path == "/product/scheduler/status":
		if !query.Has("user_id") {
			fail(w, &problem{status: 422, message: "Parameter validation error on GET " + path +
				": [query -> user_id] Field required (type: missing)", detail: []object{}})
			return
		}
		reply(s.status(query.Get("user_id"), query.Get("task_id")))
	case path == "/product/scheduler/allstatus":
		reply(s.allStatus())
	case strings.HasPrefix(path, "/product/get_memory/"):
		reply(s.byID(strings.TrimPrefix(path, "/product/get_memory/")))
	case s.posts()[path] != nil:
		write(w, 405, object{"detail": "Method Not Allowed"})
	default:
		write(w, 404, object{"detail": "Not Found"})
	}
}

func fail(w http.ResponseWriter, p *problem) {
	body := object{"code": p.status, "message": p.message, "data": nil}
	if p.detail != nil {
		body["detail"] = p.detail
	}
	write(w, p.status, body)
}

func write(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		status, data = 500, []byte(`{"code":500,"message":"the fake cannot encode its answer","data":null}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

func text(in object, key string) string {
	value, _ := in[key].(string)
	return value
}

// number is an integer of the request, or its default.
func number(in object, key string, otherwise int) int {
	if value, ok := in[key].(float64); ok {
		return int(value)
	}
	return otherwise
}

// truth is a truth value of the request, or its default.
func truth(in object, key string, otherwise bool) bool {
	if value, ok := in[key].(bool); ok {
		return value
	}
	return otherwise
}

// texts is a list of strings; nil when the key is absent, null or empty.
func texts(in object, key string) []string {
	var list []string
	values, _ := in[key].([]any)
	for _, v := range values {
		if one, ok := v.(string); ok {
			list = append(list, one)
		}
	}
	return list
}
