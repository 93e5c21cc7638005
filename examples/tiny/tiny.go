// Package tiny is a memory backend as small as one can be, behind HTTP, for tests and for the first steps of a plugin's
// author: it keeps texts in scopes and finds those that share a word with a query. What it does is fixed by its
// requests; it has no clock and no randomness.
//
//	PUT    /scopes/{scope}                                   {"existed": false}
//	POST   /scopes/{scope}/events   {event_id, text, created_at, labels, session}   {"id": "m1", "status": "stored" or "queued"}
//	POST   /scopes/{scope}/search   {query, limit, labels, session}         {"items": [item with score], "total": n}
//	GET    /scopes/{scope}/events?event_id=E                 {"items": [item]}; without event_id all of the scope
//	DELETE /scopes/{scope}/events/{id}                       {"removed": 0 or 1}
//	GET    /scopes/{scope}/status                            {"pending": n}; of a queue, each look stores what has waited long enough
//	DELETE /scopes/{scope}                                   {"removed": n}
//	DELETE /scopes?prefix=P                                  {"removed": n}: all scopes whose id begins with P
//	GET    /health                                           {"status": "ok", "version": "1"}
//
// An item is {"id", "event_id", "text", "type": "note", "created_at", "labels", "session"}. A scope that is not there
// answers 404 {"error": "no such scope"}; what cannot be read answers 400, an unknown path 404, both with {"error":
// ...}.
package tiny

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// Backend is the server. The zero value is ready: it stores at once.
type Backend struct {
	// QueueLooks makes it a queue: an event is stored when the status of its scope has been asked for so many times. 0
	// stores at once.
	QueueLooks int

	mu     sync.Mutex
	once   sync.Once
	mux    *http.ServeMux
	scopes map[string]*scope
	next   int
	log    []string
}

type scope struct {
	items []Item
	queue []queued
}

type queued struct {
	item  Item
	looks int
}

