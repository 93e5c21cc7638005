package graphiti

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
)

// MCP is the MCP server over streamable HTTP.
func (s *Server) MCP() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, object{"status": "healthy", "service": "graphiti-mcp"})
	})
	mux.HandleFunc("/mcp/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://"+r.Host+"/mcp")
		w.WriteHeader(http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/mcp", s.mcpEndpoint)
	return mux
}

// rpc is a JSON-RPC message.
type rpc struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  struct {
		Name            string `json:"name"`
		Arguments       object `json:"arguments"`
		ProtocolVersion string `json:"protocolVersion"`
	} `json:"params"`
}

func rpcError(w http.ResponseWriter, status, code int, message string) {
	answer(w, status, object{"jsonrpc": "2.0", "id": "server-error", "error": object{"code": code, "message": message}})
}

func (s *Server) mcpEndpoint(w http.ResponseWriter, r *http.Request) {
	plain := func(status int, text string) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
	host, _, err := net.SplitHostPort(r.Host)
	accept := r.Header.Get("Accept")
	switch {
	case err != nil || !slices.Contains([]string{"127.0.0.1", "localhost", "::1"}, host):
		plain(421, "Invalid Host header")
		return
	case r.Header.Get("Origin") != "":
		plain(403, "Invalid Origin header")
		return
	case r.Method == http.MethodPost && r.Header.Get("Content-Type") != "application/json":
		plain(400, "Invalid Content-Type header")
		return
	case r.Method == http.MethodPost && (!strings.Contains(accept, "application/json") ||
		!strings.Contains(accept, "text/event-stream")):
		rpcError(w, 406, -32600, "Not Acceptable: Client must accept both application/json and text/event-stream")
		return
	}
	session := r.Header.Get("Mcp-Session-Id")
	body, _ := io.ReadAll(r.Body)
	var m rpc
	if r.Method == http.MethodPost {
		if err := json.Unmarshal(body, &m); err != nil {
			w.Header().Set("Mcp-Session-Id", "not-to-be-adopted")
			rpcError(w, 400, -32700, "Parse error: "+err.Error())
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work()
	if m.Method == "initialize" {
		s.opened++
		session = fmt.Sprintf("%032x", s.opened*7919)
		s.sessions[session] = false
		w.Header().Set("Mcp-Session-Id", session)
		s.stream(w, m.ID, object{"protocolVersion": m.Params.ProtocolVersion,
			"capabilities": object{"tools": object{"listChanged": false}},
			"serverInfo":   object{"name": "Graphiti Agent Memory", "version": "1.30.0"},
			"instructions": "Graphiti is a memory service for AI agents."})
		return
	}
	ready, known := s.sessions[session]
	switch {
	case session == "":
		w.Header().Set("Mcp-Session-Id", "not-to-be-adopted")
		rpcError(w, 400, -32600, "Bad Request: Missing session ID")
	case !known:
		rpcError(w, 404, -32600, "Session not found")
	case r.Method == http.MethodDelete:
		delete(s.sessions, session)
		w.WriteHeader(http.StatusOK)
	case m.Method == "notifications/initialized":
		s.sessions[session] = true
		w.WriteHeader(http.StatusAccepted)
	case !ready || m.Method != "tools/list" && m.Method != "tools/call" || m.Method == "tools/call" &&
		m.Params.Name == "":
		s.event(w, object{"jsonrpc": "2.0", "id": m.ID,
			"error": object{"code": -32602, "message": "Invalid request parameters", "data": ""}})
	case m.Method == "tools/list":
		var tools []object
		for _, name := range toolNames {
			tools = append(tools, object{"name": name, "inputSchema": object{"type": "object"}})
		}
		s.stream(w, m.ID, object{"tools": tools})
	default:
		w.Header().Set("Mcp-Session-Id", session)
		s.stream(w, m.ID, s.call(m.Params.Name, m.Params.Arguments))
	}
}

func (s *Server) stream(w http.ResponseWriter, id json.RawMessage, result any) {
	s.event(w, object{"jsonrpc": "2.0", "id": id, "result": result})
}

// event answers one server-sent event, with a ping before it if the database is down, because then the server had to
// wait.
func (s *Server) event(w http.ResponseWriter, message any) {
	data, _ := json.Marshal(message)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if s.down {
		_, _ = io.WriteString(w, ": ping - 2026-11-21 04:21:31.730305+00:00\r\n\r\n")
	}
	_, _ = io.WriteString(w, "event: message\r\ndata: "+string(data)+"\r\n\r\n")
}

var toolNames = []string{"add_memory", "search_nodes", "search_memory_facts", "delete_entity_edge", "delete_episode",
	"get_entity_edge", "get_episodes",
	"clear_graph", "get_status", "add_triplet", "get_episode_entities"}

// call runs a tool. Failures of the application are successes that hold an error; wrong arguments are isError.
func (s *Server) call(name string, in object) object {
	prose := func(text string) object {
		return object{"content": []any{object{"type": "text", "text": text}}, "isError": true}
	}
	if !slices.Contains(toolNames, name) {
		return prose("Unknown tool: " + name)
	}
	for _, field := range map[string][]string{"add_memory": {"name", "episode_body"}, "search_memory_facts": {"query"},
		"search_nodes":    {"query"},
		"get_entity_edge": {"uuid"}, "delete_entity_edge": {"uuid"}, "delete_episode": {"uuid"},
		"add_triplet": {"source_node_name", "edge_name", "fact", "target_node_name"}}[name] {
		value, has := in[field]
		if !has {
			return prose(fmt.Sprintf("Error executing tool %s: 1 validation error for %sArguments\n%s\n  Field "+
				"required [type=missing]", name, name, field))
		}
		if _, ok := value.(string); !ok {
			return prose(fmt.Sprintf("Error executing tool %s: 1 validation error for %sArguments\n%s\n  Input "+
				"should be a valid string [type=string_type]", name, name, field))
		}
	}
	result := s.tool(name, in)
	text, _ := json.MarshalIndent(result, "", "  ")
	structured := any(object{"result": result})
	if name == "get_status" {
		structured = result
	}
	return object{"content": []any{object{"type": "text", "text": string(text)}}, "structuredContent": structured,
		"isError": false}
}

const noDatabase = "Couldn't connect to 127.0.0.1:7687 (resolved to ('127.0.0.1:7687',)):\nFailed to establish " +
	"connection"

// group reads a group argument as FastMCP does. FastMCP parses optional strings as JSON first, so the text "null" counts
// as absent, which means the default group.
func group(value any) string {
	text, _ := value.(string)
	if text == "" || text == "null" {
		return "main"
	}
	return text
}

// groups is a list of groups; an absent one is the default group, an empty one is all.
func groups(value any) []any {
	switch v := value.(type) {
	case []any:
		return v
	case string:
		return []any{group(v)}
	}
	return []any{"main"}
}

func (s *Server) tool(name string, in object) object {
	text := func(key string) string { t, _ := in[key].(string); return t }
	number := func(key string, otherwise int) int {
		if n, ok := in[key].(float64); ok {
			return int(n)
		}
		return otherwise
	}
	if name == "get_status" {
		if s.down {
			return object{"status": "error", "message": "Graphiti MCP server is running but database connection " +
				"failed: " + noDatabase}
		}
		return object{"status": "ok", "message": "Graphiti MCP server is running and connected to " + s.options.Store +
			" database"}
	}
	if name != "add_memory" && s.down {
		return object{"error": "Error in " + name + ": " + noDatabase}
	}
	switch name {
	case "add_memory":
		return s.addMemory(in, text)
	case "search_memory_facts":
		most := number("max_facts", 10)
		if most <= 0 {
			return object{"error": "max_facts must be a positive integer"}
		}
		facts, ok := s.find(groups(in["group_ids"]), text("query"), most)
		if !ok {
			for _, g := range groups(in["group_ids"]) {
				if t, _ := g.(string); !validGroup(t) {
					return object{"error": fmt.Sprintf("Error searching facts: group_id %q must contain only "+
						"alphanumeric characters, dashes, or underscores", t)}
				}
			}
			return object{"error": "Error searching facts: Connection error."}
		}
		if len(facts) == 0 {
			return object{"message": "No relevant facts found", "facts": []any{}}
		}
		list := []any{}
		for _, f := range facts {
			list = append(list, mcpFact(f))
		}
		return object{"message": "Facts retrieved successfully", "facts": list}
	case "search_nodes":
		return s.searchNodes(groups(in["group_ids"]), text("query"), min(number("max_nodes", 10), 10))
	case "get_episodes":
		return s.getEpisodes(groups(in["group_ids"]), number("max_episodes", 10))
	case "get_entity_edge":
		if f := s.graph.fact(text("uuid")); f != nil {
			return mcpFact(f)
		}
		return object{"error": "Error getting entity edge: edge " + text("uuid") + " not found"}
	case "delete_entity_edge":
		if s.graph.dropFact(text("uuid")) {
			return object{"message": "Entity edge with UUID " + text("uuid") + " deleted successfully"}
		}
		return object{"error": "Error deleting entity edge: edge " + text("uuid") + " not found"}
	case "delete_episode":
		return s.removeEpisode(text("uuid"))
	case "get_episode_entities":
		return s.episodeEntities(in)
	case "clear_graph":
		var cleared []string
		for _, g := range groups(in["group_ids"]) {
			t, _ := g.(string)
			s.graph.clear(t)
			cleared = append(cleared, t)
		}
		return object{"message": "Graph data cleared successfully for group IDs: " + strings.Join(cleared, ", ")}
	}
	gid := group(in["group_id"]) // add_triplet: no episode, no date
	subject, object_ := s.node(gid, text("source_node_name")), s.node(gid, text("target_node_name"))
	f := &fact{uuid: s.uuid(), group: gid, relation: text("edge_name"), text: text("fact"), source: subject.uuid,
		target: object_.uuid, createdAt: s.options.Now(),
		validAt: s.options.Now()} // the language model dates it, by the time it is asked
	s.graph.facts = append(s.graph.facts, f)
	return object{"message": "Triplet added", "nodes": []any{mcpNode(subject), mcpNode(object_)},
		"edges": []any{mcpEdge(f)}}
}

func (s *Server) addMemory(in object, text func(string) string) object {
	j := job{name: text("name"), group: group(in["group_id"]), source: text("source"),
		about: text("source_description"), content: text("episode_body"),
		uuid: text("uuid"), at: s.options.Now()}
	if !slices.Contains([]string{"json", "message", "fact_triple"}, j.source) {
		j.source = "text"
	}
	if at := text("reference_time"); at != "" {
		var err error
		if j.at, _, err = readTime(at); err != nil {
			return object{"error": "Invalid reference_time: Invalid isoformat string: '" + at + "'"}
		}
	}
	q := s.mcp[j.group]
	if q == nil {
		q = &queue{}
		s.mcp[j.group] = q
	}
	s.take(q, j)
	return object{"message": "Episode '" + j.name + "' queued for processing in group '" + j.group + "'"}
}

func mcpFact(f *fact) object {
	return object{"uuid": f.uuid, "group_id": f.group, "source_node_uuid": f.source, "target_node_uuid": f.target,
		"created_at": zulu(f.createdAt),
		"name":       f.relation, "fact": f.text, "episodes": texts(f.episodes), "expired_at": zulu(f.expiredAt),
		"valid_at":   zulu(f.validAt),
		"invalid_at": zulu(f.invalidAt), "reference_time": zulu(f.referenceTime), "attributes": object{}}
}

// mcpEdge is a fact as get_episode_entities and add_triplet give it.
func mcpEdge(f *fact) object {
	return object{"uuid": f.uuid, "name": f.relation, "fact": f.text, "source_node_uuid": f.source,
		"target_node_uuid": f.target,
		"group_id":         f.group, "created_at": stamp(f.createdAt), "valid_at": stamp(f.validAt),
		"invalid_at": stamp(f.invalidAt)}
}

func mcpNode(n *entity) object {
	return object{"uuid": n.uuid, "name": n.name, "labels": []any{"Entity"}, "created_at": stamp(n.createdAt),
		"summary": n.summary, "group_id": n.group, "attributes": object{}}
}

func in(list []any, group string) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(g any) bool { return g == group })
}

