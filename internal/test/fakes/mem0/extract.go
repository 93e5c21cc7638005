package mem0

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// addRequest is the body of POST /memories.
type addRequest struct {
	Messages   []addMessage   `json:"messages"`
	Metadata   map[string]any `json:"metadata"`
	Expiration string         `json:"expiration_date"`
	Infer      *bool          `json:"infer"`
	Type       *string        `json:"memory_type"`
	Prompt     *string        `json:"prompt"`
	// Observed is the gateway's, behind its patch.
	Observed *string `json:"observation_date"`
	ids      map[string]string
}

type addMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// embedderLimit is the longest text that the embedder takes, in bytes: that of the stub in the recordings.
const embedderLimit = 32000

// readAdd checks a body as the real server's models do.
func readAdd(body []byte) (*addRequest, error) {
	fields, err := readObject(body)
	if err != nil {
		return nil, err
	}
	if fields["messages"] == nil {
		var input any
		_ = json.Unmarshal(body, &input)
		return nil, refuse(422, []any{map[string]any{"type": "missing", "loc": []string{"body", "messages"},
			"msg": "Field required", "input": input}})
	}
	var messages []map[string]json.RawMessage
	if json.Unmarshal(fields["messages"], &messages) != nil {
		return nil, invalidBody("list_type", "Input should be a valid list", fields["messages"], "messages")
	}
	for i, m := range messages {
		if content := ""; json.Unmarshal(m["content"], &content) != nil {
			return nil, invalidBody("string_type", "Input should be a valid string", m["content"], "messages", i,
				"content")
		}
	}
	a := &addRequest{ids: map[string]string{}}
	given := false
	for _, name := range []string{"user_id", "agent_id", "run_id"} {
		var id *string
		if raw := fields[name]; raw != nil && json.Unmarshal(raw, &id) != nil {
			return nil, wrongType(name, raw)
		}
		if id != nil && *id != "" {
			given = true
			if a.ids[name], err = trimID(name, *id); err != nil {
				return nil, err
			}
		}
	}
	if !given {
		return nil, refuse(400, "At least one identifier (user_id, agent_id, run_id) is required.")
	}
	if err := json.Unmarshal(body, a); err != nil {
		return nil, invalidBody("model_attributes_type", err.Error(), body)
	}
	if a.Expiration != "" && (len(a.Expiration) != 10 || a.Expiration[4] != '-') {
		return nil, refuse(400, "expiration_date must be a valid date in YYYY-MM-DD format.")
	}
	if a.Type != nil && *a.Type != "procedural_memory" {
		return nil, refuse(400, "Invalid 'memory_type'. Please pass procedural_memory to create procedural memories.")
	}
	return a, nil
}

func readObject(body []byte) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(body, &fields)
	switch {
	case len(body) == 0:
		return nil, invalidBody("missing", "Field required", json.RawMessage("null"))
	case err == nil:
		return fields, nil
	case json.Valid(body):
		return nil, invalidBody("model_attributes_type",
			"Input should be a valid dictionary or object to extract fields from", body)
	}
	return nil, notJSON(body)
}

func notJSON(body []byte) *problem {
	return refuse(422, []any{map[string]any{"type": "json_invalid", "loc": []any{"body", len(body)},
		"msg": "JSON decode error", "input": map[string]any{},
		"ctx": map[string]any{"error": "Expecting value"}}})
}

func wrongType(name string, raw json.RawMessage) *problem {
	return invalidBody("string_type", "Input should be a valid string", raw, name)
}

func invalidBody(kind, text string, input json.RawMessage, place ...any) *problem {
	var value any
	_ = json.Unmarshal(input, &value)
	return refuse(422, []any{map[string]any{"type": kind, "loc": append([]any{"body"}, place...), "msg": text,
		"input": value}})
}

// add is POST /memories.
func (s *OSS) add(body []byte) (any, error) {
	a, err := readAdd(body)
	if err != nil {
		return nil, err
	}
	if s.faults.FirstUseRace && !s.touched {
		return nil, upstream("unknown")
	}
	if s.faults.Database != "" {
		return nil, s.database()
	}
	verbatim := a.Infer != nil && !*a.Infer
	if g := s.options.Gateway; g != nil {
		switch {
		case a.Observed != nil && !g.ObservationDate:
			return nil, refuseAs("observation_date_off",
				"observation_date: needs patches.observation_date in the gateway's configuration; mem0 itself has no "+
					"such field")
		case a.Type != nil && a.ids["agent_id"] == "":
			return nil, refuseAs("procedural_needs_agent",
				"memory_type: a procedural memory needs agent_id; without one mem0 would make an ordinary add of it")
		}
	}
	var results []map[string]any
	switch {
	case a.Type != nil && a.ids["agent_id"] != "":
		results, err = s.addProcedure(a)
	case verbatim:
		results, err = s.addVerbatim(a)
	default:
		results, err = s.addFacts(a)
	}
	if err != nil {
		return nil, err
	}
	if after := s.faults.After; after != nil {
		s.mu.Unlock()
		after()
		s.mu.Lock()
	}
	if s.faults.AfterStoring {
		return nil, upstream("unknown")
	}
	return map[string]any{"results": results}, nil
}

