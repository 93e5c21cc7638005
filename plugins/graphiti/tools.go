package main

import (
	"strings"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

const routeMCPAdd = "mcp_add_memory"

// mcpAdd queues one turn: add_memory. The answer has no id, and says nothing of what becomes of it. uuid is never sent (see restMessages).
func (s *settings) mcpAdd(c *sdk.Call, gid string, t *turn) error {
	var e jsontext.Encoder
	e.ObjStart()
	e.FieldStart("name")
	e.Str(t.name)
	e.FieldStart("group_id")
	e.Str(gid)
	e.FieldStart("source")
	e.Str(s.source)
	e.FieldStart("reference_time")
	e.Str(t.at)
	e.FieldStart("source_description")
	e.Str(t.about)
	if s.instructions != "" {
		e.FieldStart("custom_extraction_instructions")
		e.Str(s.instructions)
	}
	e.FieldStart("episode_body")
	e.Str(t.body(s.source))
	e.ObjEnd()
	const route = routeMCPAdd
	answer, err := s.tool(c, route, "add_memory", e.Bytes())
	if err != nil {
		return err
	}
	// "Episode 'e1' queued for processing in group 'g'": a server that took another group would have stored the turn elsewhere.
	if !strings.Contains(string(answer), gid) {
		return foreign(route, string(answer))
	}
	return nil
}

// mcpSearch finds facts of one group: search_memory_facts. Without a group the server would take its default one, with an empty list all. The answer is unread: see
// toolError. query is JSON.
func (s *settings) mcpSearch(c *sdk.Call, gid string, query abi.Raw, filters []field) ([]byte, error) {
	l := lines{buf: make([]byte, 0, 128+len(gid)+len(query))}
	l.field(`{"query":`, query)
	l.add(`,"group_ids":["`, gid)
	l.field(`"],"max_facts":`, sdk.Number(s.maxFacts))
	for _, f := range filters {
		l.field(`,"`+f.name+`":`, f.value)
	}
	l.add("}", "")
	return s.call(c, routeMCPSearch, "search_memory_facts", l.buf)
}

// maxNodes is what search_nodes gives at most: the limit of its recipe, whatever is asked for.
const maxNodes = 10

// mcpNodes finds entities of one group as mcpSearch does facts: search_nodes.
func (s *settings) mcpNodes(c *sdk.Call, gid string, query abi.Raw) ([]byte, error) {
	var e jsontext.Encoder
	e.ObjStart()
	e.FieldStart("query")
	e.Raw(query)
	e.FieldStart("group_ids")
	e.Raw(quoted(gid))
	e.FieldStart("max_nodes")
	e.Int64(maxNodes)
	e.ObjEnd()
	return s.call(c, routeMCPNodes, "search_nodes", e.Bytes())
}

// mcpEpisodesBody is get_episodes as it came: by uuid, so any page but all of them is a random sample.
func (s *settings) mcpEpisodesBody(c *sdk.Call, gid string, most int64) ([]byte, error) {
	var e jsontext.Encoder
	e.ObjStart()
	e.FieldStart("group_ids")
	e.Raw(quoted(gid))
	e.FieldStart("max_episodes")
	e.Int64(most)
	e.ObjEnd()
	return s.tool(c, "mcp_episodes", "get_episodes", e.Bytes())
}

func (s *settings) mcpEpisodes(c *sdk.Call, gid string, most int64) ([]item, error) {
	const route = "mcp_episodes"
	body, err := s.mcpEpisodesBody(c, gid, most)
	if err != nil {
		return nil, err
	}
	found, err := itemsIn(route, "episodes", body)
	if err != nil {
		return nil, err
	}
	return found, ours(route, gid, found)
}

// mcpClear removes a group's facts, entities, episodes and communities in one transaction: clear_graph. Sagas stay.
func (s *settings) mcpClear(c *sdk.Call, gid string) error {
	var e jsontext.Encoder
	e.ObjStart()
	e.FieldStart("group_ids")
	e.Raw(quoted(gid))
	e.ObjEnd()
	_, err := s.tool(c, "mcp_clear_graph", "clear_graph", e.Bytes())
	return err
}

// mcpStatus asks get_status, which really queries the database, and refuses one that is not Neo4j.
//
// Errors: unavailable when the server cannot use its database; unsupported for FalkorDB.
func (s *settings) mcpStatus(c *sdk.Call) error {
	const route = "mcp_get_status"
	body, err := s.tool(c, route, "get_status", []byte("{}"))
	if err != nil {
		return err
	}
	status, message := "", ""
	err = fields(route, body, func(d *jsontext.Decoder, key string) (err error) {
		switch key {
		case "status":
			status, err = text(d)
		case "message":
			message, err = text(d)
		default:
			err = d.Skip()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case status != "ok":
		return native(abi.NewError(abi.CodeUnavailable, route+": "+message).WithHint("the server runs, its database does not"), route, nil, body)
	case strings.Contains(lower(message), "falkordb"):
		return native(abi.NewError(abi.CodeUnsupported, "the MCP server stores in FalkorDB, where concurrent groups write into each other's graph").
			WithReason("falkordb").WithHint("start it with --database-provider neo4j"), route, nil, body)
	}
	return nil
}

// mcpTools are the tools without which the module cannot work.
var mcpTools = [...]string{"add_memory", "search_memory_facts", "get_episodes", "clear_graph", "get_status"}

// mcpMissing lists the tools that the server lacks: their names changed over the releases.
func (s *settings) mcpMissing(c *sdk.Call) ([]string, error) {
	const route = "mcp_tools"
	head, body, id, err := s.ask(c, route, "tools/list", "{}", nil, "")
	if err != nil {
		return nil, err
	}
	result, err := rpcResult(route, head, body, id)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	err = fields(route, result, func(d *jsontext.Decoder, key string) error {
		if key != "tools" {
			return d.Skip()
		}
		return d.Arr(func(d *jsontext.Decoder) error {
			return d.Obj(func(d *jsontext.Decoder, key string) error {
				if key != "name" {
					return d.Skip()
				}
				name, err := text(d)
				has[name] = true
				return err
			})
		})
	})
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, name := range mcpTools {
		if !has[name] {
			missing = append(missing, name)
		}
	}
	return missing, nil
}
