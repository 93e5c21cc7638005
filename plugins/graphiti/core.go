package main

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// The surface core is graphiti-core itself behind memhost-gateway-graphiti, whose wire stands in gateways/graphiti/API.md. The group is in the path of
// everything that touches the graph, and the gateway checks by it whose an object is.

// gateway sends one request and answers the body of a 2xx, which is JSON that can be read.
func (s *settings) gateway(c *sdk.Call, r abi.HTTPRequest, body []byte) ([]byte, error) {
	r.Headers = s.headers
	head, answer, err := c.HTTP(r, body)
	if err != nil {
		return nil, err
	}
	if e := refused(r.Route, head, answer); e != nil {
		return nil, explained(e, answer)
	}
	if !abi.ValidJSON(answer) {
		return nil, unusable(r.Route, "no JSON that can be read", answer)
	}
	return answer, nil
}

// inPath are the parameters of a path: the group, and an object of it.
func inPath(gid, name, value string) abi.Members[string] {
	params := abi.Members[string]{{Name: "group", Value: gid}}
	if name != "" {
		params.Set(name, value)
	}
	return params
}

// failure is the error of the gateway, or of a job: {"code", "message", "details": {"stored", ...}}.
type failure struct {
	code, message string
	// stored says of a failed write what of it is in the graph: nothing, episodes_without_facts, part, unknown.
	stored string
}

func (f *failure) decode(d *jsontext.Decoder, key string) (err error) {
	switch key {
	case "code":
		f.code, err = text(d)
	case "message":
		f.message, err = text(d)
	case "details":
		if d.Next() != jsontext.Object {
			return d.Skip()
		}
		err = d.Obj(func(d *jsontext.Decoder, key string) (err error) {
			if key != "stored" {
				return d.Skip()
			}
			f.stored, err = text(d)
			return err
		})
	default:
		err = d.Skip()
	}
	return err
}

// explained puts the gateway's own words into an error that was made of a status. A body that is not the gateway's leaves it as it was.
func explained(e *abi.Error, body []byte) *abi.Error {
	var f failure
	if !abi.ValidJSON(body) || jsontext.DecodeBytes(body).Next() != jsontext.Object {
		return e
	}
	err := jsontext.DecodeBytes(body).Obj(func(d *jsontext.Decoder, key string) error {
		if key != "error" || d.Next() != jsontext.Object {
			return d.Skip()
		}
		return d.Obj(f.decode)
	})
	if err != nil || f.code == "" {
		return e
	}
	e.Reason, e.Message = f.code, e.Route+": "+f.message
	e.Hint = ""
	code := e.Code
	switch f.code {
	case "not_found":
		code = abi.CodeNotFound
	case "unauthorized":
		e.Hint = "api_key names the secret that holds the gateway's token"
	case "no_such_route", "method_not_allowed":
		e.Hint = "does url name a memhost-gateway-graphiti of this release?"
	case "queue_disabled":
		code, e.Hint = abi.CodeUnsupported, "give the gateway a journal, or use receipts: sync"
	case "reranker_not_configured":
		code, e.Hint = abi.CodeUnsupported, "configure the gateway's reranker, or a recipe that needs none"
	case "unsupported":
		code = abi.CodeUnsupported
	case "center_node_required":
		e.Hint = "give filters.center_node_uuid with every request, or another recipe"
	case "unknown_type":
		e.Hint = "entity_types and edge_types are names of the gateway's configuration"
	case "bulk_too_large":
		code, e.Hint = abi.CodeTooLarge, "record fewer events at once, raise the gateway's limit, or use bulk: single"
	case "llm_failed":
		code, e.Hint = abi.CodeUnavailable, "the gateway's language model, embedder or reranker failed"
	case "database_error", "internal":
		code = abi.CodeBackend
	case "deadline_exceeded":
		code = abi.CodeTimeout
	}
	if code != e.Code {
		e.Code, e.Retryable = code, code == abi.CodeUnavailable || code == abi.CodeTimeout || code == abi.CodeRateLimited
	}
	e.NothingStored = f.stored == "nothing" || f.code == "shutting_down" || f.code == "queue_full"
	if f.stored == "episodes_without_facts" {
		e.Hint = "the batch's episodes are stored without their facts; record it again, and it is resumed"
	}
	return e
}

