package config

import (
	"slices"
	"strings"
)

// retiredKey is a key of early designs of this configuration that cannot do what it promises. People still write it, so
// the error gives the reason and the replacement instead of "unknown key".
type retiredKey struct {
	path []string
	text string
}

// renamed are keys of early designs that only have another name now.
var renamed = []struct{ provider, old, now string }{
	{"rolling_summary", "max_tokens", "max_context_tokens"},
}

const (
	scopeInstead = "remove it: memory.scope says whose memory is meant, memory.namespace separates installations"
	notInjective = "a template can give two scopes the same id, so memhost derives native ids from namespace, run, " +
		"persona and agent itself"
)

// graphitiInstead answers keys of a design that ran Graphiti in process.
var graphitiInstead = map[string]string{
	"driver": "cannot hold: memhost reaches Graphiti over a server, and where that stores is said where it is started; " +
		"remove it and write " +
		"surface: rest, mcp or core, and url. Over rest and mcp that is Neo4j, which bolt names so that memhost can look " +
		"into it",
	"search_mode": "cannot hold: rest and mcp search in one way only, BM25 and cosine fused by reciprocal rank, which " +
		"is what hybrid means; " +
		"remove it, or use surface: core with recipe, such as COMBINED_HYBRID_SEARCH_RRF",
}

// nanobotInstead answers keys of Nanobot's own configuration, agents.defaults and agents.defaults.dream.
var nanobotInstead = map[string]string{
	"memoryWindow":   "is called memory_window",
	"intervalH":      "is called interval_h, in hours as there",
	"modelOverride":  "is called model",
	"model_override": "is called model",
	"maxBatchSize": "is called max_entries, the entries of the history that one run reads; Nanobot ignores it by " +
		"now, memhost does not",
	"max_batch_size": "is called max_entries, the entries of the history that one run reads; Nanobot ignores it by " +
		"now, memhost does not",
	"maxIterations":      "is called max_iterations, the rounds of one run; Nanobot ignores it by now, memhost does not",
	"annotateLineAges":   "has no effect in Nanobot by now, and is not there in memhost: remove it",
	"annotate_line_ages": "has no effect in Nanobot by now, and is not there in memhost: remove it",
}

// retired finds such keys in the block of one of the first-party architectures. Blocks of other providers may use the
// same names for what they like.
func retired(provider string, block map[string]any) []retiredKey {
	var found []retiredKey
	add := func(path []string, text string) { found = append(found, retiredKey{slices.Clone(path), text}) }
	mem0OSS := block["api"] == nil || block["api"] == "oss"
	eachValue(block, nil, func(path []string, v any) {
		if len(path) == 0 {
			return
		}
		name := path[len(path)-1]
		text, _ := v.(string)
		switch provider {
		case "graphiti":
			if len(path) == 1 && (name == "driver" || name == "search_mode") {
				add(path, graphitiInstead[name])
				return
			}
			switch name {
			case "group_id_template":
				add(path, "cannot hold: Graphiti's group ids are made of letters, digits, _ and - only, and "+
					notInjective+"; "+scopeInstead)
				return
			case "search_config":
				if v == nil || block["surface"] == "core" {
					return
				}
				add(path, "cannot hold: neither of Graphiti's servers takes a search configuration, facts are always found by "+
					"BM25 and cosine with reciprocal rank fusion; remove it, "+
					"or use surface: core, with search_config as an object or recipe by name")
				return
			}
		case "honcho":
			if name == "workspace_template" {
				add(path, "cannot hold: Honcho's ids are made of letters, digits, _ and - only, and "+
					notInjective+" (one workspace for each scope, so that it can be reset); "+scopeInstead)
				return
			}
		case "memos":
			switch {
			case name == "writable_cube_template" || name == "readable_cube_template":
				add(path, "cannot hold: ':' in a cube's id collides with MemOS's Redis keys, and "+
					notInjective+" (one cube for each scope, read and written); "+scopeInstead)
				return
			case name == "async_mode" && len(path) == 1:
				add(path, "is called add_mode: write add_mode: async for "+`"async"`+", and sync/fast or sync/fine for "+`"sync"`)
				return
			case name == "use_multi_db" && len(path) == 1:
				add(path, "cannot hold: whether MemOS's scopes share a database is said where the server is started "+
					"(MOS_NEO4J_SHARED_DB); remove it, and name the store in graph_store")
				return
			case name == "mode" && len(path) == 1 && text != "mixture":
				add(path, "is two keys: how turns are added is add_mode (async, sync/fast or sync/fine), "+
					"how memory is searched is "+
					"search_mode (fast; fine and mixture as ablations)")
				return
			case text == "mixture" && (name == "add_mode" || name == "mode" && (len(path) == 1 || path[len(path)-2] == "add")):
				add(path, "cannot hold: MemOS adds only in mode fast or fine (mixture is answered with 422), and mixture search "+
					"drops preferences and sources and writes a search history; "+
					"write add_mode: async, sync/fast or sync/fine, and search_mode: fast (mixture only as an ablation)")
				return
			}
		case "mem0", "simple_rag":
			if name == "rerank" && v != false && v != nil && mem0OSS {
				add(path, "cannot hold: mem0's open-source server has no rerank field and ignores it in silence; remove it, "+
					"or set api to a surface that reranks (the platform, or the gateway)")
				return
			}
		case "layered_memory", "rolling_summary", "nanobot_file_summary":
			if instead := nanobotInstead[name]; instead != "" {
				add(path, instead)
			}
			return
		default:
			return
		}
		if strings.HasSuffix(name, "_template") && strings.Contains(text, ":") && scopePlaceholder(text) {
			add(path, "cannot hold: ':' is refused in ids, or splits them, in these backends, and "+
				notInjective+"; "+scopeInstead)
		}
	})
	return found
}

func scopePlaceholder(text string) bool {
	return slices.ContainsFunc([]string{"{run_id}", "{persona_id}", "{user_id}", "{agent_id}", "{session_id}"},
		func(p string) bool { return strings.Contains(text, p) })
}
