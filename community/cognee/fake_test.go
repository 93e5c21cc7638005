package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// fake answers the plugin's routes as Cognee 1.6.5 does. A run completes when it has been looked at once, so nothing
// depends on time.
type fake struct {
	mu       sync.Mutex
	datasets map[string]*fakeDataset // by id
	made     int
}

type fakeDataset struct {
	id, name   string
	documents  []fakeDocument // oldest first
	ran, looks int            // looks: how often a started run was polled; 0: no run
}

type fakeDocument struct {
	id, name, text string
	metadata       map[string]any
	completed      bool
}

// newFake serves one user, who has this key.
func newFake(key string) http.Handler {
	f := &fake{datasets: map[string]*fakeDataset{}}
	mux := http.NewServeMux()
	at := func(pattern string, answer func(w http.ResponseWriter, r *http.Request)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if r.Header.Get("x-api-key") != key {
				writeJSON(w, 401, map[string]any{"detail": "Authentication required"})
				return
			}
			answer(w, r)
		})
	}
	of := func(id string, w http.ResponseWriter, answer func(d *fakeDataset)) {
		if d := f.datasets[id]; d != nil {
			answer(d)
			return
		}
		writeJSON(w, 403, map[string]any{"detail": "Request owner does not have necessary permission [PermissionDeniedError]"})
	}
	at("GET /api/v1/datasets", func(w http.ResponseWriter, _ *http.Request) {
		list := []any{}
		for _, d := range f.datasets {
			list = append(list, map[string]any{"id": d.id, "name": d.name})
		}
		writeJSON(w, 200, list)
	})
	at("POST /api/v1/datasets", f.create)
	at("POST /api/v1/add", func(w http.ResponseWriter, r *http.Request) {
		of(r.FormValue("datasetId"), w, func(d *fakeDataset) { f.add(d, w, r) })
	})
	at("POST /api/v1/cognify", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			IDs []string `json:"dataset_ids"`
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		of(strings.Join(body.IDs, " "), w, func(d *fakeDataset) {
			d.ran, d.looks = d.ran+1, 1
			writeJSON(w, 200, map[string]any{d.id: map[string]any{"status": "PipelineRunStarted"}})
		})
	})
	at("GET /api/v1/datasets/status", func(w http.ResponseWriter, r *http.Request) {
		of(r.URL.Query().Get("dataset"), w, func(d *fakeDataset) {
			if d.ran == 0 {
				writeJSON(w, 200, map[string]any{})
				return
			}
			status := "DATASET_PROCESSING_COMPLETED"
			if d.looks > 0 {
				status = "DATASET_PROCESSING_STARTED"
				d.poll()
			}
			writeJSON(w, 200, map[string]any{d.id: status})
		})
	})
	at("GET /api/v1/datasets/{dataset}/processing-status", func(w http.ResponseWriter, r *http.Request) {
		of(r.PathValue("dataset"), w, func(d *fakeDataset) {
			items := []any{}
			for _, one := range d.documents {
				items = append(items, map[string]any{"id": one.id, "name": one.name, "completed": one.completed})
			}
			writeJSON(w, 200, map[string]any{"total": len(items), "items": items})
		})
	})
	at("GET /api/v1/datasets/{dataset}/data", func(w http.ResponseWriter, r *http.Request) {
		of(r.PathValue("dataset"), w, func(d *fakeDataset) { d.list(w, r) })
	})
	at("POST /api/v1/search", func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			IDs   []string `json:"dataset_ids"`
			Query string   `json:"query"`
			TopK  int      `json:"top_k"`
		}
		_ = json.NewDecoder(r.Body).Decode(&q)
		of(strings.Join(q.IDs, " "), w, func(d *fakeDataset) { d.search(w, q.Query, q.TopK) })
	})
	at("DELETE /api/v1/datasets/{dataset}/data/{data}", func(w http.ResponseWriter, r *http.Request) {
		of(r.PathValue("dataset"), w, func(d *fakeDataset) {
			d.documents = slices.DeleteFunc(d.documents, func(one fakeDocument) bool { return one.id == r.PathValue("data") })
			writeJSON(w, 200, nil)
		})
	})
	at("DELETE /api/v1/datasets/{dataset}", func(w http.ResponseWriter, r *http.Request) {
		of(r.PathValue("dataset"), w, func(d *fakeDataset) { delete(f.datasets, d.id); writeJSON(w, 200, nil) })
	})
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, 200, map[string]any{"status": "ready", "health": "healthy", "version": "1.6.5"})
	})
	return mux
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

