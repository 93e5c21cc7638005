package server

//go:generate go run -C ../../../tools ./docgen -out ../internal/doors/server/fields_gen.go ../abi ../host/report ../internal/doors/server/wire

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

// document is the description of the door, made once.
type document struct {
	json []byte
	// page is the same document for people, policy its Content-Security-Policy.
	page   []byte
	policy string
}

const intro = `One memory slot for an agent: events in, prompt context out. Behind the slot sits exactly one provider, a memory backend or a control condition.

Bodies are UTF-8 JSON and must say Content-Type: application/json, on loopback too. A field that is not known is refused, null and absent mean the same, times are RFC 3339 with zone, durations milliseconds, sizes bytes.

Every answer that is no success is a problem document (application/problem+json) that holds the AdapterError: code is what a program acts on, hint what a person does next. Where HTTP has a finer word than the code, the status says it: 405 and 415 have the code invalid_argument, 408 has timeout. Refusals by the backend of the slot's own credentials are 502, not 401 or 403.

Off loopback, and wherever the slot was started with MEMHOST_TOKEN, requests carry the token as Authorization: Bearer. Requests that a web page of another origin sends are refused.`

// describe writes the OpenAPI document of a table, and its page.
func describe(table []route, version string) (*document, error) {
	if version == "" {
		version = "0.0.0"
	}
	r := newRegistry()
	doc := &huma.OpenAPI{OpenAPI: "3.1.0", Info: &huma.Info{Title: "memhost", Version: version, Description: intro},
		Servers: []*huma.Server{{URL: "/", Description: "This slot."}},
		Tags: []*huma.Tag{{Name: tagMemory, Description: "Events in, context out."},
			{Name: tagScopes, Description: "Whose memory."},
			{Name: tagSlot, Description: "What serves, and how."},
			{Name: tagCapability, Description: "What a provider may have: unsupported (501) where it does not."},
			{Name: tagArchive, Description: "Recorded events word for word, for those who run the slot."},
			{Name: tagFollow, Description: "Memories next to the serving one, for the person who runs the slot: one that is " +
				"filled and then serves, and shadows."},
			{Name: tagProcess, Description: "For those who run the slot."}},
		Components: &huma.Components{Schemas: r, Responses: map[string]*huma.Response{},
			SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer",
				Description: "The operator's token (MEMHOST_TOKEN). Not needed on loopback when the slot was started " +
					"without."}}},
		Security: []map[string][]string{{"token": {}}, {}}}
	problem := r.Schema(reflect.TypeFor[wire.Problem](), true, "")
	var requests []reflect.Type
	for _, t := range table {
		doc.AddOperation(operationOf(t, r, doc.Components.Responses, problem))
		if t.request != nil {
			requests = append(requests, reflect.TypeOf(t.request).Elem())
		}
	}
	for _, op := range pages() {
		doc.AddOperation(op)
	}
	finish(r, requests)
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, abi.WrapError(abi.CodeInternal, "server: writing the OpenAPI document: "+err.Error(), err)
	}
	page, policy, err := renderDocs(doc)
	if err != nil {
		return nil, abi.WrapError(abi.CodeInternal, "server: writing the page of the OpenAPI document: "+err.Error(),
			err)
	}
	return &document{json: append(text, '\n'), page: page, policy: policy}, nil
}

// operationOf describes a route. Its error responses are put into shared, by status.
func operationOf(t route, r huma.Registry, shared map[string]*huma.Response, problem *huma.Schema) *huma.Operation {
	op := &huma.Operation{Method: t.method, Path: t.path, OperationID: operationID(t), Tags: []string{t.tag},
		Summary: t.summary, Description: t.about, Parameters: t.parameters}
	if t.open {
		op.Security = []map[string][]string{}
	}
	if t.request != nil {
		op.RequestBody = &huma.RequestBody{Required: true, Content: content(wire.MediaJSON, t.request, r)}
	}
	if len(t.takes) > 0 {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{}}
		for _, media := range t.takes {
			maps.Copy(op.RequestBody.Content, content(media, nil, r))
		}
	}
	op.Responses = map[string]*huma.Response{"200": {Description: "Done.",
		Content: content(cmp.Or(t.media, wire.MediaJSON), t.answer, r)}}
	for status, codes := range refusals(t) {
		key := strconv.Itoa(status)
		name := "Problem" + key
		if shared[name] == nil {
			shared[name] = problemResponse(status, codes[0], problem)
		}
		op.Responses[key] = &huma.Response{Ref: "#/components/responses/" + name, Description: "Code " + joined(codes) +
			"."}
	}
	return op
}

