package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// defaultItems is the default number of messages, maxItems the maximum.
const (
	defaultItems = 100
	maxItems     = 10_000
)

// settings is the config block.
type settings struct {
	config *abi.GuestConfig
	// recall: the provider is recall, which also shows messages that share no word with the query (recall.go).
	recall bool
	// byTime shows the oldest message first, instead of the best.
	byTime bool
	// maxItems and maxTokens bound every retrieval in addition to the request's budget. maxTokens 0: no such bound.
	// maxItems 0: only max_tokens bounds the number, or the constant maxItems if that is not set.
	maxItems, maxTokens int64
	// embedder is nil if none is configured: messages are then found by words only.
	embedder *embedder
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, recall: config.Provider == "recall"}
	order, endpoint := "", abi.Raw(nil)
	err := object.Decode(config.Config, object.Optional("order", &order), object.Optional("max_items", &s.maxItems),
		object.Optional("max_tokens", &s.maxTokens), object.Optional("embedder", &endpoint))
	if err == nil {
		s.embedder, err = parseEmbedder(endpoint, config.Secrets)
	}
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of "+config.Provider+": "+err.Error())
	}
	switch {
	case config.Provider == "hybrid" && s.embedder == nil:
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of hybrid: embedder is missing; hybrid ranks by words "+
			"and by vectors: set embedder.base_url and embedder.model")
	case config.Provider == "bm25" && s.embedder != nil:
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of bm25: embedder: bm25 ranks by words alone; the "+
			"provider hybrid ranks by words and by vectors")
	}
	if s.maxItems == 0 && config.Profile == abi.ProfileSourceDesign {
		s.maxItems = defaultItems
	}
	s.byTime = order == "time"
	return s, nil
}

// budget returns the request's budget, bounded by the configuration. Its max_items is always set.
func (s *settings) budget(b abi.ContextBudget) abi.ContextBudget {
	if s.maxTokens > 0 && (b.MaxTokens == nil || *b.MaxTokens > s.maxTokens) {
		b.MaxTokens = &s.maxTokens
	}
	most := s.maxItems
	switch {
	case most == 0 && b.MaxTokens == nil:
		most = defaultItems
	case most == 0:
		most = maxItems
	}
	if b.MaxItems == nil || *b.MaxItems > most {
		b.MaxItems = &most
	}
	return b
}

// effective returns the configuration that a retrieval used, for its trace.
func (s *settings) effective(budget abi.ContextBudget) map[string]abi.Raw {
	order := "relevant"
	if s.byTime {
		order = "time"
	}
	used := map[string]abi.Raw{"order": sdk.Text(order), "k1": abi.Raw("1.2"), "b": abi.Raw("0.75"),
		"max_items": sdk.Number(*budget.MaxItems)}
	if budget.MaxTokens != nil {
		used["max_tokens"] = sdk.Number(*budget.MaxTokens)
	}
	if s.embedder != nil {
		used["embedder_model"] = sdk.Text(s.embedder.model)
		used["fusion"], used["depth"] = sdk.Number(fusion), sdk.Number(depth)
	}
	return used
}