func (s *Server) searchNodes(groups []any, query string, most int) object {
	var found []*entity
	var texts []string
	for _, n := range s.graph.entities {
		if in(groups, n.group) {
			found, texts = append(found, n), append(texts, n.name+" "+n.summary)
		}
	}
	list := []any{}
	for _, i := range rank(texts, query, most) {
		list = append(list, mcpNode(found[i]))
	}
	if len(list) == 0 {
		return object{"message": "No relevant nodes found", "nodes": list}
	}
	return object{"message": "Nodes retrieved successfully", "nodes": list}
}

// getEpisodes goes by uuid, descending: any page but all is arbitrary.
func (s *Server) getEpisodes(groups []any, most int) object {
	var found []*episode
	for _, e := range s.graph.episodes {
		if in(groups, e.group) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *episode) int { return strings.Compare(b.uuid, a.uuid) })
	list := []any{}
	for _, e := range found[:min(most, len(found))] {
		list = append(list, object{"uuid": e.uuid, "name": e.name, "content": e.content,
			"created_at": stamp(e.createdAt), "source": e.source,
			"source_description": e.about, "group_id": e.group})
	}
	if len(list) == 0 {
		return object{"message": "No episodes found", "episodes": list}
	}
	return object{"message": "Episodes retrieved successfully", "episodes": list}
}

