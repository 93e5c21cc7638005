package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// nativeQuery makes one of mem0's own reads, restricted to the scope: the scope's ids are set here, and each item of an
// answer is checked.
//
//	count                                     {count, complete}: count is a minimum unless complete
//	history  {memory_id}                      the changes of one memory, as mem0 reports them
//	search   {query, filters?, ...}           mem0's search, with its own defaults
//	get_all  {top_k?, show_expired?, page?}   the memories as mem0 lists them; page is the platform's
//	profile                                   the platform's profile of the scope's user
//
// Errors: invalid_argument for params; not_found for an id that is not of this scope; unsupported for another name, or
// for what this server lacks.
func nativeQuery(b *backend, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	out := &abi.NativeQueryResult{Name: r.Name, Trace: &abi.Trace{BackendName: b.config.Provider}}
	params := abi.Raw(wire.FromMap(r.Params).JSON())
	var call request
	var err error
	switch r.Name {
	case "count":
		if err = rejectUnknown(params); err == nil {
			out.Result, out.Trace.NativeOperation, err = b.countMemories()
		}
		if err != nil {
			return nil, err
		}
		return out, nil
	case "history":
		call, out.Trace.NativeIDs, err = b.askHistory(params)
	case "search":
		call, err = b.askSearch(r.Params)
	case "get_all":
		call, err = b.askAll(params)
	case "profile":
		call, err = b.askProfile(params)
	default:
		err = abi.NewError(abi.CodeUnsupported, "name: mem0 has no native query "+r.Name).
			WithHint("there are count, history, search, get_all, and on the platform profile")
	}
	if err != nil {
		return nil, err
	}
	out.Trace.NativeOperation = call.route
	switch r.Name {
	case "search", "get_all":
		_, _, out.Result, err = b.rows(call)
	default:
		out.Result, err = b.send(call)
		if err == nil && wire.Check(out.Result) != nil {
			err = unusable(call.route, out.Result, "it is no JSON")
		}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (b *backend) askHistory(params abi.Raw) (request, []string, error) {
	id := ""
	err := rejectUnknown(params, "memory_id")
	if err == nil {
		err = wire.Read(params, "memory_id", &id)
	}
	if err != nil || id == "" {
		return request{}, nil, wrong("memory_id: missing, empty or no text")
	}
	_, err = b.ownMemory(id)
	return request{route: b.route("history"), params: memoryParam(id)}, []string{id}, err
}

// searchParams are the parameters that each of the two servers accepts in addition to query and filters. The
// self-hosted one silently ignores others.
var searchParams = map[string][]string{
	apiOSS:      {"top_k", "threshold", "show_expired", "explain"},
	apiPlatform: {"top_k", "threshold", "show_expired", "rerank", "latest_only", "reference_date", "categories"},
}

func (b *backend) askSearch(params map[string]abi.Raw) (request, error) {
	query := withoutZero(wire.Text(params["query"]))
	if strings.TrimSpace(query) == "" {
		return request{}, wrong("query: missing, blank or no text")
	}
	body := wire.Object{"query", query}
	for _, name := range abi.SortedKeys(params) {
		switch {
		case name == "query", name == "filters":
		case slices.Contains(searchParams[b.surface.api], name):
			body = append(body, name, params[name])
		default:
			return request{}, wrong(name + ": this server takes query, filters, " +
				strings.Join(searchParams[b.surface.api], ", "))
		}
	}
	filters := params["filters"]
	if kind := wire.Kind(filters); len(filters) > 0 && kind != wirejson.Object {
		return request{}, wrong("filters: want an object")
	}
	var own []wire.Object
	for _, f := range wire.Members(filters) {
		if err := checkFilter("params.filters", f.Name, f.Value); err != nil {
			return request{}, err
		}
		own = append(own, wire.Object{f.Name, abi.Raw(withoutNUL(f.Value))})
	}
	return request{route: b.route("search"), body: append(body, "filters", b.scopeFilter(own)).JSON()}, nil
}

func (b *backend) askAll(params abi.Raw) (request, error) {
	var topK, page int64
	expired := false
	known := []string{"top_k", "show_expired"}
	if b.platform() {
		known = append(known, "page")
	}
	err := rejectUnknown(params, known...)
	if err == nil {
		err = wire.Read(params, "top_k", &topK, "show_expired", &expired, "page", &page)
	}
	most := int64(listMax)
	if b.platform() {
		most = pageMax
	}
	if topK == 0 {
		topK = most
	}
	switch {
	case err != nil:
		return request{}, wrong(err.Error())
	case topK < 1 || topK > most || page < 0:
		return request{}, wrong("top_k: want 1 to " + sdk.Itoa(most) + ", and page from 1")
	case b.platform():
		return request{route: "platform_list", query: pageQuery(max(1, page), topK),
			body: wire.Object{"filters", b.scopeFilter(nil), "show_expired", expired}.JSON()}, nil
	}
	return request{route: "list", query: []abi.QueryParam{{Key: "user_id", Value: b.ids.user},
		{Key: "run_id", Value: b.ids.run}, {Key: "top_k", Value: sdk.Itoa(topK)},
		{Key: "show_expired", Value: strconv.FormatBool(expired)}}}, nil
}

func (b *backend) askProfile(params abi.Raw) (request, error) {
	if !b.platform() {
		return request{}, abi.NewError(abi.CodeUnsupported, "name: profile is the platform's")
	}
	return request{route: "platform_profile", params: map[string]string{"user": b.ids.user}}, rejectUnknown(params)
}

// countMemories counts by one listing: the platform reports the total, the self-hosted server lists 1000 at most.
func (b *backend) countMemories() (result abi.Raw, operation string, err error) {
	var rows []*memory
	var count int64
	complete := true
	switch {
	case b.platform():
		operation = "POST /v3/memories/"
		_, count, err = b.listPlatform(1, 1)
	case b.surface.gateway:
		operation = "POST /memories/list"
		rows, err = b.listFiltered(gatewayMax)
		count, complete = int64(len(rows)), len(rows) < gatewayMax
	default:
		operation = "GET /memories"
		rows, err = b.list(listMax)
		count, complete = int64(len(rows)), len(rows) < listMax
	}
	return wire.Object{"count", count, "complete", complete}.JSON(), operation, err
}
