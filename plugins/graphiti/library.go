package main

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
)

// library is what a configuration chooses of graphiti-core's own API: the surface core, behind memhost-gateway-graphiti.
type library struct {
	// only is a key that was set and that the other surfaces do not have; empty when there is none.
	only string
	// queued: a receipt is given when the gateway has the event in its queue; else when it has committed it.
	queued bool
	// bulk: a batch is one add_episode_bulk.
	bulk bool
	// recipe is one of the library's 16; config, where it is set, takes its place.
	recipe string
	config []field
	// minScore goes with recipe.
	minScore abi.Raw
	// filters go with every search.
	filters []field
	// types go with every episode, as the gateway has them: entity_types, edge_types and so on.
	types []field
	// entityTypes and edgeTypes are the names in them.
	entityTypes, edgeTypes []string
	// noPrevious: extraction sees no earlier episodes.
	noPrevious bool
	// saga: the episodes of a session form a saga.
	saga bool
	// triplets and communities allow the native mutations of these names.
	triplets, communities bool

	// kinds are what the search finds, and reranked whether an LLM ranks it.
	kinds    kinds
	reranked bool
}

// field is a part of a request as the configuration or the caller wrote it.
type field struct {
	name  string
	value abi.Raw
}

// kinds says which lists a search fills.
type kinds struct{ facts, entities, episodes, communities bool }

// recipeOfServers is how the REST service and the MCP server search, always.
const recipeOfServers = "EDGE_HYBRID_SEARCH_RRF"

// decode reads one key of the block, and notes one that asks for more than the servers have.
func (l *library) decode(d *jsontext.Decoder, key string) (err error) {
	var asked bool
	switch key {
	case "receipts":
		l.queued, err = chosen(d, "queued")
		asked = l.queued
	case "bulk":
		l.bulk, err = chosen(d, "native")
		asked = l.bulk
	case "recipe":
		l.recipe, err = d.Str()
		asked = l.recipe != recipeOfServers
	case "reranker_min_score":
		l.minScore, err = verbatim(d)
		asked = true
	case "search_config":
		l.config, err = readFields(d)
		asked = true
	case "search_filters":
		l.filters, err = readFields(d)
		asked = true
	case "entity_types":
		l.entityTypes, err = l.namesOf(d, key)
		asked = true
	case "edge_types":
		l.edgeTypes, err = l.namesOf(d, key)
		asked = true
	case "excluded_entity_types", "edge_type_map":
		var value abi.Raw
		value, err = verbatim(d)
		l.types = append(l.types, field{strings.Clone(key), value})
		asked = true
	case "previous_episodes":
		l.noPrevious, err = chosen(d, "none")
		asked = l.noPrevious
	case "saga":
		l.saga, err = chosen(d, "session")
		asked = l.saga
	case "triplets":
		l.triplets, err = d.Bool()
		asked = l.triplets
	case "communities":
		l.communities, err = d.Bool()
		asked = l.communities
	default:
		return d.Skip()
	}
	if asked {
		l.only = strings.Clone(key)
	}
	return err
}

// chosen tells whether a word is the one that is not the default.
func chosen(d *jsontext.Decoder, word string) (bool, error) {
	said, err := d.Str()
	return said == word, err
}

// namesOf keeps a list of types as it is, and reads it.
func (l *library) namesOf(d *jsontext.Decoder, key string) ([]string, error) {
	value, err := verbatim(d)
	if err != nil {
		return nil, err
	}
	l.types = append(l.types, field{strings.Clone(key), value})
	return texts(jsontext.DecodeBytes(value))
}

// verbatim is a value as it is written, in memory of its own.
func verbatim(d *jsontext.Decoder) (abi.Raw, error) {
	value, err := d.RawAppend(nil)
	return abi.Raw(value), err
}

// readFields takes an object apart, leaving out what is null.
func readFields(d *jsontext.Decoder) (list []field, err error) {
	err = d.Obj(func(d *jsontext.Decoder, key string) error {
		if d.Next() == jsontext.Null {
			return d.Null()
		}
		key = strings.Clone(key)
		value, err := verbatim(d)
		list = append(list, field{key, value})
		return err
	})
	return list, err
}

// settle works out what the search finds.
func (l *library) settle() {
	if l.config == nil {
		combined := strings.HasPrefix(l.recipe, "COMBINED_")
		l.kinds = kinds{facts: combined || strings.HasPrefix(l.recipe, "EDGE_"), entities: combined || strings.HasPrefix(l.recipe, "NODE_"), episodes: combined,
			communities: combined || strings.HasPrefix(l.recipe, "COMMUNITY_")}
		l.reranked = strings.HasSuffix(l.recipe, "_CROSS_ENCODER")
		return
	}
	l.recipe = "search_config"
	for _, f := range l.config {
		switch f.name {
		case "edge_config":
			l.kinds.facts = true
		case "node_config":
			l.kinds.entities = true
		case "episode_config":
			l.kinds.episodes = true
		case "community_config":
			l.kinds.communities = true
		}
		l.reranked = l.reranked || strings.Contains(string(f.value), `"cross_encoder"`)
	}
}

// wrong is what contradicts itself: the field, what is wrong with it, and what to do.
func (l *library) wrong() (at, what, hint string) {
	switch {
	case l.config != nil && l.kinds == kinds{}:
		return "search_config", "searches nothing", "give at least one of edge_config, node_config, episode_config and community_config"
	case l.config != nil && l.minScore != nil:
		return "reranker_min_score", "goes with recipe", "write it into search_config"
	case len(l.edgeTypes) == 0 && has(l.types, "edge_type_map"):
		return "edge_type_map", "needs edge_types", ""
	}
	return "", "", ""
}

func has(list []field, name string) bool {
	for i := range list {
		if list[i].name == name {
			return true
		}
	}
	return false
}
