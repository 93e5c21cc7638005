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
	// rerank: a search takes the field.
	rerank bool
	// store is the vector store's name, "" while it is not known; exact: a filtered search there misses no row.
	store string
	exact bool
	// details are names for the trace of a set-up: collection, LLM, embedder.
	details map[string]string
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
	if s.api == apiOSS && !s.rerank {
		return &surface{api: apiOSS}, nil
	}
	head, body, err := b.exchange(request{route: "openapi"})
	switch {
	case err != nil:
		return nil, err
	case head.Status == 200:
		found := &surface{}
		if err := found.readOpenAPI(body); err != nil {
			return nil, err
		}
		if s.api == apiOSS {
			found.api = apiOSS
		}
		if found.api != "" {
			return found, nil
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

// readOpenAPI looks for the routes of either surface and for the field rerank.
func (f *surface) readOpenAPI(body []byte) error {
	var memories, search, platform bool
	err := readObject("openapi", body, func(d *jsontext.Decoder, key string) error {
		switch key {
		case "paths":
			return eachIn(d, func(d *jsontext.Decoder, path string) error {
				memories = memories || path == "/memories"
				search = search || path == "/search"
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
	return err
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
	f.details = map[string]string{}
	hnsw, embedded := true, false
	err = readObject("configuration", body, func(d *jsontext.Decoder, section string) error {
		return eachIn(d, func(d *jsontext.Decoder, key string) error {
			if key == "provider" {
				name, err := readText(d)
				f.details[section] = name
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
					f.details[section+"."+key], err = readText(d)
				default:
					err = d.Skip()
				}
				return err
			})
		})
	})
	f.store = f.details["vector_store"]
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
	e.FieldStart("rerank")
	e.Bool(f.rerank)
	e.FieldStart("exact")
	e.Bool(f.exact)
	e.ObjEnd()
	return c.Put(surfaceKey, e.Bytes(), sdk.AnyVersion)
}

// readSurface is the surface that keep wrote, nil where that cannot be read.
func readSurface(kept []byte) *surface {
	f := new(surface)
	err := jsontext.DecodeBytes(kept).Obj(func(d *jsontext.Decoder, key string) (err error) {
		switch key {
		case "api":
			f.api, err = d.Str()
		case "store":
			f.store, err = d.Str()
		case "rerank":
			f.rerank, err = d.Bool()
		case "exact":
			f.exact, err = d.Bool()
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
