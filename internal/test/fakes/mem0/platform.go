package mem0

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Platform is the hosted platform, as mem0's documents describe it: adds are jobs, each of which takes some looks to
// come to its end. Its fields are set before it serves, or in Change.
type Platform struct {
	// Token is the key; "" allows every caller.
	Token string
	// Looks is how often a job must be asked for until it is done; 0: it is done at the first look.
	Looks int
	// FailJobs is the error with which every job ends; LoseJobs answers 404 for them; NeverEnd leaves them RUNNING.
	FailJobs string
	LoseJobs bool
	NeverEnd bool
	// HideDocument answers /openapi.json with 404.
	HideDocument bool
	// DropUser leaves user_id out of the records, as it was reported of verbatim ones.
	DropUser bool
	// Limited answers 429 with this Retry-After to every request but pings.
	Limited string
	// Fails answers every request but pings with this status and an HTML page.
	Fails int

	mu    sync.Mutex
	once  sync.Once
	store *OSS
	jobs  []*platformJob
	calls []string
	// feedback that was given, by memory id.
	feedback map[string]string
}

type platformJob struct {
	id, kind, status, problem string
	payload                   map[string]any
	results                   []map[string]any
	looks                     int
	created, completed        string
	run                       func() []map[string]any
}

// Change changes the fields while the platform serves.
func (p *Platform) Change(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// Calls lists the requests so far.
func (p *Platform) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Feedback is what was said of a memory.
func (p *Platform) Feedback(id string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.feedback[id]
}

// Texts are the stored texts in the order of their arrival.
func (p *Platform) Texts() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open()
	return p.store.Texts("")
}

func (p *Platform) open() {
	p.once.Do(func() { p.store, p.feedback = New(Options{}), map[string]string{} })
}

