package main

import (
	"bytes"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// protocolVersion is the version that this client requests; the server answers with a version that both support.
const protocolVersion = "2025-06-18"

const routeMCPAdd = "mcp_add_memory"

// session is an MCP session over streamable HTTP. It belongs to this instance, which makes one call at a time; other
// instances have their own.
type session struct {
	id, protocol string
	// sent numbers the requests, since an id must not recur within a session.
	sent int64
}

// post sends a JSON-RPC message. For a status other than 2xx it returns the head and the body with the error.
func (s *mcp) post(v *scopedCall, route string, message []byte) (*abi.HTTPResponse, []byte, error) {
	request := abi.HTTPRequest{Route: route, Headers: map[string]string{}}
	for name, value := range v.headers {
		request.Headers[name] = value
	}
	request.Headers["accept"] = "application/json, text/event-stream" // both types, or the server answers 406
	if s.session.id != "" {
		request.Headers["mcp-session-id"] = s.session.id
		request.Headers["mcp-protocol-version"] = s.session.protocol
	}
	if route == routeMCPAdd {
		request.TimeoutMS = queueMS
	}
	head, body, err := v.HTTP(request, message)
	if err != nil {
		return nil, nil, err
	}
	if e := statusError(route, head, body); e != nil {
		err = e
	}
	return head, body, err
}

// request is a JSON-RPC request with the next id.
func (s *mcp) request(method string, params abi.Raw) (message []byte, id int64) {
	s.session.sent++
	return object(field{"jsonrpc", abi.Raw(`"2.0"`)}, field{"id", sdk.Number(s.session.sent)},
		field{"method", sdk.Text(method)},
		field{"params", params}), s.session.sent
}

// open starts a session: initialize, then the notification without which later calls fail.
func (s *mcp) open(v *scopedCall) error {
	const route = "mcp_initialize"
	s.session = session{}
	message, id := s.request("initialize", abi.Raw(`{"protocolVersion":"`+protocolVersion+
		`","capabilities":{},"clientInfo":{"name":"memhost","version":"1"}}`))
	head, body, err := s.post(v, route, message)
	if err != nil { // an error also carries a new session id, which must not be adopted
		return err
	}
	result, err := rpcResult(route, head, body, id)
	if err != nil {
		return err
	}
	opened := session{id: head.Headers["mcp-session-id"], protocol: protocolVersion, sent: id}
	err = answer(route, result, fields{{"protocolVersion", &opened.protocol}})
	switch {
	case err != nil:
		return err
	case opened.id == "":
		return unusable(route, "one without a session", body)
	}
	s.session = opened
	_, _, err = s.post(v, "mcp_initialized", []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	if err != nil {
		s.session = session{}
	}
	return err
}

// call sends a request within the session, which it opens if there is none. If the server does not know the session, as
// after a restart of the server, it opens a new one and sends the request again. The rejected request has not been
// executed.
func (s *mcp) call(v *scopedCall, route, method string, params abi.Raw) ([]byte, error) {
	for fresh := s.session.id == ""; ; fresh = true {
		if s.session.id == "" {
			err := s.open(v)
			if err != nil {
				return nil, err
			}
		}
		message, id := s.request(method, params)
		head, body, err := s.post(v, route, message)
		if head != nil && sessionLost(head, body) {
			s.session = session{}
			if !fresh {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		return rpcResult(route, head, body, id)
	}
}

// sessionLost reports whether the server does not know the session: 404, or 400 from older SDKs.
func sessionLost(head *abi.HTTPResponse, body []byte) bool {
	return (head.Status == 404 || head.Status == 400) && strings.Contains(lower(string(body)), "session")
}

// tool calls one of the server's tools and returns the JSON in its first text.
//
// Errors: the tool's {"error": ...} inside a success; invalid_argument for arguments that it rejects.
func (s *mcp) tool(v *scopedCall, route, name string, arguments ...field) ([]byte, error) {
	result, err := s.call(v, route, "tools/call", object(field{"name", sdk.Text(name)},
		field{"arguments", object(arguments...)}))
	if err != nil {
		return nil, err
	}
	content, err := toolText(route, result)
	if err == nil {
		err = toolError(route, content)
	}
	return content, err
}

// toolText returns the text of a tools/call result.
func toolText(route string, result []byte) ([]byte, error) {
	refused, texts := false, []string(nil)
	err := answer(route, result, fields{{"isError", &refused}, {"content", func(d *wirejson.Decoder) error {
		return d.Arr(func(d *wirejson.Decoder) error {
			text := ""
			err := fields{{"text", &text}}.read(d)
			if text != "" {
				texts = append(texts, text)
			}
			return err
		})
	}}})
	content := []byte(append(texts, "")[0])
	switch {
	case err != nil:
		return nil, err
	case refused && strings.HasPrefix(string(content), "Unknown tool"):
		return nil, native(abi.NewError(abi.CodeUnsupported, route+": "+string(content)).
			WithHint("the MCP server is older than mcp-server 1.0.2; update Graphiti"), route, content)
	case refused:
		e := abi.NewError(abi.CodeInvalidArgument, route+": the tool refused its arguments")
		return nil, native(e, route, content)
	case len(texts) == 0:
		return nil, unusable(route, "one without text", result)
	}
	return content, nil
}

// toolError returns the error in a tool's JSON; a text that is not a JSON object is an error too.
func toolError(route string, content []byte) error {
	var message wirejson.Raw
	err := answer(route, content, fields{{"error", &message}})
	if text, ok := stringOf(abi.Raw(message)); err == nil && ok {
		return reportedError(route, text)
	}
	return err
}

// rpcResult finds the response with an id in an answer, which is one JSON object, or a stream of server-sent events
// that ends with the response. The result is a part of the answer.
func rpcResult(route string, head *abi.HTTPResponse, body []byte, id int64) ([]byte, error) {
	messages := [][]byte{body}
	if !strings.HasPrefix(lower(head.Headers["content-type"]), "application/json") {
		messages = events(body)
	}
	for _, m := range messages {
		var ours, result, failure wirejson.Raw
		err := answer(route, m, fields{{"id", &ours}, {"result", &result}, {"error", &failure}})
		switch {
		case len(m) == 0:
		case err != nil:
			return nil, err
		case string(ours) != sdk.Itoa(id): // a notification
		case failure != nil:
			message := ""
			_ = answer(route, failure, fields{{"message", &message}})
			return nil, native(abi.NewError(abi.CodeBackend, route+": JSON-RPC error: "+message), route, m)
		case result != nil:
			return result, nil
		default:
			return nil, unusable(route, "neither a result nor an error", m)
		}
	}
	return nil, unusable(route, "a stream that ended before the response", body)
}

// events iterates over the data of each server-sent event of a stream, by the "event stream" grammar of the HTML
// standard: comment lines (": ping") and fields other than data are skipped, several data lines are joined by line
// ends, and an incomplete event at the end of the stream is dropped. A line ends with CR LF, LF or CR.
func events(stream []byte) [][]byte {
	var found, data [][]byte
	for {
		end := bytes.IndexAny(stream, "\r\n")
		if end < 0 {
			return found
		}
		line, rest := stream[:end], stream[end+1:]
		if stream[end] == '\r' {
			rest = bytes.TrimPrefix(rest, []byte("\n"))
		}
		stream = rest
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(line) > 0 && string(name) == "data":
			data = append(data, bytes.TrimPrefix(value, []byte(" ")))
		case len(line) == 0 && data != nil:
			found, data = append(found, bytes.Join(data, []byte("\n"))), nil
		}
	}
}