func (s *OSS) store(r *row) {
	s.rows = append(s.rows, r)
	s.remember(r.id, "", &r.text, "ADD", r)
}

// addVerbatim stores one row a message, one after another; system messages are skipped.
func (s *OSS) addVerbatim(a *addRequest) ([]map[string]any, error) {
	results := []map[string]any{}
	for i, m := range a.Messages {
		switch {
		case m.Role == "system" || m.Content == "":
			continue
		case s.faults.Embedder != "":
			return nil, upstream(s.faults.Embedder)
		case len(m.Content) > embedderLimit:
			return nil, upstream("provider_bad_request")
		case s.faults.FailMessage == i+1 || holdsNUL(m.Content, a.Metadata) || s.faults.Ghosts != nil &&
			s.faults.Ghosts(m.Content):
			return nil, upstream("unknown")
		}
		r := s.newRow(a, m.Content, m.Role, "")
		s.store(r)
		results = append(results, map[string]any{"id": r.id, "memory": r.text, "event": "ADD", "actor_id": nil,
			"role": r.role})
	}
	return results, nil
}

func holdsNUL(text string, metadata map[string]any) bool {
	raw, _ := json.Marshal(metadata)
	return strings.Contains(text, "\x00") || bytes.Contains(raw, []byte(`\u0000`))
}

// addFacts extracts, leaves out what the scope has word for word, and stores the rest. A row that the database refuses
// is answered nevertheless.
func (s *OSS) addFacts(a *addRequest) ([]map[string]any, error) {
	transcript := ""
	for _, m := range a.Messages {
		if m.Role == "user" || m.Role == "assistant" || m.Role == "system" {
			transcript += m.Role + ": " + m.Content + "\n"
		}
	}
	switch {
	case s.faults.Embedder != "":
		return nil, upstream(s.faults.Embedder)
	case transcript == "" || len(transcript) > embedderLimit:
		return nil, upstream("provider_bad_request")
	case s.faults.LLM != "":
		return nil, upstream(s.faults.LLM)
	}
	defer s.keepMessages(a)
	facts, err := s.extract(a)
	if err != nil || s.faults.EmbedderAfterExtraction {
		return []map[string]any{}, err
	}
	results := []map[string]any{}
	for _, fact := range facts {
		r := s.newRow(a, fact, "", "user")
		if !s.faults.Doubles && slices.ContainsFunc(s.rows, func(old *row) bool {
			return old.hash == r.hash && old.hasIDs(a.ids)
		}) {
			continue
		}
		if holdsNUL(fact, a.Metadata) || s.faults.Ghosts != nil && s.faults.Ghosts(fact) {
			s.remember(r.id, "", &r.text, "ADD", r)
		} else {
			s.store(r)
		}
		results = append(results, map[string]any{"id": r.id, "memory": r.text, "event": "ADD"})
	}
	return results, nil
}

// extract is the LLM: each statement of a user.
func (s *OSS) extract(a *addRequest) ([]string, error) {
	switch kind, text, _ := strings.Cut(s.faults.LLMAnswer, ":"); kind {
	case "not_json", "empty_text":
		return nil, nil
	case "string_items":
		return nil, upstream("unknown")
	case "fenced":
		return []string{text}, nil
	}
	return Facts(a.Messages), nil
}

// Facts are what the rule takes from messages: the sentences of users that ask nothing, once each.
func Facts(messages []addMessage) []string {
	var facts []string
	for _, m := range messages {
		if m.Role != "user" {
			continue
		}
		for _, sentence := range sentences(m.Content) {
			if !strings.HasSuffix(sentence, "?") && !strings.HasSuffix(sentence, "？") &&
				!slices.Contains(facts, sentence) {
				facts = append(facts, sentence)
			}
		}
	}
	return facts
}

// sentences cuts behind . ! ? before a blank, behind 。！？ and at line ends.
func sentences(text string) []string {
	var list []string
	var b strings.Builder
	end := func() {
		if s := strings.TrimSpace(b.String()); s != "" {
			list = append(list, s)
		}
		b.Reset()
	}
	runes := []rune(text)
	for i, r := range runes {
		if r == '\n' {
			end()
			continue
		}
		b.WriteRune(r)
		last := i+1 == len(runes) || runes[i+1] == ' ' || runes[i+1] == '\n'
		if strings.ContainsRune("。！？", r) || strings.ContainsRune(".!?", r) && last {
			end()
		}
	}
	end()
	return list
}

// addProcedure stores a summary by the LLM under an agent.
func (s *OSS) addProcedure(a *addRequest) ([]map[string]any, error) {
	var texts []string
	for _, m := range a.Messages {
		texts = append(texts, m.Content)
	}
	r := s.newRow(a, fmt.Sprintf("Summary of the procedure: %s | Create procedural memory of the above conversation.",
		strings.Join(texts, " | ")), "", "")
	r.metadata["memory_type"] = "procedural_memory"
	s.store(r)
	return []map[string]any{{"id": r.id, "memory": r.text, "event": "ADD"}}, nil
}
