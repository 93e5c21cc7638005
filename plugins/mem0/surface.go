package main

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// The surfaces.
const (
	apiOSS      = "oss"
	apiPlatform = "platform"
)

// surface is what the server was found to be. Neither of the two says its version, and the self-hosted server's code and its library vary apart: so what
// counts is what its own documents list.
type surface struct {
	api string
	// gateway: gateways/mem0 stands there, which has more than mem0's own server and says what. rerank: a search reranks. dated: an add takes an observation
	// date. semanticOnly: there is no keyword signal. entities: a
	// name in the query raises the memories that speak of it.
	gateway, rerank, dated, semanticOnly, entities bool
	// store is the vector store's name, "" while it is not known; exact: a filtered search there misses no row.
	store string
	exact bool
	// details are names for the trace of a set-up: collection, LLM, embedder.
	details abi.Members[string]

	// What this instance made of it, and of its configuration, and does not make again.
	headers, bodyHeaders abi.Members[string]
	addEffective         abi.Members[abi.Raw]
	searchEffective      abi.Members[abi.Raw]
	searchTopK           int64 // with which searchEffective was made
}

// surfaceKey is the key of the scope's state under which set-up keeps the surface, so that an operation of another instance need not look.
const surfaceKey = "surface"

// findSurface returns the surface: as this instance knows it, as set-up kept it, as configured, or as the server shows it.
func (b *backend) findSurface() (*surface, error) {
	s := b.settings
	if s.surface != nil {
		return s.surface, nil
	}
	if b.Op != abi.OpHealth && b.Op != abi.OpSetupScope {
		kept, version, err := b.Get(surfaceKey)
		if err != nil {
			return nil, err
		}
		if found := readSurface(kept); version != 0 && found != nil && (s.api == "auto" || s.api == found.api) {
			s.surface = found
			return found, nil
		}
	}
	found, err := b.lookForSurface()
	s.surface = found
	return found, err
}

// lookForSurface asks the server. What the configuration says is not asked for.
func (b *backend) lookForSurface() (*surface, error) {
	s := b.settings
	if s.api == apiPlatform {
		return &surface{api: apiPlatform, rerank: true, store: apiPlatform, exact: true}, nil
	}
	if s.api == apiOSS {
		found := &surface{api: apiOSS}
		if b.Op != abi.OpHealth && b.Op != abi.OpSetupScope && !s.rerank && s.observationDate != "native" {
			return found, nil // nothing hangs on it
		}
		if err := b.lookAtCapabilities(found); err != nil || found.gateway || !s.rerank {
			return found, err
		}
	}
	head, body, err := b.exchange(request{route: "openapi"})
	switch {
	case err != nil:
		return nil, err
	case head.Status == 200:
		found := &surface{}
		more, err := found.readOpenAPI(body)
		if err != nil {
			return nil, err
		}
		if s.api == apiOSS {
			found.api = apiOSS
		} else if more && found.api == apiOSS {
			err = b.lookAtCapabilities(found)
		}
		if found.api != "" {
			return found, err
		}
	case head.Status >= 500 || head.Status == 429:
		return nil, failure("openapi", head, body)
	}
	// The platform does not promise to show its document. It does answer a ping.
	b.surface = &surface{api: apiPlatform, rerank: true, store: apiPlatform, exact: true}
	if _, err := b.send(request{route: "platform_ping"}); err != nil {
		e := abi.AsError(err)
		if e.Code == abi.CodeNotFound || e.Code == abi.CodeBackend {
			e.Reason, e.Hint = "not_mem0", "nothing there looks like mem0: is url right? It takes no path such as /v1. Or set api"
		}
		return nil, e
	}
	return b.surface, nil
}

// lookAtCapabilities asks what a server has beyond mem0's own, which knows no such route.
func (b *backend) lookAtCapabilities(f *surface) error {
	head, body, err := b.exchange(request{route: "capabilities"})
	switch {
	case err != nil:
		return err
	case head.Status == 404:
		return nil
	case head.Status != 200:
		return failure("capabilities", head, body)
	}
	told := surface{api: f.api, semanticOnly: true}
	if err := readObject("capabilities", body, told.readCapability); err != nil {
		return err
	}
	if told.gateway {
		*f = told
	}
	return nil
}

func (f *surface) readCapability(d *jsontext.Decoder, key string) (err error) {
	var text string
	switch key {
	case "gateway":
		text, err = readText(d)
		f.gateway = text != ""
	case "store":
		f.store, err = readText(d)
	case "exact":
		f.exact, err = readFlag(d)
	case "keyword_search":
		var has bool
		has, err = readFlag(d)
		f.semanticOnly = !has
	case "reranker":
		text, err = readText(d)
		f.rerank = text != ""
	case "entities":
		text, err = readText(d)
		f.entities = text == "model"
	case "patches":
		err = eachIn(d, func(d *jsontext.Decoder, _ string) error {
			name, err := readText(d)
			f.dated = f.dated || name == "observation_date"
			return err
		})
	default:
		err = d.Skip()
	}
	return err
}