// info is what a gateway can, and what can be named in requests: GET /v1/info.
type info struct {
	version, library             string
	recipes                      map[string]bool
	entityTypes, edgeTypes       map[string]bool
	queue, reranker, communities bool
	// writeMS is how long a write can take before the gateway gives it up.
	writeMS int64
}

// coreInfo asks for it.
func (s *settings) coreInfo(c *sdk.Call) (*info, error) {
	const route = "core_info"
	body, err := s.gateway(c, abi.HTTPRequest{Route: route}, nil)
	if err != nil {
		return nil, err
	}
	i := &info{recipes: map[string]bool{}, entityTypes: map[string]bool{}, edgeTypes: map[string]bool{}}
	keys := func(d *jsontext.Decoder, into map[string]bool) error {
		return d.Obj(func(d *jsontext.Decoder, key string) error {
			into[strings.Clone(key)] = true
			return d.Skip()
		})
	}
	err = fields(route, body, func(d *jsontext.Decoder, key string) (err error) {
		switch key {
		case "gateway":
			i.version, err = text(d)
		case "graphiti_core":
			i.library, err = text(d)
		case "recipes":
			var names []string
			names, err = texts(d)
			for _, name := range names {
				i.recipes[name] = true
			}
		case "entity_types":
			err = keys(d, i.entityTypes)
		case "edge_types":
			err = keys(d, i.edgeTypes)
		case "queue":
			i.queue, err = d.Bool()
		case "reranker":
			i.reranker, err = d.Bool()
		case "communities":
			i.communities, err = d.Bool()
		case "limits":
			err = d.Obj(func(d *jsontext.Decoder, key string) (err error) {
				if key != "write_seconds" {
					return d.Skip()
				}
				seconds, err := d.Float64()
				i.writeMS = int64(seconds * 1000)
				return err
			})
		default:
			err = d.Skip()
		}
		return err
	})
	if err == nil && i.library == "" {
		err = unusable(route, "none of a memhost-gateway-graphiti", body)
	}
	return i, err
}

// lacks lists what the configuration asks for and the gateway does not have.
func (s *settings) lacks(i *info) []string {
	var missing []string
	l := &s.library
	if l.config == nil && !i.recipes[l.recipe] {
		missing = append(missing, "recipe "+l.recipe)
	}
	for _, name := range l.entityTypes {
		if !i.entityTypes[name] {
			missing = append(missing, "entity type "+name)
		}
	}
	for _, name := range l.edgeTypes {
		if !i.edgeTypes[name] {
			missing = append(missing, "edge type "+name)
		}
	}
	if l.reranked && !i.reranker {
		missing = append(missing, "a reranker, which "+l.recipe+" needs")
	}
	if l.queued && !i.queue {
		missing = append(missing, "a journal, which receipts: queued needs")
	}
	if l.communities && !i.communities {
		missing = append(missing, "communities")
	}
	return missing
}

// coreSetup checks that the gateway has what the configuration names, and looks whether the group has anything.
func (s *settings) coreSetup(c *sdk.Call, gid string, receipt *abi.SetupReceipt) error {
	i, err := s.coreInfo(c)
	if err != nil {
		return err
	}
	if missing := s.lacks(i); len(missing) > 0 {
		return abi.NewError(abi.CodeUnsupported, "the gateway lacks "+strings.Join(missing, ", ")).WithReason("gateway_lacks").
			WithHint("configure the gateway, or memhost's block, so that they agree; GET /v1/info tells what it has")
	}
	g, err := s.coreGroup(c, gid)
	if err == nil {
		receipt.Existed = sdk.Ptr(g.total() > 0)
	}
	return err
}

// coreProbe asks the process, the database behind it, and what can be named.
func (s *settings) coreProbe(c *sdk.Call, h *abi.BackendHealth) {
	if _, err := s.gateway(c, abi.HTTPRequest{Route: "core_health"}, nil); err != nil {
		unwell(h, abi.HealthUnavailable, "server_down", err)
		return
	}
	if _, err := s.gateway(c, abi.HTTPRequest{Route: "core_ready"}, nil); err != nil {
		unwell(h, abi.HealthUnavailable, "database_down", err)
		return
	}
	i, err := s.coreInfo(c)
	if err != nil {
		unwell(h, abi.HealthUnavailable, "server_down", err)
		return
	}
	h.BackendVersion = "graphiti-core " + i.library + ", gateway " + i.version
	if missing := s.lacks(i); len(missing) > 0 {
		h.Status = abi.HealthDegraded
		h.Warnings = append(h.Warnings, "gateway_lacks: the configuration names what the gateway does not have: "+strings.Join(missing, ", "))
	}
	if s.bolt {
		if _, err := boltNumber(c, "bolt_alive", nil); err != nil {
			unwell(h, abi.HealthDegraded, "neo4j_down", err)
		}
	}
}