// Item is one text as it is kept.
type Item struct {
	ID        string            `json:"id"`
	EventID   string            `json:"event_id"`
	Text      string            `json:"text"`
	Type      string            `json:"type"`
	CreatedAt string            `json:"created_at,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Session   string            `json:"session,omitempty"`
	Score     *float64          `json:"score,omitempty"`
}

type searchRequest struct {
	Query   string            `json:"query"`
	Limit   int               `json:"limit"`
	Labels  map[string]string `json:"labels"`
	Session string            `json:"session"`
}

// ServeHTTP implements http.Handler.
func (b *Backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.once.Do(b.open)
	b.mux.ServeHTTP(w, r)
}

func (b *Backend) open() {
	b.scopes, b.mux = map[string]*scope{}, http.NewServeMux()
	handle := func(pattern string, answer func(r *http.Request) (int, any)) {
		b.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.log = append(b.log, r.Method+" "+r.URL.RequestURI())
			status, body := answer(r)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(body)
		})
	}
	handle("PUT /scopes/{scope}", b.create)
	handle("POST /scopes/{scope}/events", b.add)
	handle("POST /scopes/{scope}/search", b.search)
	handle("GET /scopes/{scope}/events", b.list)
	handle("GET /scopes/{scope}/status", b.status)
	handle("DELETE /scopes/{scope}", b.remove)
	handle("DELETE /scopes/{scope}/events/{id}", b.removeItem)
	handle("DELETE /scopes", b.removePrefix)
	handle("GET /health", func(*http.Request) (int, any) { return 200, map[string]any{"status": "ok", "version": "1"} })
	handle("/", func(*http.Request) (int, any) { return failure(404, "no such path") })
}

// Items are what a scope holds now, in the order in which it was stored.
func (b *Backend) Items(id string) []Item {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.scopes[id]; s != nil {
		return slices.Clone(s.items)
	}
	return nil
}

// Scopes are the ids of all scopes, sorted.
func (b *Backend) Scopes() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := make([]string, 0, len(b.scopes))
	for id := range b.scopes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Requests are the requests so far, as "METHOD URI".
func (b *Backend) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.log)
}

func failure(status int, what string) (int, any) { return status, map[string]string{"error": what} }

func (b *Backend) create(r *http.Request) (int, any) {
	id := r.PathValue("scope")
	_, existed := b.scopes[id]
	if !existed {
		b.scopes[id] = &scope{}
	}
	return 200, map[string]bool{"existed": existed}
}

func (b *Backend) add(r *http.Request) (int, any) {
	s := b.scopes[r.PathValue("scope")]
	if s == nil {
		return failure(404, "no such scope")
	}
	var item Item
	if err := json.NewDecoder(r.Body).Decode(&item); err != nil {
		return failure(400, err.Error())
	}
	b.next++
	item.ID, item.Type, item.Score = fmt.Sprintf("m%d", b.next), "note", nil
	if b.QueueLooks > 0 {
		s.queue = append(s.queue, queued{item, b.QueueLooks})
		return 202, map[string]string{"id": item.ID, "status": "queued"}
	}
	s.items = append(s.items, item)
	return 201, map[string]string{"id": item.ID, "status": "stored"}
}

func (b *Backend) search(r *http.Request) (int, any) {
	s := b.scopes[r.PathValue("scope")]
	if s == nil {
		return failure(404, "no such scope")
	}
	var q searchRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		return failure(400, err.Error())
	}
	asked := words(q.Query)
	found := []Item{}
	for _, item := range s.items {
		if !item.has(q.Labels) || q.Session != "" && item.Session != q.Session {
			continue
		}
		shared := 0
		for word := range words(item.Text) {
			if asked[word] {
				shared++
			}
		}
		if shared > 0 {
			score := float64(shared) / float64(len(asked))
			item.Score = &score
			found = append(found, item)
		}
	}
	slices.SortStableFunc(found, func(a, b Item) int { return cmp.Compare(*b.Score, *a.Score) })
	total := len(found)
	if q.Limit > 0 && total > q.Limit {
		found = found[:q.Limit]
	}
	return 200, map[string]any{"items": found, "total": total}
}

func (i *Item) has(labels map[string]string) bool {
	for name, value := range labels {
		if i.Labels[name] != value {
			return false
		}
	}
	return true
}

func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		set[word] = true
	}
	return set
}

func (b *Backend) list(r *http.Request) (int, any) {
	s := b.scopes[r.PathValue("scope")]
	if s == nil {
		return failure(404, "no such scope")
	}
	items := []Item{}
	for _, item := range s.items {
		if event := r.URL.Query().Get("event_id"); event == "" || event == item.EventID {
			items = append(items, item)
		}
	}
	return 200, map[string]any{"items": items}
}

func (b *Backend) status(r *http.Request) (int, any) {
	s := b.scopes[r.PathValue("scope")]
	if s == nil {
		return failure(404, "no such scope")
	}
	var waiting []queued
	for _, q := range s.queue {
		if q.looks--; q.looks > 0 {
			waiting = append(waiting, q)
			continue
		}
		s.items = append(s.items, q.item)
	}
	s.queue = waiting
	return 200, map[string]int{"pending": len(waiting)}
}

func (b *Backend) remove(r *http.Request) (int, any) {
	s := b.scopes[r.PathValue("scope")]
	if s == nil {
		return failure(404, "no such scope")
	}
	delete(b.scopes, r.PathValue("scope"))
	return 200, map[string]int{"removed": len(s.items) + len(s.queue)}
}

func (b *Backend) removeItem(r *http.Request) (int, any) {
	s := b.scopes[r.PathValue("scope")]
	if s == nil {
		return failure(404, "no such scope")
	}
	before := len(s.items) + len(s.queue)
	id := r.PathValue("id")
	s.items = slices.DeleteFunc(s.items, func(i Item) bool { return i.ID == id })
	s.queue = slices.DeleteFunc(s.queue, func(q queued) bool { return q.item.ID == id })
	return 200, map[string]int{"removed": before - len(s.items) - len(s.queue)}
}

func (b *Backend) removePrefix(r *http.Request) (int, any) {
	removed := 0
	for id, s := range b.scopes {
		if strings.HasPrefix(id, r.URL.Query().Get("prefix")) {
			removed += len(s.items) + len(s.queue)
			delete(b.scopes, id)
		}
	}
	return 200, map[string]int{"removed": removed}
}
