package llm

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
)

// embeddings answers POST /embeddings.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) {
	request, ok := readBody[embeddingRequest](w, r)
	if !ok {
		return
	}
	inputs, ok := request.inputs()
	fault := s.faults.take("embeddings", "embeddings", false)
	entry := Entry{Kind: "embeddings", Purpose: "embeddings", Model: request.Model, Inputs: len(inputs),
		PromptTokens: tokens(strings.Join(inputs, " "))}
	dimensions := s.dimensions(request)
	if fault != nil {
		entry.Fault = fault.Mode
		if fault.Mode == Dimension {
			dimensions = max(fault.Dimension, 1)
		}
	}
	s.record(entry)
	if fault != nil && fault.spoilExchange(r.Context(), w) {
		return
	}
	if !ok {
		writeError(w, 400, "input must be a text or a list of texts")
		return
	}
	if dimensions > 65536 {
		writeError(w, 400, "dimensions: at most 65536")
		return
	}
	for i, text := range inputs {
		if text == "" {
			writeError(w, 400, fmt.Sprintf("input[%d] must not be empty", i)) // as OpenAI does
			return
		}
	}
	vectors, err := s.embed(r.Context(), inputs, dimensions)
	if err != nil {
		writeError(w, 503, "the embedding model: "+err.Error())
		return
	}
	data := make([]any, len(inputs))
	for i, vector := range vectors {
		data[i] = map[string]any{"object": "embedding", "index": i, "embedding": encodeVector(vector, request.EncodingFormat)}
	}
	s.send(w, map[string]any{"object": "list", "model": request.Model, "data": data,
		"usage": map[string]any{"prompt_tokens": entry.PromptTokens, "total_tokens": entry.PromptTokens}}, fault)
}

// embed gives a unit vector of each text.
//
// Errors: those of Options.Embed, and an answer of another count. Hashed and real vectors are never mixed because the
// model is down; only a text that the model knows nothing of is hashed.
func (s *Server) embed(ctx context.Context, texts []string, dimensions int) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	if s.options.Embed != nil {
		answer, err := s.options.Embed(ctx, texts)
		if err != nil {
			return nil, err
		}
		if len(answer) != len(texts) {
			return nil, fmt.Errorf("%d vectors for %d texts", len(answer), len(texts))
		}
		for i, v := range answer {
			vector := make([]float32, dimensions)
			copy(vector, v)
			if normalise(vector) {
				vectors[i] = vector
			}
		}
	}
	for i, text := range texts {
		if vectors[i] == nil {
			vectors[i] = Embed(text, dimensions)
		}
	}
	return vectors, nil
}

func (s *Server) dimensions(r *embeddingRequest) int {
	switch {
	case r.Dimensions > 0:
		return r.Dimensions
	case s.options.Dimensions > 0:
		return s.options.Dimensions
	case r.Model == "text-embedding-3-large":
		return 3072
	}
	return 1536
}

// encodeVector gives the floats, or their little-endian bytes in base64.
func encodeVector(vector []float32, format string) any {
	if format != "base64" {
		return vector
	}
	raw := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(raw)
}

// rerank orders documents by the cosine of their embeddings with the query's, in the shape of Cohere's POST /v1/rerank.
func (s *Server) rerank(w http.ResponseWriter, r *http.Request) {
	type body struct {
		Model     string            `json:"model"`
		Query     string            `json:"query"`
		Documents []json.RawMessage `json:"documents"`
		TopN      int               `json:"top_n"`
	}
	request, ok := readBody[body](w, r)
	if !ok {
		return
	}
	fault := s.faults.take("rerank", "rerank", false)
	s.record(Entry{Kind: "rerank", Purpose: "rerank", Model: request.Model, Inputs: len(request.Documents)})
	if fault != nil && fault.spoilExchange(r.Context(), w) {
		return
	}
	type result struct {
		Index int     `json:"index"`
		Score float64 `json:"relevance_score"`
	}
	results := make([]result, 0, len(request.Documents))
	query := Embed(request.Query, 1024)
	for i, document := range request.Documents {
		text := contentText(document)
		if text == "" {
			var object struct {
				Text string `json:"text"`
			}
			_ = json.Unmarshal(document, &object)
			text = object.Text
		}
		results = append(results, result{Index: i, Score: (Cosine(query, Embed(text, 1024)) + 1) / 2})
	}
	sortStable(results, func(a, b result) bool { return a.Score > b.Score })
	if request.TopN > 0 && request.TopN < len(results) {
		results = results[:request.TopN]
	}
	s.send(w, map[string]any{"id": s.id("rerank"), "results": results,
		"meta": map[string]any{"api_version": map[string]any{"version": "1"}}}, fault)
}
