package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// library is the configuration of graphiti-core's own API, which only the surface core has.
type library struct {
	// receipts is sync or queued: whether the receipt is returned after the gateway has committed the event, or after
	// it has queued it.
	receipts string
	// bulk is single or native: a batch is one add_episode_bulk.
	bulk string
	// recipe is one of the library's 16 search recipes; config, if set, replaces it.
	recipe string
	config []field
	// minScore belongs to recipe.
	minScore abi.Raw
	// filters are sent with every search.
	filters []field
	// The rest is sent with every episode, in the gateway's format.
	entityTypes, excludedTypes, edgeTypes, edgeTypeMap abi.Raw
	// previous is latest or none. With none, extraction does not see earlier episodes.
	previous string
	// saga is session if the episodes of a session form a saga.
	saga string
	// triplets and communities allow the native mutations of these names.
	triplets, communities bool
}

// recipeOfServers is the recipe that the REST service and the MCP server always use.
const recipeOfServers = "EDGE_HYBRID_SEARCH_RRF"

func newLibrary() *library { return &library{recipe: recipeOfServers} }

func (l *library) fields() fields {
	return fields{
		{"receipts", &l.receipts}, {"bulk", &l.bulk},
		{"recipe", &l.recipe}, {"reranker_min_score", &l.minScore},
		{"search_config", &l.config}, {"search_filters", &l.filters},
		{"entity_types", &l.entityTypes}, {"excluded_entity_types", &l.excludedTypes},
		{"edge_types", &l.edgeTypes}, {"edge_type_map", &l.edgeTypeMap},
		{"previous_episodes", &l.previous}, {"saga", &l.saga},
		{"triplets", &l.triplets}, {"communities", &l.communities},
	}
}

// unsupportedKey returns a configured key that the servers do not support; "" if there is none.
func (l *library) unsupportedKey() string {
	for _, key := range [...]struct {
		name string
		set  bool
	}{
		{"receipts", l.queued()}, {"bulk", l.native()},
		{"recipe", l.recipe != recipeOfServers}, {"reranker_min_score", l.minScore != nil},
		{"search_config", l.config != nil}, {"search_filters", l.filters != nil},
		{"entity_types", l.entityTypes != nil}, {"excluded_entity_types", l.excludedTypes != nil},
		{"edge_types", l.edgeTypes != nil}, {"edge_type_map", l.edgeTypeMap != nil},
		{"previous_episodes", l.previous == "none"}, {"saga", l.saga != ""},
		{"triplets", l.triplets}, {"communities", l.communities},
	} {
		if key.set {
			return key.name
		}
	}
	return ""
}

func (l *library) queued() bool { return l.receipts == "queued" }
func (l *library) native() bool { return l.bulk == "native" }

// kinds says which lists a search returns.
type kinds struct{ facts, entities, episodes, communities bool }

// kinds returns the kinds of items that the search finds.
func (l *library) kinds() kinds {
	if l.config != nil {
		return kinds{has(l.config, "edge_config"), has(l.config, "node_config"), has(l.config, "episode_config"),
			has(l.config, "community_config")}
	}
	all := strings.HasPrefix(l.recipe, "COMBINED_")
	return kinds{all || strings.HasPrefix(l.recipe, "EDGE_"), all || strings.HasPrefix(l.recipe, "NODE_"), all,
		all || strings.HasPrefix(l.recipe, "COMMUNITY_")}
}

// searchName returns the name of the search in traces.
func (l *library) searchName() string {
	if l.config != nil {
		return "search_config"
	}
	return l.recipe
}

// usesReranker reports whether an LLM ranks what is found.
func (l *library) usesReranker() bool {
	if l.config == nil {
		return strings.HasSuffix(l.recipe, "_CROSS_ENCODER")
	}
	return strings.Contains(string(object(l.config...)), `"cross_encoder"`)
}

func (l *library) rules(s *settings) []rule {
	return []rule{
		{s.maxFacts < 1, "max_facts", "must be at least 1", ""},
		{s.source == "fact_triple", "source", "fact_triple runs the extraction of text, and the gateway refuses it",
			"use source: text, or surface: mcp; triplets: true allows facts by hand"},
		{s.nodes, "search_nodes", "exists on MCP only",
			"use a recipe that finds entities, such as COMBINED_HYBRID_SEARCH_RRF, or surface: mcp"},
		{l.kinds() == kinds{}, "search_config", "searches nothing",
			"give at least one of edge_config, node_config, episode_config and community_config"},
		{l.config != nil && l.minScore != nil, "reranker_min_score", "goes with recipe", "write it into search_config"},
		{l.edgeTypeMap != nil && l.edgeTypes == nil, "edge_type_map", "needs edge_types", ""},
	}
}

// limit returns how many items of each kind to request: the budget's max_items, or what the host derives from
// max_tokens, but never more than a configured number. The gateway copies the recipe for each search, so a search's
// limit does not affect others.
func (l *library) limit(v *scopedCall, budget abi.ContextBudget) int64 {
	own, set := v.maxFacts, v.factsSet
	for _, f := range l.config {
		limit, err := wirejson.DecodeBytes(f.value).Int64()
		if f.name == "limit" && err == nil {
			own, set = limit, true
		}
	}
	n := max(1, v.ItemsFor(budget, own))
	if set {
		return min(n, own)
	}
	return min(n, maxCoreItems)
}

// maxCoreItems is the maximum that one search of the gateway requests, for each kind of item.
const maxCoreItems = 1000

// searchConfig returns the part of a search request that configures the search: a recipe by name, or a whole
// configuration with this request's limit.
func (l *library) searchConfig(limit int64) []field {
	if l.config == nil {
		return []field{{"recipe", sdk.Text(l.recipe)}, {"limit", sdk.Number(limit)}, {"reranker_min_score", l.minScore}}
	}
	var config []field
	for _, f := range l.config {
		if f.name != "limit" {
			config = append(config, f)
		}
	}
	return []field{{"config", object(append(config, field{"limit", sdk.Number(limit)})...)}}
}

func has(list []field, name string) bool {
	for i := range list {
		if list[i].name == name {
			return true
		}
	}
	return false
}
