package main

import (
	"bytes"
	"strings"

	"github.com/memhost/memhost/abi/jsontext"
	"github.com/memhost/memhost/abi/words"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// protocolVersion is what this client asks for; the server answers with what both speak.
const protocolVersion = "2025-06-18"

// session is an MCP session over streamable HTTP. It belongs to this instance, which makes one call at a time; another instance has its own.
type session struct {
	id, protocol string
	// sent numbers the requests: an id must not recur within a session.
	sent int64
	// headers go with every request of the session.
	headers abi.Members[string]
}

// mcp sends a JSON-RPC message and answers what came, whatever its status.
func (s *settings) mcpPost(c *sdk.Call, route string, message []byte) (*abi.HTTPResponse, []byte, error) {
	headers := s.headers
	if s.session.id != "" {
		headers = s.session.headers
	}
	request := abi.HTTPRequest{Route: route, Headers: headers}
	if route == routeMCPAdd {
		request.TimeoutMS = queueMS
	}
	return c.HTTP(request, message)
}

// request is a JSON-RPC request with the next id. The parameters are what before, params and after are together.
func (s *settings) request(method, before string, params []byte, after string) (message []byte, id int64) {
	s.session.sent++
	l := lines{buf: make([]byte, 0, 96+len(method)+len(before)+len(params))}
	l.field(`{"jsonrpc":"2.0","id":`, sdk.Number(s.session.sent))
	l.add(`,"method":"`, method)
	l.add(`","params":`, before)
	l.field("", params)
	l.add(after, "}")
	return l.buf, s.session.sent
}

// open begins a session: initialize, then the notification without which later calls fail.
func (s *settings) open(c *sdk.Call) error {
	const route = "mcp_initialize"
	s.session = session{}
	message, id := s.request("initialize", `{"protocolVersion":"`+protocolVersion+`","capabilities":{},"clientInfo":{"name":"memhost","version":"1"}}`, nil, "")
	head, body, err := s.mcpPost(c, route, message)
	if err != nil {
		return err
	}
	if e := refused(route, head, body); e != nil { // an error carries a fresh session id too, which is none to adopt
		return e
	}
	result, err := rpcResult(route, head, body, id)
	if err != nil {
		return err
	}
	opened := session{id: head.Headers.Get("mcp-session-id"), protocol: protocolVersion, sent: id}
	err = fields(route, result, func(d *jsontext.Decoder, key string) (err error) {
		if key != "protocolVersion" {
			return d.Skip()
		}
		opened.protocol, err = d.Str()
		return err
	})
	if err != nil {
		return err
	}
	if opened.id == "" {
		return unusable(route, "one without a session", body)
	}
	opened.headers = append(make(abi.Members[string], 0, len(s.headers)+2), s.headers...)
	opened.headers.Set("mcp-session-id", opened.id)
	opened.headers.Set("mcp-protocol-version", opened.protocol)
	s.session = opened
	const ready = "mcp_initialized"
	head, body, err = s.mcpPost(c, ready, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err == nil {
		if e := refused(ready, head, body); e != nil {
			err = e
		}
	}
	if err != nil {
		s.session = session{}
	}
	return err
}

// ask sends a request within the session, which it opens when there is none, and once more when the server does not know it: after a restart of the server
// that is every session. A call that was answered so has not been carried out. The answer is a 2xx, and rpcResult finds the response with the id in it.
func (s *settings) ask(c *sdk.Call, route, method, before string, params []byte, after string) (head *abi.HTTPResponse, body []byte, id int64, err error) {
	for fresh := false; ; fresh = true {
		if s.session.id == "" {
			if err := s.open(c); err != nil {
				return nil, nil, 0, err
			}
			fresh = true
		}
		message, id := s.request(method, before, params, after)
		head, body, err := s.mcpPost(c, route, message)
		if err != nil {
			return nil, nil, 0, err
		}
		if sessionLost(head, body) {
			s.session = session{}
			if !fresh {
				continue
			}
		}
		if e := refused(route, head, body); e != nil {
			return nil, nil, 0, e
		}
		return head, body, id, nil
	}
}

// sessionLost tells the answers to a session that the server does not know: 404, and 400 from older SDKs.
func sessionLost(head *abi.HTTPResponse, body []byte) bool {
	return (head.Status == 404 || head.Status == 400) && strings.Contains(lower(string(body)), "session")
}

// tool calls one of the server's tools and answers the JSON in its first text.
//
// Errors: what the tool says in {"error": ...} inside a success; invalid_argument for arguments that it refuses.
func (s *settings) tool(c *sdk.Call, route, name string, arguments []byte) ([]byte, error) {
	content, err := s.call(c, route, name, arguments)
	if err == nil {
		err = toolError(route, content)
	}
	return content, err
}

// call is tool for who reads the JSON at once, and asks toolError where it is not what was expected, or has a key "error".
func (s *settings) call(c *sdk.Call, route, name string, arguments []byte) ([]byte, error) {
	head, body, id, err := s.ask(c, route, "tools/call", `{"name":"`+name+`","arguments":`, arguments, "}")
	if err != nil {
		return nil, err
	}
	if content := plainText(head, body, id); content != nil {
		return content, nil
	}
	result, err := rpcResult(route, head, body, id)
	if err != nil {
		return nil, err
	}
	return toolText(route, result)
}

// plainText is toolText of rpcResult for the answer that a server gives to nearly every call, a single message that ends with the result: it is read once,
// and what is wrong with another is found by reading it again. Nil: another.
func plainText(head *abi.HTTPResponse, body []byte, id int64) []byte {
	const name = `"result":`
	messages := rpcMessages(head, body)
	if len(messages) != 1 {
		return nil
	}
	m := messages[0]
	begin := bytes.Index(m[:min(len(m), 64)], []byte(name)) + len(name)
	if begin < len(name) || m[len(m)-1] != '}' {
		return nil
	}
	before := append(append(make([]byte, 0, 80), m[:begin]...), "0}"...)
	if result, failure, ours, err := readRPC("", before, id); err != nil || !ours || failure != "" || string(result) != "0" {
		return nil
	}
	var r toolResult
	d := jsontext.DecodeBytes(m[begin : len(m)-1]).Limit(abi.MaxDepth - 1)
	if d.Next() != jsontext.Object || d.Obj(r.decode) != nil || !d.AtEnd() || !r.found || r.failed {
		return nil
	}
	return r.content
}

// toolResult is the result of tools/call.
type toolResult struct {
	// content is the first text, found tells that there is one.
	content       []byte
	found, failed bool
}

func (r *toolResult) decode(d *jsontext.Decoder, key string) (err error) {
	switch key {
	case "isError":
		r.failed, err = d.Bool()
		return err
	case "content":
		return d.Arr(func(d *jsontext.Decoder) error {
			if r.found {
				return d.Skip()
			}
			return d.Obj(func(d *jsontext.Decoder, key string) error {
				if key != "text" {
					return d.Skip()
				}
				text, err := d.Str()
				r.content, r.found = words.Bytes(text), err == nil
				return err
			})
		})
	}
	return d.Skip()
}

// toolText takes the text out of a tools/call result.
func toolText(route string, result []byte) ([]byte, error) {
	var r toolResult
	err := fields(route, result, r.decode)
	switch {
	case err != nil:
		return nil, err
	case r.failed && bytes.HasPrefix(r.content, []byte("Unknown tool")):
		return nil, native(abi.NewError(abi.CodeUnsupported, route+": "+string(r.content)).
			WithHint("the MCP server is older than mcp-server 1.0.2; update Graphiti"), route, nil, r.content)
	case r.failed:
		return nil, native(abi.NewError(abi.CodeInvalidArgument, route+": the tool refused its arguments"), route, nil, r.content)
	case !r.found:
		return nil, unusable(route, "one without text", result)
	}
	return r.content, nil
}

// toolError is the error that a tool's JSON tells; a text that is no JSON object is one too.
func toolError(route string, content []byte) error {
	message, isError := "", false
	err := fields(route, content, func(d *jsontext.Decoder, key string) (err error) {
		if key != "error" || d.Next() != jsontext.String {
			return d.Skip()
		}
		message, err = d.Str()
		isError = true
		return err
	})
	if err == nil && isError {
		err = said(route, message)
	}
	return err
}

// rpcMessages are those of an answer.
func rpcMessages(head *abi.HTTPResponse, body []byte) [][]byte {
	kind := head.Headers.Get("content-type")
	if strings.HasPrefix(kind, "text/event-stream") || !strings.HasPrefix(lower(kind), "application/json") {
		return events(body)
	}
	return [][]byte{body}
}

// rpcResult finds the response with an id in an answer, which is one JSON object, or a stream of server-sent events that ends with the response.
func rpcResult(route string, head *abi.HTTPResponse, body []byte, id int64) ([]byte, error) {
	for _, m := range rpcMessages(head, body) {
		if len(m) == 0 {
			continue
		}
		result, failure, ours, err := readRPC(route, m, id)
		switch {
		case err != nil:
			return nil, err
		case !ours: // a notification
		case failure != "":
			return nil, native(abi.NewError(abi.CodeBackend, route+": "+failure), route, nil, m)
		case result != nil:
			return result, nil
		default:
			return nil, unusable(route, "neither a result nor an error", m)
		}
	}
	return nil, unusable(route, "a stream that ended before the response", body)
}

// readRPC reads one JSON-RPC message. ours tells that it answers the request with the id.
func readRPC(route string, message []byte, id int64) (result []byte, failure string, ours bool, err error) {
	d := jsontext.DecodeBytes(message).Limit(abi.MaxDepth)
	isObject := d.Next() == jsontext.Object
	read := func(d *jsontext.Decoder, key string) (err error) {
		switch key {
		case "id":
			var raw jsontext.Raw
			raw, err = d.Raw()
			ours = string(raw) == sdk.Itoa(id)
		case "result":
			var raw jsontext.Raw
			raw, err = d.Raw() // a part of the message
			result = raw
		case "error":
			failure = "JSON-RPC error"
			if d.Next() != jsontext.Object {
				return d.Skip()
			}
			err = d.Obj(func(d *jsontext.Decoder, key string) error {
				if key != "message" {
					return d.Skip()
				}
				said, err := text(d)
				failure += ": " + said
				return err
			})
		default:
			err = d.Skip()
		}
		return err
	}
	if isObject {
		err = d.Obj(read)
	}
	switch {
	case isObject && err == nil && d.AtEnd():
	case !shallow(message):
		return nil, "", false, unusable(route, "nested too deep", message)
	case !isObject:
		return nil, "", false, unusable(route, "no JSON object", message)
	case err != nil:
		err = unusable(route, err.Error(), message)
	}
	return result, failure, ours, err
}

// events gives the data of each server-sent event of a stream, after the "event stream" grammar of the HTML standard: comment lines (": ping") and fields other
// than data are skipped, several data lines are joined by line ends, and an event that the stream breaks off in is none.
func events(stream []byte) [][]byte {
	var found [][]byte
	var data []byte
	has := false
	for len(stream) > 0 {
		line, rest, ended := cutLine(stream)
		stream = rest
		switch {
		case !ended:
			return found
		case len(line) == 0:
			if has {
				found = append(found, data)
			}
			data, has = nil, false
		case bytes.HasPrefix(line, dataField) && (len(line) == 4 || line[4] == ':'):
			value := line[min(5, len(line)):]
			if len(value) > 0 && value[0] == ' ' {
				value = value[1:]
			}
			if has {
				value = append(append(append([]byte(nil), data...), '\n'), value...)
			}
			data, has = value, true // a part of the stream, where the event has one line
		}
	}
	return found
}

var dataField = []byte("data")

// cutLine takes the first line: it ends with CR LF, LF or CR.
func cutLine(stream []byte) (line, rest []byte, ended bool) {
	i := lineEnd(stream)
	switch {
	case i == len(stream):
		return stream, nil, false
	case stream[i] == '\r' && i+1 < len(stream) && stream[i+1] == '\n':
		return stream[:i], stream[i+2:], true
	}
	return stream[:i], stream[i+1:], true
}

// lineEnd finds the first CR or LF, or the end. A line may be long: it passes over sixteen bytes at a time where none is as low as those.
func lineEnd(stream []byte) int {
	text := words.View(stream)
	for i := 0; i < len(text); i++ {
		for ; i+16 <= len(text); i += 16 {
			v, w := words.At(text, i), words.At(text, i+8)
			if words.Below(v, '\r'+1)|words.Below(w, '\r'+1) != 0 {
				break
			}
		}
		if i < len(text) && (text[i] == '\n' || text[i] == '\r') {
			return i
		}
	}
	return len(stream)
}