// ServeHTTP implements http.Handler.
func (p *Platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open()
	p.calls = append(p.calls, r.Method+" "+r.URL.Path)
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path != "/v1/ping/" && r.URL.Path != "/openapi.json" {
		switch {
		case p.Limited != "":
			w.Header().Set("Retry-After", p.Limited)
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"detail":"slow down"}`)
			return
		case p.Fails != 0:
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(p.Fails)
			_, _ = io.WriteString(w, "<html>Bad gateway</html>")
			return
		}
	}
	status := 200
	answer, err := p.answer(r, body)
	var failed *problem
	if errors.As(err, &failed) {
		status, answer = failed.status, failed.body
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

func sorry(status int, text string) *problem {
	return &problem{status: status, body: map[string]any{"error": text}}
}

func detailed(text string) *problem {
	return &problem{status: 400, body: map[string]any{"error": "400 Bad Request",
		"details": map[string]any{"message": text}}}
}

func (p *Platform) answer(r *http.Request, body []byte) (any, error) {
	if r.URL.Path == "/openapi.json" {
		if p.HideDocument {
			return nil, &problem{status: 404, body: map[string]any{"detail": "Not found."}}
		}
		return map[string]any{"openapi": "3.0.0", "paths": map[string]any{"/v3/memories/search/": map[string]any{},
			"/v3/memories/add/": map[string]any{}}}, nil
	}
	if p.Token != "" && r.Header.Get("Authorization") != "Token "+p.Token {
		return nil, &problem{status: 401, body: map[string]any{"detail": "Invalid token."}}
	}
	q := r.URL.Query()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch key := r.Method + " " + r.URL.Path; {
	case !strings.HasSuffix(r.URL.Path, "/"):
		return nil, sorry(404, "Not found.")
	case key == "GET /v1/ping/":
		return map[string]any{"status": "ok", "org_id": "o", "project_id": "p", "user_email": "ada@example.com"}, nil
	case key == "POST /v3/memories/add/":
		return p.add(body)
	case key == "POST /v3/memories/search/":
		return p.search(body)
	case key == "POST /v3/memories/":
		return p.list(q, body)
	case key == "GET /v1/events/":
		return p.listJobs(q), nil
	case key == "DELETE /v1/memories/":
		return p.deleteScope(q)
	case key == "POST /v1/feedback/":
		return p.takeFeedback(body)
	case key == "PUT /v1/batch/" || key == "DELETE /v1/batch/":
		return p.batch(r.Method, body)
	case strings.HasPrefix(key, "GET /v2/entities/user/") && len(parts) == 5 && parts[4] == "profile":
		return p.profile(parts[3])
	case strings.HasPrefix(key, "GET /v1/event/") && len(parts) == 3:
		return p.look(parts[2])
	case strings.HasPrefix(r.URL.Path, "/v1/memories/") && len(parts) == 4 && parts[3] == "history":
		return p.store.historyOf(parts[2]), nil
	case strings.HasPrefix(r.URL.Path, "/v1/memories/") && len(parts) == 3:
		return p.one(r.Method, parts[2], body)
	}
	return nil, sorry(404, "Not found.")
}

// platformAdd is the body of an add.
type platformAdd struct {
	addRequest
	UserID    string `json:"user_id"`
	AgentID   string `json:"agent_id"`
	RunID     string `json:"run_id"`
	Timestamp int64  `json:"timestamp"`
}

func (p *Platform) add(body []byte) (any, error) {
	var a platformAdd
	if err := json.Unmarshal(body, &a); err != nil || len(a.Messages) == 0 {
		return nil, detailed("messages: this field is required")
	}
	for _, m := range a.Messages {
		if !slices.Contains([]string{"user", "assistant", "system"}, m.Role) {
			return nil, detailed("messages: " + m.Role + " is not a valid role")
		}
	}
	if a.UserID+a.AgentID+a.RunID == "" {
		return nil, detailed("at least one of user_id, agent_id, app_id, run_id is required")
	}
	a.ids = map[string]string{"user_id": a.UserID, "agent_id": a.AgentID, "run_id": a.RunID}
	if a.Timestamp != 0 {
		a.Metadata = cloneWith(a.Metadata, "created_at",
			time.Unix(a.Timestamp, 0).UTC().Format("2006-01-02T15:04:05-07:00"))
	}
	verbatim := a.Infer != nil && !*a.Infer
	work := func() []map[string]any { return p.storeAll(&a, verbatim) }
	j := p.job("ADD", body, work)
	if verbatim {
		p.finish(j)
		return map[string]any{"message": "done", "status": "SUCCEEDED", "event_id": j.id, "results": j.results}, nil
	}
	return map[string]any{"event_id": j.id, "status": "PENDING"}, nil
}

func cloneWith(m map[string]any, key string, value any) map[string]any {
	out := map[string]any{key: value}
	for k, v := range m {
		out[k] = v
	}
	return out
}

// storeAll stores facts or messages that the scope has not yet, word for word.
func (p *Platform) storeAll(a *platformAdd, verbatim bool) []map[string]any {
	texts := Facts(a.Messages)
	if verbatim {
		texts = nil
		for _, m := range a.Messages {
			texts = append(texts, m.Content)
		}
	}
	results := []map[string]any{}
	for _, text := range texts {
		r := p.store.newRow(&a.addRequest, text, "", "")
		if slices.ContainsFunc(p.store.rows, func(old *row) bool { return old.hash == r.hash && old.run == r.run }) {
			continue
		}
		if p.DropUser {
			r.user = ""
		}
		p.store.store(r)
		results = append(results, map[string]any{"id": r.id, "data": map[string]any{"memory": text}, "event": "ADD"})
	}
	return results
}

func (p *Platform) job(kind string, payload []byte, run func() []map[string]any) *platformJob {
	j := &platformJob{id: p.store.id(), kind: kind, status: "PENDING", created: p.store.now().Format(stamp), run: run}
	_ = json.Unmarshal(payload, &j.payload)
	p.jobs = append([]*platformJob{j}, p.jobs...)
	return j
}

func (p *Platform) finish(j *platformJob) {
	j.completed = p.store.now().Format(stamp)
	if p.FailJobs != "" {
		j.status, j.problem = "FAILED", p.FailJobs
		return
	}
	j.status, j.results = "SUCCEEDED", j.run()
}

// FinishJobs brings every job to its end.
func (p *Platform) FinishJobs() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, j := range slices.Backward(p.jobs) {
		if j.completed == "" {
			p.finish(j)
		}
	}
}

func (p *Platform) look(id string) (any, error) {
	for _, j := range p.jobs {
		if j.id != id || p.LoseJobs {
			continue
		}
		p.work(j)
		return j.item(), nil
	}
	return nil, sorry(404, "Event not found")
}

// work advances a job. The fake has no clock, so a job advances when it is looked up.
func (p *Platform) work(j *platformJob) {
	switch {
	case j.completed != "" || p.NeverEnd:
	case j.looks >= p.Looks:
		p.finish(j)
	default:
		j.looks++
		j.status = "PROCESSING" // the command line knows it, the documents do not
	}
}

func (j *platformJob) item() map[string]any {
	item := map[string]any{"id": j.id, "event_type": j.kind, "status": j.status, "payload": j.payload, "metadata": nil,
		"results": j.results, "created_at": j.created,
		"updated_at": j.created, "started_at": j.created, "completed_at": nil, "latency": 1.5, "graph_status": nil,
		"error": nil}
	if j.results == nil {
		item["results"] = []any{}
	}
	if j.completed != "" {
		item["completed_at"] = j.completed
	}
	if j.problem != "" {
		item["error"] = j.problem
	}
	return item
}

func (p *Platform) listJobs(q map[string][]string) any {
	var items []any
	for _, j := range p.jobs {
		p.work(j)
		items = append(items, j.item())
	}
	return page(q, items, "/v1/events/")
}

// page cuts a page out of items.
func page(q map[string][]string, items []any, path string) map[string]any {
	number, size := 1, 100
	if v := q["page"]; len(v) > 0 {
		number, _ = strconv.Atoi(v[0])
	}
	if v := q["page_size"]; len(v) > 0 {
		size, _ = strconv.Atoi(v[0])
	}
	size = min(size, 200)
	from, to := min((number-1)*size, len(items)), min(number*size, len(items))
	out := map[string]any{"count": len(items), "next": nil, "previous": nil,
		"results": append([]any{}, items[from:to]...)}
	if to < len(items) {
		out["next"] = fmt.Sprintf("https://api.mem0.ai%s?page=%d", path, number+1)
	}
	return out
}

func (p *Platform) list(q map[string][]string, body []byte) (any, error) {
	_, rows, err := p.matching(body)
	if err != nil {
		return nil, err
	}
	var items []any
	for _, r := range rows {
		items = append(items, p.item(r, "session_id"))
	}
	return page(q, items, "/v3/memories/"), nil
}

// profile is what the client's documentation says of a user: a profile is made from some number of messages on.
func (p *Platform) profile(user string) (any, error) {
	known, status, facts := 0, "insufficient_data", map[string]any{}
	for _, r := range p.store.rows {
		if r.user == user {
			known++
			facts["latest"] = r.text
		}
	}
	switch {
	case known == 0:
		return nil, sorry(404, "User not found")
	case known > 1:
		status = "succeeded"
	default:
		facts = map[string]any{}
	}
	return map[string]any{"profile": facts, "status": status, "entity_type": "user", "entity_id": user,
		"updated_at": nil, "generation_count": known - 1}, nil
}

// deleteScope honours one id only.
func (p *Platform) deleteScope(q map[string][]string) (any, error) {
	for _, name := range []string{"user_id", "agent_id", "run_id"} {
		if len(q[name]) == 0 {
			continue
		}
		ids := map[string]string{name: q[name][0]}
		payload, _ := json.Marshal(ids)
		j := p.job("DELETE", payload, func() []map[string]any {
			p.store.removeRows(func(r *row) bool { return r.hasIDs(ids) })
			return nil
		})
		return map[string]any{"message": "Delete in progress...", "event_id": j.id}, nil
	}
	return nil, detailed("one of user_id, agent_id, app_id, run_id is required")
}

func (p *Platform) one(method, id string, body []byte) (any, error) {
	if !isUUID(id) {
		return nil, sorry(400, "memory_id should be a valid UUID")
	}
	found := p.store.find(id)
	if found == nil {
		return nil, sorry(404, "Memory not found!")
	}
	switch method {
	case http.MethodGet:
		return p.item(found, "session_id"), nil
	case http.MethodDelete:
		return p.store.delete(id)
	}
	if _, err := p.store.update(id, body); err != nil {
		return nil, err
	}
	return p.item(found, "session_id"), nil
}

func (p *Platform) batch(method string, body []byte) (any, error) {
	var b struct{ Memories []json.RawMessage }
	_ = json.Unmarshal(body, &b)
	for _, raw := range b.Memories {
		var m struct {
			ID string `json:"memory_id"`
		}
		_ = json.Unmarshal(raw, &m)
		if _, err := p.one(method, m.ID, raw); err != nil {
			return nil, err
		}
	}
	return message("Successfully changed " + strconv.Itoa(len(b.Memories)) + " memories"), nil
}

// takeFeedback answers an unknown id with 500, as the documents say.
func (p *Platform) takeFeedback(body []byte) (any, error) {
	var f struct {
		ID       string `json:"memory_id"`
		Feedback string `json:"feedback"`
		Reason   string `json:"feedback_reason"`
	}
	_ = json.Unmarshal(body, &f)
	switch {
	case !isUUID(f.ID):
		return nil, sorry(400, "Invalid memory_id")
	case p.store.find(f.ID) == nil:
		return nil, &problem{status: 500, body: "Server Error"}
	}
	p.feedback[f.ID] = f.Feedback + ": " + f.Reason
	return map[string]any{"id": f.ID, "feedback": f.Feedback, "feedback_reason": f.Reason}, nil
}
