package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// The surfaces.
const (
	apiOSS      = "oss"
	apiPlatform = "platform"
)

// surface is what the server was found to be. Neither server reports its version, and the self-hosted server's code and
// its library are versioned separately, so the server's own OpenAPI document decides.
type surface struct {
	api string
	// gateway: the server is gateways/mem0, which has more than mem0's own server and reports its capabilities. rerank:
	// a search reranks. dated: an add takes an observation date. semanticOnly: there is no keyword signal. entities: a
	// name in the query ranks memories about it higher.
	gateway, rerank, dated, semanticOnly, entities bool
	// store is the vector store's name, "" while it is not known; exact: a filtered search there misses no row.
	store string
	exact bool
	// details are names for the trace of a set-up: collection, LLM, embedder.
	details wire.Object
}

func hostedPlatform() *surface {
	return &surface{api: apiPlatform, rerank: true, store: apiPlatform, exact: true}
}

// surfaceKey is the key of the scope's state in which set-up stores the surface, so that other instances need not
// determine it.
const surfaceKey = "surface"

// findSurface returns the surface: the one that this instance knows, that set-up stored, that is configured, or that
// the server shows. Set-up determines it anew, because another server may answer by now; health does so if a gateway
// may have been configured since.
func (b *backend) findSurface() (*surface, error) {
	known := b.found
	if b.Op == abi.OpSetupScope || b.Op == abi.OpHealth && known != nil && known.gateway {
		known = nil
	}
	if known == nil && b.Op != abi.OpHealth && b.Op != abi.OpSetupScope {
		kept, _, err := b.Get(surfaceKey)
		if err != nil {
			return nil, err
		}
		if known = readSurface(kept); known != nil && b.api != "auto" && b.api != known.api {
			known = nil
		}
	}
	var err error
	if known == nil {
		known, err = b.detectSurface()
	}
	b.found = known
	return known, err
}

// detectSurface queries the server for what the configuration does not say.
func (b *backend) detectSurface() (*surface, error) {
	found := &surface{api: apiOSS}
	switch b.api {
	case apiPlatform:
		return hostedPlatform(), nil
	case apiOSS:
		if b.Op != abi.OpHealth && b.Op != abi.OpSetupScope && !b.rerank && b.observationDate != "native" {
			return found, nil // nothing depends on it
		}
		if err := b.detectCapabilities(found); err != nil || found.gateway || !b.rerank {
			return found, err
		}
	}
	head, body, err := b.exchange(request{route: "openapi"})
	switch {
	case err != nil:
		return nil, err
	case head.Status >= 500 || head.Status == 429:
		return nil, failure("openapi", head, body)
	case head.Status == 200:
		if err := read("openapi", body); err != nil {
			return nil, err
		}
		found, more := readOpenAPI(body)
		if b.api == apiOSS {
			found.api = apiOSS
		} else if more && found.api == apiOSS {
			err = b.detectCapabilities(found)
		}
		if found.api != "" {
			return found, err
		}
	}
	// The platform may not show its document, but it answers a ping.
	b.surface = hostedPlatform()
	if _, err := b.send(request{route: "platform_ping"}); err != nil {
		e := abi.AsError(err)
		if e.Code == abi.CodeNotFound || e.Code == abi.CodeBackend {
			e.Reason, e.Hint = "not_mem0", "nothing there looks like mem0: is url right? It takes no path such as "+
				"/v1. Or set api"
		}
		return nil, e
	}
	return b.surface, nil
}

// detectCapabilities queries what a server has beyond mem0's own, which does not have this route.
func (b *backend) detectCapabilities(f *surface) error {
	head, body, err := b.exchange(request{route: "capabilities"})
	switch {
	case err != nil:
		return err
	case head.Status == 404:
		return nil
	case head.Status != 200:
		return failure("capabilities", head, body)
	}
	if err := read("capabilities", body); err != nil {
		return err
	}
	if known := readCapabilities(body); known.gateway {
		known.api = f.api
		*f = *known
	}
	return nil
}

func readCapabilities(body abi.Raw) *surface {
	var gateway, reranker, entities string
	var patches []string
	keywords, f := false, &surface{}
	wire.Pick(body, "gateway", &gateway, "store", &f.store, "exact", &f.exact, "keyword_search", &keywords,
		"reranker", &reranker, "entities", &entities, "patches", &patches)
	f.gateway, f.rerank, f.semanticOnly, f.entities = gateway != "", reranker != "", !keywords, entities == "model"
	for _, name := range patches {
		f.dated = f.dated || name == "observation_date"
	}
	return f
}

