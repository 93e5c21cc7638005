package main

import (
	"slices"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// The write profiles, as add_mode names them.
const (
	profileAsync = "async"
	profileFast  = "sync/fast"
	profileFine  = "sync/fine"
)

// The search modes of POST /product/search.
const (
	searchFast    = "fast"
	searchFine    = "fine"
	searchMixture = "mixture"
)

// settings is the operator's block. The host lays the schema's defaults under it.
type settings struct {
	config          *abi.GuestConfig
	addMode         string
	searchMode      string
	graphStore      string
	limits          limits
	dedup           string
	relativity      float64
	rerank          bool
	readBack        bool
	isolationProbe  bool
	stallAfterMS    int64
	feedbackEnabled bool
	feedbackMode    string
	// headers go with every request, jsonHeaders with those that have a body.
	headers, jsonHeaders abi.Members[string]
	// effective is effect of the configured limits.
	effective abi.Members[abi.Raw]
	// verified is a cache: the probe that found cubes kept apart. It says nothing about a scope.
	verified *verdict
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

// parseSettings reads the block. The values before it are the schema's defaults, for a host that does not lay them under.
func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, addMode: profileAsync, searchMode: searchFast, graphStore: "neo4j-community", limits: limits{10, 6, 6, 3},
		dedup: "mmr", rerank: true, readBack: true, isolationProbe: true, stallAfterMS: 600_000, feedbackMode: "sync",
		jsonHeaders: abi.Members[string]{{Name: "content-type", Value: "application/json"}}}
	if slices.Contains(config.Secrets, "api_key") {
		s.headers = abi.Members[string]{{Name: "authorization", Value: "Bearer {{secret:api_key}}"}}
		s.jsonHeaders = append(s.jsonHeaders, s.headers...)
	}
	texts := map[string]*string{"add_mode": &s.addMode, "search_mode": &s.searchMode, "graph_store": &s.graphStore, "dedup": &s.dedup, "feedback_mode": &s.feedbackMode}
	numbers := map[string]*int64{"top_k": &s.limits.text, "pref_top_k": &s.limits.pref, "tool_mem_top_k": &s.limits.tool, "skill_mem_top_k": &s.limits.skill,
		"stall_after_ms": &s.stallAfterMS}
	switches := map[string]*bool{"rerank": &s.rerank, "read_back": &s.readBack, "isolation_probe": &s.isolationProbe, "feedback_enabled": &s.feedbackEnabled}
	err := jsontext.DecodeBytes(config.Config).Obj(func(d *jsontext.Decoder, key string) (err error) {
		if d.Next() == jsontext.Null {
			return d.Null()
		}
		switch {
		case texts[key] != nil:
			*texts[key], err = d.Str()
		case numbers[key] != nil:
			*numbers[key], err = d.Int64()
		case switches[key] != nil:
			*switches[key], err = d.Bool()
		case key == "relativity":
			s.relativity, err = d.Float64()
		default:
			err = d.Skip()
		}
		return err
	})
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of memos: "+err.Error())
	}
	s.effective = s.effect(s.limits)
	return s, nil
}

// effect is a trace's effective: what a search with limits was made with. Whoever gets it does not change it.
func (s *settings) effect(l limits) abi.Members[abi.Raw] {
	return abi.Members[abi.Raw]{{Name: "search_mode", Value: sdk.Text(s.searchMode)}, {Name: "dedup", Value: sdk.Text(s.dedup)}, {Name: "session_id", Value: sdk.Text("soft")},
		{Name: "top_k", Value: sdk.Number(l.text)}, {Name: "pref_top_k", Value: sdk.Number(l.pref)}, {Name: "tool_mem_top_k", Value: sdk.Number(l.tool)}, {Name: "skill_mem_top_k", Value: sdk.Number(l.skill)}}
}

// async tells whether an LLM works on a write after it was answered.
func (s *settings) async() bool { return s.addMode == profileAsync }

// keepsInfo tells whether the request's info is found on the final memories: always in the sync profiles; after async extraction only on the
// stores whose handler copies it (mem_read_handler.py).
func (s *settings) keepsInfo() bool {
	return !s.async() || s.graphStore == "postgres" || s.graphStore == "polardb"
}

// filters tells whether the store applies a filter in search and get_memory: postgres ignores it (graph_dbs/postgres.py).
func (s *settings) filters() bool { return s.graphStore != "postgres" }