// removeEpisode is Graphiti.remove_episode: facts whose first episode it is go too, even if others asserted them (since
// 0.31 only if none does); what it had closed stays closed.
func (s *Server) removeEpisode(uuid string) object {
	if !s.graph.dropEpisode(uuid) {
		return object{"error": "Error deleting episode: node " + uuid + " not found"}
	}
	s.graph.facts = slices.DeleteFunc(s.graph.facts, func(f *fact) bool {
		if !s.options.Head {
			return len(f.episodes) > 0 && f.episodes[0] == uuid
		}
		before := len(f.episodes)
		f.episodes = slices.DeleteFunc(f.episodes, func(e string) bool { return e == uuid })
		return before > 0 && len(f.episodes) == 0
	})
	return object{"message": "Episode with UUID " + uuid + " deleted successfully"}
}

func (s *Server) episodeEntities(args object) object {
	list, _ := args["episode_uuids"].([]any)
	nodes, edges, seen := []any{}, []any{}, map[string]bool{}
	for _, u := range list {
		uuid, _ := u.(string)
		e := s.graph.episode(uuid)
		if e == nil {
			continue
		}
		for _, id := range e.facts {
			f := s.graph.fact(id)
			if f == nil {
				continue
			}
			edges = append(edges, mcpEdge(f))
			for _, id := range []string{f.source, f.target} {
				if n := s.graph.entity(id); n != nil && !seen[id] {
					seen[id] = true
					nodes = append(nodes, mcpNode(n))
				}
			}
		}
	}
	return object{"message": fmt.Sprintf("Retrieved provenance for %d episode(s)", len(list)), "nodes": nodes,
		"edges": edges}
}