func (f *fake) newID() string {
	f.made++
	return fmt.Sprintf("00000000-0000-4000-8000-%012d", f.made)
}

func (f *fake) create(w http.ResponseWriter, r *http.Request) {
	var body struct{ Name string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Name == "" {
		writeJSON(w, 400, map[string]any{"detail": "name"})
		return
	}
	for _, d := range f.datasets {
		if d.name == body.Name {
			writeJSON(w, 200, map[string]any{"id": d.id, "name": d.name})
			return
		}
	}
	d := &fakeDataset{id: f.newID(), name: body.Name}
	f.datasets[d.id] = d
	writeJSON(w, 200, map[string]any{"id": d.id, "name": d.name})
}

// add takes a document of the same content for the one that is there, and refuses one of the same name with other
// content.
func (f *fake) add(d *fakeDataset, w http.ResponseWriter, r *http.Request) {
	file, head, err := r.FormFile("data")
	if err != nil {
		writeJSON(w, 400, map[string]any{"error": err.Error()})
		return
	}
	text, _ := io.ReadAll(file)
	var metadata []map[string]any
	if err := json.Unmarshal([]byte(r.FormValue("external_metadata")), &metadata); err != nil || len(metadata) != 1 {
		writeJSON(w, 400, map[string]any{"detail": "external_metadata"})
		return
	}
	one := fakeDocument{name: strings.TrimSuffix(head.Filename, ".txt"), text: string(text), metadata: metadata[0]}
	for _, old := range d.documents {
		switch {
		case old.text == one.text:
			one.id = old.id
		case old.name == one.name:
			writeJSON(w, 409, map[string]any{"error": "Document already exists; use the update endpoint"})
			return
		}
	}
	if one.id == "" {
		one.id = f.newID()
		d.documents = append(d.documents, one)
	}
	writeJSON(w, 200, map[string]any{"status": "PipelineRunCompleted", "data_ingestion_info": []any{map[string]any{"data_id": one.id}}})
}

// poll completes a run after it was polled twice.
func (d *fakeDataset) poll() {
	if d.looks++; d.looks > 2 {
		d.looks = 0
		for i := range d.documents {
			d.documents[i].completed = true
		}
	}
}

func (d *fakeDataset) list(w http.ResponseWriter, r *http.Request) {
	limit, offset := 100, 0
	_, _ = fmt.Sscan(r.URL.Query().Get("limit"), &limit)
	_, _ = fmt.Sscan(r.URL.Query().Get("offset"), &offset)
	items := []any{}
	for _, one := range d.documents[min(offset, len(d.documents)):min(offset+limit, len(d.documents))] {
		items = append(items, map[string]any{"id": one.id, "name": one.name, "rawDataLocation": "file:///" + one.id,
			"externalMetadata": one.metadata})
	}
	writeJSON(w, 200, items)
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

func (d *fakeDataset) search(w http.ResponseWriter, query string, topK int) {
	if d.ran == 0 || !slices.ContainsFunc(d.documents, func(one fakeDocument) bool { return one.completed }) {
		writeJSON(w, 404, map[string]any{"detail": "No searchable memory in dataset: add data and run cognify. [NoDataError]"})
		return
	}
	type hit struct {
		fakeDocument
		score float64
	}
	asked, hits := words(query), []hit{}
	for _, one := range d.documents {
		if !one.completed {
			continue
		}
		h := hit{one, 1}
		for _, word := range words(one.text) {
			if slices.Contains(asked, word) {
				h.score *= 0.8
			}
		}
		hits = append(hits, h)
	}
	slices.SortStableFunc(hits, func(x, y hit) int { return cmp.Compare(x.score, y.score) })
	list := []any{}
	for _, h := range hits[:min(topK, len(hits))] {
		metadata, _ := json.Marshal(h.metadata)
		list = append(list, map[string]any{"id": "chunk-" + h.id, "type": "IndexSchema", "text": h.text, "document_id": h.id,
			"document_name": h.name, "chunk_index": 0, "external_metadata": string(metadata), "score": h.score})
	}
	writeJSON(w, 200, []any{map[string]any{"dataset_id": d.id, "dataset_name": d.name, "search_result": list}})
}
