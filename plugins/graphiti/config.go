package main

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// settings is the config block, and the MCP session of this instance.
type settings struct {
	config *abi.GuestConfig
	// mcp is the surface: Graphiti's MCP server; core: the library behind memhost's gateway; neither: the REST service.
	mcp, core bool
	// bolt: the block names Neo4j, so that the graph itself can be looked at.
	bolt bool
	// maxFacts is sent with every search, always the same: the servers write it into a recipe that ingestion uses too.
	maxFacts int64
	// stallMS is how long nothing may happen before the ingest worker is presumed dead.
	stallMS int64
	// labelsInQuery appends scenario, context and attribute to the query; labelSentence puts them before the content of an event.
	labelsInQuery, labelSentence bool
	// annotate asks Bolt, after each search, for the episodes behind the facts.
	annotate bool
	// nodes asks for entities too (MCP).
	nodes bool
	// source is the episode type on MCP and core.
	source string
	// roles are whose messages are ingested; nil means all.
	roles []string
	// instructions go with every episode on MCP and core.
	instructions string
	// library is what only the surface core has.
	library library
	// headers go with every request.
	headers abi.Members[string]
	// effective is what traces say of every search of Graphiti's own servers.
	effective abi.Members[abi.Raw]

	session session
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

// parseSettings reads the block. The schema's defaults are repeated for hosts that lay none under it.
func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, maxFacts: 20, stallMS: 120_000, labelsInQuery: true, annotate: true, source: "message",
		library: library{recipe: recipeOfServers}, headers: abi.Members[string]{{Name: "content-type", Value: "application/json"}}}
	url, surface, bearer := "", "", false
	err := jsontext.DecodeBytes(config.Config).Obj(func(d *jsontext.Decoder, key string) (err error) {
		if d.Next() == jsontext.Null {
			return d.Null()
		}
		switch key {
		case "url":
			url, err = d.Str()
		case "surface":
			surface, err = d.Str()
		case "bolt":
			s.bolt = true
			err = d.Skip()
		case "max_facts":
			s.maxFacts, err = d.Int64()
		case "stall_s":
			s.stallMS, err = d.Int64()
			s.stallMS *= 1000
		case "labels_in_query":
			s.labelsInQuery, err = d.Bool()
		case "label_sentence":
			s.labelSentence, err = d.Bool()
		case "annotate":
			s.annotate, err = d.Bool()
		case "search_nodes":
			s.nodes, err = d.Bool()
		case "source":
			s.source, err = d.Str()
		case "roles":
			s.roles, err = texts(d)
		case "extraction_instructions":
			s.instructions, err = d.Str()
		case "headers":
			err = d.Obj(func(d *jsontext.Decoder, name string) error {
				value, err := d.Str()
				s.headers.Set(lower(name), value)
				return err
			})
		case "api_key":
			bearer = true
			err = d.Skip()
		default:
			err = s.library.decode(d, key)
		}
		return err
	})
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of graphiti: "+err.Error())
	}
	if bearer {
		s.headers.Set("authorization", "Bearer {{secret:api_key}}")
	}
	if s.mcp = surface == surfaceMCP; s.mcp {
		s.headers.Set("accept", "application/json, text/event-stream") // both, or the server answers 406
	}
	if s.core = surface == surfaceCore; s.core {
		s.library.settle()
	}
	s.effective = abi.Members[abi.Raw]{{Name: "search", Value: sdk.Text("edge_hybrid_rrf")}, {Name: "max_facts", Value: sdk.Number(s.maxFacts)}}
	return s, s.check(url, surface)
}

// The surfaces that this build speaks.
const (
	surfaceREST = "rest"
	surfaceMCP  = "mcp"
	surfaceCore = "core"
)

// check refuses what the schema cannot say.
func (s *settings) check(url, surface string) error {
	wrong := func(field, what, hint string) error {
		return abi.NewError(abi.CodeInvalidArgument, field+": "+what).WithHint(hint)
	}
	switch {
	case surface != surfaceREST && surface != surfaceMCP && surface != surfaceCore:
		return wrong("surface", `want "rest", "mcp" or "core"`, "")
	case strings.HasSuffix(strings.TrimRight(url, "/"), "/mcp"):
		return wrong("url", "ends in /mcp, which memhost adds itself", "write the server's base URL, such as http://127.0.0.1:8000")
	case !s.core && s.library.only != "":
		return wrong(s.library.only, "exists on the surface core only: Graphiti's own servers do not offer it", "use surface: core with memhost-gateway-graphiti, or leave it out")
	case s.core && s.maxFacts < 1:
		return wrong("max_facts", "must be at least 1", "")
	case !s.core && s.maxFacts < minFacts:
		return wrong("max_facts", "must be at least 10", "Graphiti's servers keep the last value for ingestion too, and a smaller one harms it for good; max_items of the budget cuts what is shown")
	case s.stallMS <= 0:
		return wrong("stall_s", "must be at least 1", "")
	case s.core && s.source == "fact_triple":
		return wrong("source", "fact_triple runs the extraction of text, and the gateway refuses it", "use source: text, or surface: mcp; triplets: true allows facts by hand")
	case s.core && s.nodes:
		return wrong("search_nodes", "exists on MCP only", "use a recipe that finds entities, such as COMBINED_HYBRID_SEARCH_RRF, or surface: mcp")
	case s.core:
		if field, what, hint := s.library.wrong(); field != "" {
			return wrong(field, what, hint)
		}
	case !s.mcp && s.source != "message":
		return wrong("source", "the REST service stores messages only", `use surface: mcp or core, or source: message`)
	case !s.mcp && s.instructions != "":
		return wrong("surface", "extraction_instructions exist on MCP and core only", "use surface: mcp or core, or leave them out")
	case !s.mcp && s.nodes:
		return wrong("surface", "search_nodes exists on MCP only", "use surface: mcp, or leave it out")
	}
	switch {
	case s.labelSentence && s.source == "json":
		return wrong("label_sentence", "a sentence cannot stand before JSON", "leave it out, or use source: message")
	}
	return nil
}

// minFacts is the smallest max_facts that ingestion gets along with (graphiti_core edge_operations.py: resolve_extracted_edges).
const minFacts = 10

// surface is the word for traces and notes.
func (s *settings) surface() string {
	switch {
	case s.mcp:
		return surfaceMCP
	case s.core:
		return surfaceCore
	}
	return surfaceREST
}

// ingests tells whether messages of a role are sent.
func (s *settings) ingests(role abi.Role) bool {
	if s.roles == nil {
		return true
	}
	for _, r := range s.roles {
		if r == string(role) {
			return true
		}
	}
	return false
}

// needBolt is the answer of a capability that only Neo4j itself can give.
func (s *settings) needBolt(what string) error {
	if s.bolt {
		return nil
	}
	return abi.NewError(abi.CodeUnsupported, what+" needs a look into the graph, which the "+s.surface()+" surface does not give").WithReason("no_bolt").
		WithHint("configure bolt, bolt_user and bolt_password")
}
