package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/idtemplate"
	"github.com/memhost/memhost/sdk"
)

// settings is the config block.
type settings struct {
	config *abi.GuestConfig
	// surface is the server at url, with its MCP session if it has one; name is its name in the configuration.
	surface surface
	name    string
	// hasBolt: the block configures access to Neo4j, so the graph itself can be read.
	hasBolt bool
	// maxFacts is how many facts a search requests; factsSet: the operator set it.
	maxFacts int64
	factsSet bool
	// stallMS is the time without progress after which the ingest worker is presumed dead.
	stallMS int64
	// labelsInQuery appends scenario, context and attribute to the query; labelSentence puts them before the content of
	// an event.
	labelsInQuery, labelSentence bool
	// annotate looks up, after each search, the episodes behind the facts.
	annotate bool
	// nodes requests entities too.
	nodes bool
	// source is the type of the episodes.
	source string
	// roles are the roles whose messages are ingested; nil means all.
	roles []string
	// instructions are sent with every episode.
	instructions string
	// coreOnly names a key that is set but that only the surface core supports; "" if there is none.
	coreOnly string
	// template makes group ids, if one is configured.
	template *idtemplate.Template
	// headers are sent with every request.
	headers map[string]string
}

func settingsOf(c *sdk.Call) (*settings, error) { return sdk.Settings(c, parseSettings) }

// The surfaces, as a configuration names them.
const (
	surfaceREST = "rest"
	surfaceMCP  = "mcp"
	surfaceCore = "core"
)

// defaultFacts is the default number of facts that a search requests; factsUnset is max_facts until it is read.
const (
	defaultFacts = 20
	factsUnset   = -1
)

// parseSettings reads the block. It repeats the schema's defaults for hosts that do not fill them in.
func parseSettings(config *abi.GuestConfig) (*settings, error) {
	s := &settings{config: config, name: surfaceCore, maxFacts: factsUnset, labelsInQuery: true, annotate: true, source: "message",
		headers: map[string]string{"content-type": "application/json"}}
	l := newLibrary()
	url, template, stallS := "", "", int64(120)
	var bolt, bearer wirejson.Raw
	var headers []field
	err := append(l.fields(), fields{
		{"url", &url}, {"surface", &s.name}, {"bolt", &bolt}, {"headers", &headers}, {"api_key", &bearer},
		{"max_facts", &s.maxFacts}, {"stall_s", &stallS}, {"annotate", &s.annotate}, {"search_nodes", &s.nodes},
		{"labels_in_query", &s.labelsInQuery}, {"label_sentence", &s.labelSentence},
		{"source", &s.source}, {"roles", &s.roles}, {"extraction_instructions", &s.instructions},
		{"group_id_template", &template},
	}...).read(wirejson.DecodeBytes(config.Config))
	if err != nil {
		return nil, abi.NewError(abi.CodeInvalidArgument, "config of graphiti: "+err.Error())
	}
	if s.factsSet = s.maxFacts != factsUnset; !s.factsSet {
		s.maxFacts = defaultFacts
	}
	if config.Profile == abi.ProfileSourceDesign {
		s.annotate = false // one search, with no look-ups after it
	}
	if template != "" {
		s.template, err = idtemplate.Parse(template, idtemplate.Run, idtemplate.Persona)
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "group_id_template: "+err.Error())
		}
	}
	s.stallMS, s.hasBolt = stallS*1000, bolt != nil
	for _, h := range headers {
		value, _ := stringOf(h.value)
		s.headers[lower(h.name)] = value
	}
	if bearer != nil {
		s.headers["authorization"] = "Bearer {{secret:api_key}}"
	}
	switch s.name {
	case surfaceREST:
		s.surface = newREST()
	case surfaceMCP:
		s.surface = newMCP()
	case surfaceCore:
		s.surface = newCore(l)
	default:
		return nil, abi.NewError(abi.CodeInvalidArgument, `surface: want "rest", "mcp" or "core"`)
	}
	s.coreOnly = l.unsupportedKey()
	return s, s.check(url)
}

// rule is a restriction of the configuration that the schema cannot express: what is wrong with a field, and what to
// do.
type rule struct {
	broken            bool
	field, what, hint string
}

func (s *settings) check(url string) error {
	rules := append([]rule{
		{strings.HasSuffix(strings.TrimRight(url, "/"), "/mcp"), "url", "ends in /mcp, which memhost adds itself",
			"write the server's base URL, such as http://127.0.0.1:8000"},
		{s.stallMS <= 0, "stall_s", "must be at least 1", ""},
		{s.labelSentence && s.source == "json", "label_sentence", "a sentence cannot stand before JSON",
			"leave it out, or use source: message"},
	}, s.surface.rules(s)...)
	for _, r := range rules {
		if r.broken {
			return abi.NewError(abi.CodeInvalidArgument, r.field+": "+r.what).WithHint(r.hint)
		}
	}
	return nil
}

// ingests reports whether messages of a role are sent.
func (s *settings) ingests(role abi.Role) bool {
	return s.roles == nil || contains(s.roles, string(role))
}
