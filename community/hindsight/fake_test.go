package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// fake answers the plugin's routes as Hindsight 1.1.0 does without a model. What it retains is stored once its
// operation has been polled, so nothing depends on time.
type fake struct {
	mu    sync.Mutex
	banks map[string]*fakeBank
}

type fakeBank struct {
	documents map[string]fakeItem
	waiting   map[string]fakeItem // by operation
	done      map[string]bool
	polled    map[string]bool
}

type fakeItem struct {
	Content    string            `json:"content"`
	Timestamp  string            `json:"timestamp"`
	DocumentID string            `json:"document_id"`
	Metadata   map[string]string `json:"metadata"`
	Tags       []string          `json:"tags"`
}

func newFake() http.Handler {
	f := &fake{banks: map[string]*fakeBank{}}
	mux := http.NewServeMux()
	at := func(pattern string, missing int, answer func(b *fakeBank, w http.ResponseWriter, r *http.Request)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			b := f.banks[r.PathValue("bank")]
			if b == nil && missing != 0 {
				writeJSON(w, missing, map[string]any{"detail": "Bank '" + r.PathValue("bank") + "' not found"})
				return
			}
			if b == nil {
				b = &fakeBank{}
			}
			answer(b, w, r)
		})
	}
	const bank = "/v1/default/banks/{bank}"
	at("PUT "+bank, 0, f.create)
	at("DELETE "+bank, 0, f.remove)
	at("POST "+bank+"/memories", 404, (*fakeBank).retain)
	at("POST "+bank+"/memories/recall", 404, (*fakeBank).recall)
	at("GET "+bank+"/operations", 404, (*fakeBank).operations)
	at("GET "+bank+"/operations/{operation}", 0, (*fakeBank).operation)
	at("GET "+bank+"/documents", 404, (*fakeBank).list)
	at("GET "+bank+"/documents/{document}", 0, (*fakeBank).document)
	at("DELETE "+bank+"/documents/{document}", 0, (*fakeBank).removeDocument)
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, 200, map[string]any{"status": "healthy", "database": "connected"})
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, 200, map[string]any{"api_version": "1.1.0"})
	})
	return mux
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

func (f *fake) create(_ *fakeBank, w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("bank")
	if strings.HasPrefix(id, "_") {
		writeJSON(w, 400, map[string]any{"detail": "Bank id must not start with '_': that prefix is reserved"})
		return
	}
	if f.banks[id] == nil {
		f.banks[id] = &fakeBank{documents: map[string]fakeItem{}, waiting: map[string]fakeItem{}, done: map[string]bool{},
			polled: map[string]bool{}}
	}
	writeJSON(w, 200, map[string]any{"bank_id": id})
}

func (f *fake) remove(b *fakeBank, w http.ResponseWriter, r *http.Request) {
	delete(f.banks, r.PathValue("bank"))
	writeJSON(w, 200, map[string]any{"success": true, "deleted_count": 2 * len(b.documents)})
}

func (b *fakeBank) retain(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Items       []fakeItem `json:"items"`
		OperationID string     `json:"operation_id"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Items) != 1 {
		writeJSON(w, 422, map[string]any{"detail": []string{"items"}})
		return
	}
	if !b.done[body.OperationID] {
		b.waiting[body.OperationID] = body.Items[0]
	}
	writeJSON(w, 200, map[string]any{"success": true, "async": true, "operation_id": body.OperationID})
}

// poll finishes the items that were polled once already.
func (b *fakeBank) poll() {
	for id, item := range b.waiting {
		if !b.polled[id] {
			b.polled[id] = true
			continue
		}
		b.documents[item.DocumentID], b.done[id] = item, true
		delete(b.waiting, id)
	}
}

func (b *fakeBank) operations(w http.ResponseWriter, r *http.Request) {
	total := 0
	if r.URL.Query().Get("status") == "pending" {
		b.poll()
		total = len(b.waiting)
	}
	writeJSON(w, 200, map[string]any{"total": total, "operations": []any{}})
}

func (b *fakeBank) operation(w http.ResponseWriter, r *http.Request) {
	id, status := r.PathValue("operation"), "not_found"
	b.poll()
	if _, waits := b.waiting[id]; waits {
		status = "pending"
	} else if b.done[id] {
		status = "completed"
	}
	writeJSON(w, 200, map[string]any{"operation_id": id, "status": status})
}

func (b *fakeBank) sorted() []fakeItem {
	var items []fakeItem
	for _, item := range b.documents {
		items = append(items, item)
	}
	slices.SortFunc(items, func(x, y fakeItem) int { return strings.Compare(x.DocumentID, y.DocumentID) })
	return items
}

func (b *fakeBank) list(w http.ResponseWriter, r *http.Request) {
	offset := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("offset"), &offset)
	items := []any{}
	all := b.sorted()
	for _, item := range all[min(offset, len(all)):] {
		items = append(items, map[string]any{"id": item.DocumentID, "content_hash": item.Content, "memory_unit_count": 1,
			"document_metadata": item.Metadata})
	}
	writeJSON(w, 200, map[string]any{"items": items, "total": len(all)})
}

func (b *fakeBank) document(w http.ResponseWriter, r *http.Request) {
	item, there := b.documents[r.PathValue("document")]
	if !there {
		writeJSON(w, 404, map[string]any{"detail": "Document not found"})
		return
	}
	writeJSON(w, 200, map[string]any{"id": item.DocumentID, "original_text": item.Content})
}

func (b *fakeBank) removeDocument(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("document")
	if _, there := b.documents[id]; !there {
		writeJSON(w, 404, map[string]any{"detail": "Document not found"})
		return
	}
	delete(b.documents, id)
	writeJSON(w, 200, map[string]any{"success": true, "document_id": id, "memory_units_deleted": 1})
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

func (b *fakeBank) recall(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Query     string   `json:"query"`
		MaxTokens int      `json:"max_tokens"`
		Tags      []string `json:"tags"`
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		writeJSON(w, 422, map[string]any{"detail": []string{err.Error()}})
		return
	}
	asked := words(q.Query)
	if len(asked) == 0 {
		writeJSON(w, 422, map[string]any{"detail": []any{map[string]any{
			"msg": "Value error, query must contain at least one word character after normalization"}}})
		return
	}
	if q.MaxTokens == 0 {
		q.MaxTokens = 4096
	}
	type hit struct {
		fakeItem
		score float64
	}
	var hits []hit
	for _, item := range b.sorted() {
		h := hit{item, 0.001}
		for _, word := range words(item.Content) {
			if slices.Contains(asked, word) {
				h.score++
			}
		}
		if !slices.ContainsFunc(q.Tags, func(tag string) bool { return !slices.Contains(item.Tags, tag) }) {
			hits = append(hits, h)
		}
	}
	slices.SortStableFunc(hits, func(x, y hit) int { return -compare(x.score, y.score) })
	results, used := []any{}, 0
	for _, h := range hits {
		if used += (len(h.Content) + 3) / 4; used > q.MaxTokens {
			break
		}
		results = append(results, map[string]any{"id": "unit-" + h.DocumentID, "text": h.Content, "type": "world",
			"mentioned_at": h.Timestamp, "document_id": h.DocumentID, "metadata": h.Metadata, "tags": h.Tags,
			"occurred_start": nil, "scores": map[string]any{"final": h.score, "reranker": nil}})
	}
	writeJSON(w, 200, map[string]any{"results": results, "entities": nil})
}

func compare(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}