// offered refuses what the configuration asks for and this server has not, and names the server that has it.
//
// Errors: unsupported.
func (b *backend) offered() error {
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
	switch {
	case s.rerank && !f.rerank && f.gateway:
		return lacks("rerank", "put a reranker under mem0.reranker in the gateway's configuration, or set rerank: false")
	case s.rerank && !f.rerank:
		return lacks("rerank", gateway+" with a reranker can, and the platform; or set rerank: false")
	case s.rerank && s.rerankPool > 0 && !f.gateway:
		return lacks("rerank_pool", gateway+" can; or leave it out")
	case s.procedural && b.platform():
		return lacks("procedural", "mem0's self-hosted server can, and "+gateway)
	case s.observationDate == "native" && !b.platform() && !f.dated && f.gateway:
		return lacks("observation_date: native", "set patches.observation_date in the gateway's configuration, or observation_date: prompt")
	case s.observationDate == "native" && !b.platform() && !f.dated:
		return lacks("observation_date: native", gateway+" with its patch can, and the platform; or set observation_date: prompt")
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

// readOpenAPI looks for the routes of either surface and for the field rerank. more tells that there are capabilities to ask for.
func (f *surface) readOpenAPI(body []byte) (more bool, err error) {
	var memories, search, platform bool
	err = readObject("openapi", body, func(d *jsontext.Decoder, key string) error {
		switch key {
		case "paths":
			return eachIn(d, func(d *jsontext.Decoder, path string) error {
				memories = memories || path == "/memories"
				search = search || path == "/search"
				more = more || path == "/capabilities"
				platform = platform || strings.HasPrefix(path, "/v3/memories/search")
				return d.Skip()
			})
		case "components":
			return f.readComponents(d)
		}
		return d.Skip()
	})
	switch {
	case memories && search:
		f.api = apiOSS
	case platform:
		*f = surface{api: apiPlatform, rerank: true, store: apiPlatform, exact: true}
	}
	return more, err
}

// readComponents looks into components.schemas.SearchRequest.properties.
func (f *surface) readComponents(d *jsontext.Decoder) error {
	return eachIn(d, func(d *jsontext.Decoder, key string) error {
		if key != "schemas" {
			return d.Skip()
		}
		return eachIn(d, func(d *jsontext.Decoder, name string) error {
			if name != "SearchRequest" {
				return d.Skip()
			}
			return eachIn(d, func(d *jsontext.Decoder, key string) error {
				if key != "properties" {
					return d.Skip()
				}
				return eachIn(d, func(d *jsontext.Decoder, field string) error {
					f.rerank = f.rerank || field == "rerank"
					return d.Skip()
				})
			})
		})
	})
}

// lookAtStore reads the server's configuration. Of it only names are kept: a connection_string in it is not redacted.
func (b *backend) lookAtStore() error {
	body, err := b.send(request{route: "configuration"})
	if err != nil {
		return err
	}
	f := b.surface
	f.details = nil
	hnsw, embedded := true, false
	err = readObject("configuration", body, func(d *jsontext.Decoder, section string) error {
		return eachIn(d, func(d *jsontext.Decoder, key string) error {
			if key == "provider" {
				name, err := readText(d)
				f.details.Set(section, name)
				return err
			}
			if key != "config" {
				return d.Skip()
			}
			return eachIn(d, func(d *jsontext.Decoder, key string) (err error) {
				switch {
				case section == "vector_store" && key == "hnsw" && d.Next() == jsontext.Bool:
					hnsw, err = d.Bool()
				case section == "vector_store" && key == "path":
					embedded = true
					err = d.Skip()
				case key == "collection_name" || key == "model":
					var text string
					text, err = readText(d)
					f.details.Set(section+"."+key, text)
				default:
					err = d.Skip()
				}
				return err
			})
		})
	})
	f.store = f.details.Get("vector_store")
	f.exact = f.store == "pgvector" && !hnsw || f.store == "qdrant" && embedded
	return err
}

// exact tells whether an empty answer of a filtered search proves that there is nothing.
func (b *backend) exact() bool {
	switch b.settings.exactSearch {
	case "yes":
		return true
	case "no":
		return false
	}
	return b.surface.exact
}

// labelFilter is how the vector store applies a filter on metadata.
func (f *surface) labelFilter() string {
	switch f.store {
	case apiPlatform, "pgvector", "qdrant", "opensearch", "milvus", "faiss", "mongodb", "cassandra":
		return string(abi.FilterHard) // the last three filter behind the search: fewer results, none that does not fit
	case "weaviate":
		return string(abi.FilterNone) // drops filters on metadata
	}
	return "unverified"
}

// keep writes the surface into the scope's state.
func (f *surface) keep(c *sdk.Call) error {
	var e jsontext.Encoder
	e.ObjStart()
	for _, field := range [][2]string{{"api", f.api}, {"store", f.store}} {
		e.FieldStart(field[0])
		e.Str(field[1])
	}
	flags := f.flags()
	for _, name := range []string{"exact", "gateway", "rerank", "dated", "semantic_only", "entities"} {
		e.FieldStart(name)
		e.Bool(*flags[name])
	}
	e.ObjEnd()
	return c.Put(surfaceKey, e.Bytes(), sdk.AnyVersion)
}

// flags are what is kept beside the names, by the key under which it is.
func (f *surface) flags() map[string]*bool {
	return map[string]*bool{"exact": &f.exact, "gateway": &f.gateway, "rerank": &f.rerank, "dated": &f.dated, "semantic_only": &f.semanticOnly, "entities": &f.entities}
}

// readSurface is the surface that keep wrote, nil where that cannot be read.
func readSurface(kept []byte) *surface {
	f := new(surface)
	flags := f.flags()
	err := jsontext.DecodeBytes(kept).Obj(func(d *jsontext.Decoder, key string) (err error) {
		switch {
		case flags[key] != nil:
			*flags[key], err = d.Bool()
		case key == "api":
			f.api, err = d.Str()
		case key == "store":
			f.store, err = d.Str()
		default:
			err = d.Skip()
		}
		return err
	})
	if err != nil || f.api != apiOSS && f.api != apiPlatform {
		return nil
	}
	return f
}
