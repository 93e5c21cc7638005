package main

import (
	"math"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
	"github.com/memhost/memhost/sdk/chat"
)

// embedRoute is the manifest's route POST /embeddings.
const embedRoute = "embeddings"

const (
	// textBytes is how much of a text is embedded; shortBytes is the limit after the endpoint rejected that.
	textBytes, shortBytes = 8000, 1000
	// texts of one request, requests of one operation.
	textsAtOnce, requestsAtOnce = 32, 20
)

// embedder is the config block embedder: an OpenAI-compatible endpoint that returns vectors for texts.
type embedder struct {
	model string
	// authorized is true when the key has a value.
	authorized bool
	timeoutMS  int64
}

func parseEmbedder(block abi.Raw, secrets []string) (*embedder, error) {
	if len(block) == 0 {
		return nil, nil
	}
	e, seconds := &embedder{authorized: slices.Contains(secrets, "api_key")}, int64(10)
	err := object.Decode(block, object.Optional("model", &e.model), object.Optional("timeout_s", &seconds))
	e.timeoutMS = seconds * 1000
	return e, err
}

// embed returns a vector for each text. All have the same number of components. A request that the endpoint refuses is
// sent once more with shorter texts, because a model accepts a limited number of tokens.
//
// Errors: those of the host call; by the server's status (chat.Refusal); backend for an answer without vectors.
func (e *embedder) embed(c *sdk.Call, texts []string) ([][]float32, error) {
	vectors, err := e.send(c, texts, textBytes)
	if chat.IsFinal(err) && slices.ContainsFunc(texts, func(t string) bool { return len(t) > shortBytes }) {
		vectors, err = e.send(c, texts, shortBytes)
	}
	return vectors, err
}

func (e *embedder) send(c *sdk.Call, texts []string, most int) ([][]float32, error) {
	// Leave a quarter of the call's time for what follows.
	r := abi.HTTPRequest{Route: embedRoute, TimeoutMS: max(1, min(e.timeoutMS, c.Remaining()*3/4))}
	sdk.Put(&r.Headers, "content-type", "application/json")
	sdk.Put(&r.Headers, "accept", "application/json")
	if e.authorized {
		sdk.Put(&r.Headers, "authorization", "Bearer {{secret:api_key}}")
	}
	short := make([]string, len(texts))
	for i, text := range texts {
		short[i] = text
		if len(text) > most {
			short[i] = strings.ToValidUTF8(text[:most], "")
		}
	}
	head, body, err := c.HTTP(r, object.Encode(object.Always("model", &e.model), object.Always("input", &short)))
	if err != nil {
		return nil, err
	}
	if head.Status < 200 || head.Status > 299 {
		return nil, chat.Refusal(head.Status, head.Headers["retry-after"], body, timeOf(c.Now))
	}
	vectors, err := parseVectors(body, len(texts))
	if err != nil {
		return nil, abi.NewError(abi.CodeBackend, "the endpoint answered without vectors for "+sdk.Itoa(int64(len(texts)))+
			" texts")
	}
	return vectors, nil
}