// coreModes are how this configuration ingests and searches.
func (s *settings) coreModes(h *abi.BackendHealth) {
	l := &s.library
	h.NativeMemoryTypes = []string{"episode", "entity", "fact", "community"}
	h.NativeIngestModes = []string{"add_episode:" + s.source}
	h.ConsistencyModel = "immediate"
	if l.queued {
		h.ConsistencyModel = "async_derived"
	}
	if l.bulk {
		h.NativeIngestModes = append(h.NativeIngestModes, "add_episode_bulk:"+s.source)
	}
	if l.triplets {
		h.NativeIngestModes = append(h.NativeIngestModes, "add_triplet")
	}
}

// group is what a group has: GET /v1/groups/{group}.
type group struct {
	counts [5]int64
	// busy are jobs that wait or run.
	busy int64
}

// groupKinds are the counts' names at the gateway, with what memhost calls them.
var groupKinds = [...][2]string{{"episodes", "episode"}, {"nodes", "entity"}, {"edges", "fact"}, {"communities", "community"}, {"sagas", "saga"}}

func (g *group) total() (n int64) {
	for _, c := range g.counts {
		n += c
	}
	return n
}

// readCounts reads an object of counts by the gateway's names.
func (g *group) readCounts(d *jsontext.Decoder) error {
	return d.Obj(func(d *jsontext.Decoder, key string) (err error) {
		for i := range groupKinds {
			if groupKinds[i][0] == key {
				g.counts[i], err = d.Int64()
				return err
			}
		}
		return d.Skip()
	})
}

func (s *settings) coreGroup(c *sdk.Call, gid string) (*group, error) {
	const route = "core_group"
	body, err := s.gateway(c, abi.HTTPRequest{Route: route, Params: inPath(gid, "", "")}, nil)
	if err != nil {
		return nil, err
	}
	g, seen := new(group), false
	err = fields(route, body, func(d *jsontext.Decoder, key string) error {
		switch key {
		case "counts":
			seen = true
			return g.readCounts(d)
		case "jobs":
			return d.Obj(func(d *jsontext.Decoder, key string) error {
				if key != "queued" && key != "running" {
					return d.Skip()
				}
				n, err := d.Int64()
				g.busy += n
				return err
			})
		}
		return d.Skip()
	})
	if err == nil && !seen {
		err = unusable(route, "one without counts", body)
	}
	return g, err
}

// coreRemove deletes a group with all that it has. The gateway takes the group's queued jobs away and waits for one that runs.
func (s *settings) coreRemove(c *sdk.Call, gid string, receipt *abi.ResetReceipt) error {
	const route = "core_delete_group"
	body, err := s.gateway(c, abi.HTTPRequest{Route: route, Params: inPath(gid, "", "")}, nil)
	if err != nil {
		return err
	}
	g, seen := new(group), false
	err = fields(route, body, func(d *jsontext.Decoder, key string) error {
		if key != "removed" {
			return d.Skip()
		}
		seen = true
		return g.readCounts(d)
	})
	if err == nil && !seen {
		err = unusable(route, "one without removed", body)
	}
	if err != nil {
		return err
	}
	for i := range groupKinds {
		receipt.Removed[groupKinds[i][1]] = sdk.Ptr(g.counts[i])
	}
	left, err := s.coreGroup(c, gid)
	if err != nil {
		return err
	}
	if left.total() == 0 && left.busy == 0 {
		receipt.Status = abi.ResetDone
		return nil
	}
	receipt.Warnings = append(receipt.Warnings, "draining: the group has "+sdk.Itoa(left.total())+" nodes and facts and "+sdk.Itoa(left.busy)+" jobs still")
	return nil
}