// checkFeatures rejects configured features that this server lacks, and names the server that has them.
//
// Errors: unsupported.
func (b *backend) checkFeatures() error {
	const gateway = "memhost's gateway over mem0ai (gateways/mem0)"
	s, f := b.settings, b.surface
	lacks := func(option, hint string) error {
		who := "mem0's self-hosted server"
		if f.gateway {
			who = "this gateway"
		} else if b.platform() {
			who = "mem0's platform"
		}
		return abi.NewError(abi.CodeUnsupported, option+": "+who+" has none").WithReason("not_offered").WithHint(hint)
	}
	undated := s.observationDate == "native" && !b.platform() && !f.dated
	switch {
	case s.rerank && !f.rerank && f.gateway:
		return lacks("rerank", "put a reranker under mem0.reranker in the gateway's configuration, or set rerank: "+
			"false")
	case s.rerank && !f.rerank:
		return lacks("rerank", gateway+" with a reranker can, and the platform; or set rerank: false")
	case s.rerank && s.rerankPool > 0 && !f.gateway:
		return lacks("rerank_pool", gateway+" can; or leave it out")
	case s.procedural && b.platform():
		return lacks("procedural", "mem0's self-hosted server can, and "+gateway)
	case len(s.categories) > 0 && !b.platform():
		return lacks("custom_categories", "the platform has them")
	case len(s.dataSchema) > 0 && !b.platform():
		return lacks("structured_data_schema", "the platform has it")
	case undated && f.gateway:
		return lacks("observation_date: native", "set patches.observation_date in the gateway's configuration, or "+
			"observation_date: prompt")
	case undated:
		return lacks("observation_date: native", gateway+" with its patch can, and the platform; or set "+
			"observation_date: prompt")
	}
	return nil
}

// ingestModes are the ways in which this server takes a turn.
func (f *surface) ingestModes() []string {
	if f.api == apiPlatform {
		return []string{"infer", "verbatim"}
	}
	return []string{"infer", "verbatim", "procedural"}
}

// queryModes are what a search of this server can take into account.
func (f *surface) queryModes() []string {
	modes := []string{"semantic"}
	for _, m := range []struct {
		name string
		has  bool
	}{{"keyword", !f.semanticOnly}, {"entity", f.entities}, {"rerank", f.rerank}, {"explain", f.api == apiOSS}} {
		if m.has {
			modes = append(modes, m.name)
		}
	}
	return modes
}

// readOpenAPI looks for the routes of either surface and for the field rerank. more says that the server has a route
// for capabilities.
func readOpenAPI(body abi.Raw) (f *surface, more bool) {
	var memories, search, platform bool
	for _, path := range wire.Members(wire.At(body, "paths")) {
		memories = memories || path.Name == "/memories"
		search = search || path.Name == "/search"
		more = more || path.Name == "/capabilities"
		platform = platform || strings.HasPrefix(path.Name, "/v3/memories/search")
	}
	f = &surface{rerank: wire.At(body, "components", "schemas", "SearchRequest", "properties", "rerank") != nil}
	switch {
	case memories && search:
		f.api = apiOSS
	case platform:
		f = hostedPlatform()
	}
	return f, more
}

// detectStore reads the server's configuration. It keeps only names, because a connection_string in it is not redacted.
func (b *backend) detectStore() error {
	body, err := b.ask(request{route: "configuration"})
	if err != nil {
		return err
	}
	f, hnsw := b.surface, true
	f.details, f.store = nil, ""
	for _, section := range wire.Members(body) {
		var provider, collection, model string
		wire.Pick(section.Value, "provider", &provider, "config", wire.Fields{"collection_name", &collection,
			"model", &model})
		f.details = append(f.details, section.Name, wire.Some(provider), section.Name+".collection_name",
			wire.Some(collection),
			section.Name+".model", wire.Some(model))
	}
	wire.Pick(body, "vector_store", wire.Fields{"provider", &f.store, "config", wire.Fields{"hnsw", &hnsw}})
	embedded := wire.At(body, "vector_store", "config", "path") != nil
	f.exact = f.store == "pgvector" && !hnsw || f.store == "qdrant" && embedded
	return nil
}

// exact reports whether an empty answer of a filtered search proves that there is nothing.
func (b *backend) exact() bool {
	if b.exactSearch == "auto" {
		return b.surface.exact
	}
	return b.exactSearch == "yes"
}

// labelFilter says how the vector store applies a filter on metadata.
func (f *surface) labelFilter() string {
	switch f.store {
	case apiPlatform, "pgvector", "qdrant", "opensearch", "milvus", "faiss", "mongodb", "cassandra":
		return string(abi.FilterHard) // the last three filter after the search: fewer results, but only matching ones
	case "weaviate":
		return string(abi.FilterNone) // ignores filters on metadata
	}
	return "unverified"
}

// save stores the surface in the scope's state.
func (f *surface) save(c *sdk.Call) error {
	kept := wire.Object{"api", f.api, "store", f.store, "exact", f.exact, "gateway", f.gateway, "rerank", f.rerank,
		"dated", f.dated, "semantic_only", f.semanticOnly, "entities", f.entities}
	return c.Put(surfaceKey, kept.JSON(), sdk.AnyVersion)
}

// readSurface returns the stored surface, nil if there is none.
func readSurface(kept abi.Raw) *surface {
	f := new(surface)
	if wire.Check(kept) == nil {
		wire.Pick(kept, "api", &f.api, "store", &f.store, "exact", &f.exact, "gateway", &f.gateway, "rerank", &f.rerank,
			"dated", &f.dated, "semantic_only", &f.semanticOnly, "entities", &f.entities)
	}
	if f.api != apiOSS && f.api != apiPlatform {
		return nil
	}
	return f
}