// parseVectors reads {"data": [{"index": 0, "embedding": [0.1, ...]}, ...]}, with one vector for each of n texts.
func parseVectors(body []byte, texts int) ([][]float32, error) {
	vectors, seen := make([][]float32, texts), 0
	err := wirejson.DecodeBytes(body).Obj(func(d *wirejson.Decoder, key string) error {
		if key != "data" {
			return d.Skip()
		}
		return d.Arr(func(d *wirejson.Decoder) error {
			at, vector := int64(seen), []float32(nil)
			seen++
			err := object.Read(d, func(d *wirejson.Decoder, name string) error {
				if name != "embedding" {
					return d.Skip()
				}
				return d.Arr(func(d *wirejson.Decoder) error {
					x, err := d.Float64()
					vector = append(vector, float32(x))
					return err
				})
			}, object.Optional("index", &at))
			if err == nil && at >= 0 && at < int64(texts) {
				vectors[at] = vector
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	for _, v := range vectors {
		if n := norm(v); len(v) != len(vectors[0]) || !(n > 0) || math.IsInf(n, 0) {
			return nil, abi.NewError(abi.CodeBackend, "a vector is missing")
		}
	}
	return vectors, nil
}

func norm(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// health requests the vector of one word.
func (e *embedder) health(c *sdk.Call, h *abi.BackendHealth) {
	if _, err := e.embed(c, []string{"health"}); err != nil {
		h.Status = abi.HealthDegraded
		h.Warnings = append(h.Warnings, embedderFailed(err)+"; messages are stored, and words find them")
	}
}

// embedderFailed is the warning for an error of the endpoint.
func embedderFailed(err error) string {
	e := abi.AsError(err)
	warning := "embedder_failed: " + string(e.Code) + ": " + e.Message
	switch e.Code {
	case abi.CodeUnauthenticated:
		warning += " (is embedder.api_key right?)"
	case abi.CodeNotFound:
		warning += " (embedder.base_url is the part before /embeddings; is embedder.model served there?)"
	}
	return warning
}

// vectorState is the value of the key embedder: the model whose vectors are in the log.
type vectorState struct {
	model      string
	dimensions int64
	version    int64
	// done is the number of the log's last entry: the messages up to it have vectors.
	done int64
}

func (v *vectorState) members() []object.Member {
	return []object.Member{object.Always("model", &v.model), object.Always("dimensions", &v.dimensions)}
}

func readVectorState(s *state.State) (v vectorState) {
	if v.version = s.Load(embedderKey, v.members()...); v.version != 0 {
		v.done, _ = s.Last(vectorLog)
	}
	return v
}

// What vectors add to a scope's state:
//
//	embedder  the model and the number of components
//	vectors   log; entry n is the vector of message n: a byte 1 and a signed byte for each component, scaled so that the
//	          largest is 127; or a byte 0 for a message that was forgotten
//
// The log may be shorter than the log of messages: the rest is embedded by the next record.
const (
	embedderKey = "embedder"
	vectorLog   = "vectors"
)

// embed computes vectors for messages without one, oldest first: those of this operation, and those of earlier ones,
// which were recorded before the embedder was configured or while it failed. It stops at the first failure, or when
// half of the operation's time has passed.
func (w *writer) embed() error {
	e := w.settings.embedder
	if e == nil || !w.changed {
		return nil
	}
	v, start := readVectorState(w.State), w.Remaining()
	if v.model != e.model {
		v.restart(w.State, e.model, 0)
	}
	for n := 0; n < requestsAtOnce && v.done < w.stored.messages && w.OK(); n++ {
		if n > 0 && w.Remaining() < start/2 {
			break
		}
		if err := w.embedSome(e, &v); err != nil {
			return err
		}
	}
	return nil
}

// restart drops all vectors.
func (v *vectorState) restart(s *state.State, model string, dimensions int64) {
	s.Delete(vectorLog)
	v.model, v.dimensions, v.done = model, dimensions, 0
	s.Store(embedderKey, sdk.AnyVersion, v.members()...)
}

// embedSome embeds the next messages, in one request.
func (w *writer) embedSome(e *embedder, v *vectorState) error {
	last := min(v.done+textsAtOnce, w.stored.messages)
	var texts []string
	var held []bool
	for entry := range w.Entries(messageLog, v.done+1, last) {
		m, there := w.decode(entry)
		if held = append(held, there); there {
			texts = append(texts, m.document())
		}
	}
	if !w.OK() {
		return nil
	}
	var vectors [][]float32
	if len(texts) > 0 {
		var err error
		if vectors, err = e.embed(w.Call, texts); err != nil {
			return err
		}
		if dimensions := int64(len(vectors[0])); dimensions != v.dimensions {
			again := v.done > 0
			v.restart(w.State, e.model, dimensions)
			if again { // the model has changed but kept its name
				return nil
			}
		}
	}
	for _, there := range held {
		if !there {
			w.Append(vectorLog, []byte{0})
			continue
		}
		w.Append(vectorLog, packVector(vectors[0]))
		vectors = vectors[1:]
	}
	v.done = last
	return nil
}

// packVector encodes a vector for the log.
func packVector(v []float32) []byte {
	largest := float32(0)
	for _, x := range v {
		largest = max(largest, x, -x)
	}
	data := make([]byte, 1, len(v)+1)
	data[0] = 1
	for _, x := range v {
		data = append(data, byte(int8(math.Round(float64(x/largest*127)))))
	}
	return data
}

// forgetVectors drops the vectors of messages.
func (w *writer) forgetVectors(doomed map[int64]bool) {
	var kept [][]byte
	for entry := range w.Entries(vectorLog, 1, w.stored.messages) {
		data := []byte{0}
		if !doomed[entry.Seq] {
			data = append([]byte(nil), entry.Data...)
		}
		kept = append(kept, data)
	}
	if len(kept) == 0 {
		return
	}
	w.Delete(vectorLog)
	for _, data := range kept {
		w.Append(vectorLog, data)
	}
}

// nearest ranks messages by the cosine of their vectors with a query's, and returns the best ones first.
func nearest(s *state.State, query []float32, done int64, most int) []hit {
	length := norm(query)
	var best []hit
	for entry := range s.Entries(vectorLog, 1, done) {
		if len(entry.Data) != len(query)+1 {
			if len(entry.Data) != 1 {
				s.Fail(state.Unreadable(vectorLog))
			}
			continue
		}
		product, square := float32(0), int32(0)
		for i, x := range query {
			y := int32(int8(entry.Data[i+1]))
			product += x * float32(y)
			square += y * y
		}
		best = append(best, hit{entry.Seq, float64(product) / (length * math.Sqrt(float64(square)))})
		if len(best) >= 2*most+100 {
			best = bestOf(best, most)
		}
	}
	return bestOf(best, most)
}

const (
	// fusion is added to each rank, and depth is how many messages of a ranking count.
	fusion = 60
	depth  = 1000
)

// fuse joins rankings by reciprocal rank: a message's score is the sum of 1 / (60 + rank), ranks counted from 1, over
// the rankings that have it. Equal ones come in the order of their arrival.
func fuse(rankings ...[]hit) []hit {
	scores := map[int64]float64{}
	for _, ranking := range rankings {
		for i, x := range ranking {
			scores[x.message] += 1 / float64(fusion+i+1)
		}
	}
	fused := make([]hit, 0, len(scores))
	for message, score := range scores {
		fused = append(fused, hit{message, score})
	}
	return bestOf(fused, len(fused))
}

// search holds the vector part of a retrieval.
type search struct {
	vectorState
	// ranking is the order by vectors. failed: there is none because the endpoint failed.
	ranking  []hit
	failed   bool
	warnings []string
}

// search ranks messages by vectors, if there is an embedder and messages have vectors.
func (e *embedder) search(s *state.State, held *collection, query string, most int) *search {
	found := &search{vectorState: readVectorState(s)}
	missing := held.messages - found.done
	if found.model != e.model && found.done > 0 {
		missing = held.messages
	}
	if missing > 0 {
		found.warnings = append(found.warnings, notEmbedded(missing, held))
	}
	if missing >= held.messages || strings.TrimSpace(query) == "" || !s.OK() {
		return found
	}
	vectors, err := e.embed(s.Call, []string{query})
	if err == nil && int64(len(vectors[0])) != found.dimensions {
		err = abi.NewError(abi.CodeBackend, "the vector has "+sdk.Itoa(int64(len(vectors[0])))+
			" components, and those of the messages have "+sdk.Itoa(found.dimensions))
	}
	if err != nil {
		found.failed = true
		found.warnings = append(found.warnings, embedderFailed(err)+"; found by words alone")
		return found
	}
	found.ranking = nearest(s, vectors[0], found.done, most)
	return found
}

func notEmbedded(missing int64, held *collection) string {
	return "not_embedded: " + sdk.Itoa(missing) + " of " + sdk.Itoa(held.messages) +
		" messages have no vector yet; words find them, and the next turns that are recorded embed them"
}