// operationID is the contract's name of the operation. The door's own operations are named after their path.
func operationID(t route) string {
	switch {
	case t.operation == wire.OpMode:
		return "get_mode"
	case t.operation != "":
		return t.operation
	default:
		return strings.TrimPrefix(t.path, "/")
	}
}

// content describes a body of a type. A body without an example is bytes.
func content(media string, example abi.Encodable, r huma.Registry) map[string]*huma.MediaType {
	if example == nil {
		return map[string]*huma.MediaType{media: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
	}
	return map[string]*huma.MediaType{media: {Schema: r.Schema(reflect.TypeOf(example), true, ""),
		Example: json.RawMessage(abi.Marshal(example))}}
}

// refusals returns the statuses other than 200 that a route may return, with the codes behind them.
func refusals(t route) map[int][]abi.Code {
	all := map[int][]abi.Code{}
	add := func(status int, code abi.Code) {
		if !slices.Contains(all[status], code) {
			all[status] = append(all[status], code)
		}
	}
	codes := append([]abi.Code{abi.CodeDenied, abi.CodeInternal}, t.codes...)
	if !t.open {
		codes = append(codes, abi.CodeUnauthenticated)
	}
	if t.path != wire.PathLive {
		codes = append(codes, abi.CodeUnavailable)
	}
	if !t.local {
		codes = append(codes, abi.CodeRateLimited, abi.CodeBackend, abi.CodeIsolationBreach, abi.CodeTimeout)
		add(http.StatusBadGateway, abi.CodeUnauthenticated)
		add(http.StatusBadGateway, abi.CodeDenied)
	}
	if len(t.parameters) > 0 {
		codes = append(codes, abi.CodeInvalidArgument)
	}
	if t.request != nil || len(t.takes) > 0 {
		codes = append(codes, abi.CodeInvalidArgument, abi.CodeTooLarge)
		add(http.StatusRequestTimeout, abi.CodeTimeout)
		add(http.StatusUnsupportedMediaType, abi.CodeInvalidArgument)
	}
	for _, code := range codes {
		add(code.HTTPStatus(false), code)
	}
	return all
}

func joined(codes []abi.Code) string {
	words := make([]string, len(codes))
	for i, code := range codes {
		words[i] = string(code)
	}
	return strings.Join(words, ", ")
}

// problemResponse describes a status. Each route lists the codes that the status covers.
func problemResponse(status int, code abi.Code, problem *huma.Schema) *huma.Response {
	e := abi.NewError(code, "what went wrong, beginning with the path of the field where there is one")
	e.Operation = abi.OpRetrieve
	response := &huma.Response{Description: http.StatusText(status),
		Content: map[string]*huma.MediaType{wire.MediaProblem: {Schema: problem,
			Example: json.RawMessage(wire.EncodeProblem(e, status))}}}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		response.Headers = map[string]*huma.Param{"Retry-After": {Description: "Seconds, where the slot or the " +
			"backend knows how long.", Schema: &huma.Schema{Type: huma.TypeInteger}}}
	}
	return response
}

// pages returns the routes that are not part of the contract.
func pages() []*huma.Operation {
	get := func(path, id, media, summary string) *huma.Operation {
		return &huma.Operation{Method: http.MethodGet, Path: path, OperationID: id, Tags: []string{tagProcess},
			Summary: summary,
			Responses: map[string]*huma.Response{"200": {Description: "Done.",
				Content: map[string]*huma.MediaType{media: {Schema: &huma.Schema{Type: huma.TypeString}}}},
				"401": {Ref: "#/components/responses/Problem401", Description: "Code " +
					string(abi.CodeUnauthenticated) + "."},
				"403": {Ref: "#/components/responses/Problem403", Description: "Code " + string(abi.CodeDenied) + "."}}}
	}
	document := get(wire.PathOpenAPI, "openapi", wire.MediaJSON, "This document")
	document.Responses["200"].Content[wire.MediaJSON].Schema = &huma.Schema{Type: huma.TypeObject}
	return []*huma.Operation{
		document,
		get(wire.PathDocs, "docs", "text/html", "This document as a page"),
		get(wire.PathMetrics, "metrics", "text/plain", "Metrics for Prometheus"),
	}
}
