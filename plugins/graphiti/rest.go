package main

import (
	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// rest sends one request to the REST service and answers the body of a 2xx.
func (s *settings) rest(c *sdk.Call, r abi.HTTPRequest, body []byte) ([]byte, error) {
	r.Headers = s.headers
	head, answer, err := c.HTTP(r, body)
	if err != nil {
		return nil, err
	}
	if e := refused(r.Route, head, answer); e != nil {
		return nil, e
	}
	return answer, nil
}

// restMessages enqueues turns, one message each: POST /messages (graph_service routers/ingest.py). The 202 says that they are queued and nothing else: whether
// they are ever processed shows in the graph alone. uuid is never sent: one that Graphiti does not know ends its worker, a known one re-processes that episode.
func (s *settings) restMessages(c *sdk.Call, gid string, turns []turn) error {
	var e jsontext.Encoder
	e.ObjStart()
	e.FieldStart("group_id")
	e.Str(gid)
	e.FieldStart("messages")
	e.ArrStart()
	for i := range turns {
		t := &turns[i]
		e.ObjStart()
		e.FieldStart("name")
		e.Str(t.name)
		e.FieldStart("role_type")
		e.Str(t.roleType)
		e.FieldStart("role")
		e.Str(t.role)
		e.FieldStart("timestamp")
		e.Str(t.at)
		e.FieldStart("source_description")
		e.Str(t.about)
		e.FieldStart("content")
		e.Str(t.content)
		e.ObjEnd()
	}
	e.ArrEnd()
	e.ObjEnd()
	return s.restDone(c, abi.HTTPRequest{Route: "rest_messages", TimeoutMS: queueMS}, e.Bytes())
}

// restDone sends a request whose answer is a Result: {"message": ..., "success": true}. Anything else was not done.
func (s *settings) restDone(c *sdk.Call, r abi.HTTPRequest, body []byte) error {
	answer, err := s.rest(c, r, body)
	if err != nil {
		return err
	}
	done := false
	err = fields(r.Route, answer, func(d *jsontext.Decoder, key string) (err error) {
		if key != "success" {
			return d.Skip()
		}
		done, err = d.Bool()
		return err
	})
	if err == nil && !done {
		err = unusable(r.Route, "none that says success", answer)
	}
	return err
}

// restSearch finds facts of one group: POST /search. Without a group, or with an empty list, the service would search them all. query is JSON.
func (s *settings) restSearch(c *sdk.Call, gid string, query abi.Raw) ([]byte, error) {
	l := lines{buf: make([]byte, 0, 128+len(gid)+len(query))}
	l.add(`{"group_ids":["`, gid)
	l.field(`"],"query":`, query)
	l.field(`,"max_facts":`, sdk.Number(s.maxFacts))
	l.add("}", "")
	return s.rest(c, abi.HTTPRequest{Route: routeRESTSearch}, l.buf)
}

// restEpisodes lists the newest episodes by event time, those of the server's future excepted: GET /episodes/{group_id}.
func (s *settings) restEpisodes(c *sdk.Call, gid string, most int64) ([]item, error) {
	const route = "rest_episodes"
	body, err := s.rest(c, abi.HTTPRequest{Route: route, Params: abi.Members[string]{{Name: "group", Value: gid}},
		Query: []abi.QueryParam{{Key: "last_n", Value: sdk.Itoa(most)}}}, nil)
	if err != nil {
		return nil, err
	}
	if !abi.ValidJSON(body) || jsontext.DecodeBytes(body).Next() != jsontext.Array {
		return nil, unusable(route, "no JSON array", body)
	}
	found, err := items(jsontext.DecodeBytes(body))
	if err != nil {
		return nil, unusable(route, err.Error(), body)
	}
	return found, ours(route, gid, found)
}

// restDeleteGroup removes a group's facts, entities and episodes, one by one on the server; safe to repeat: DELETE /group/{group_id}.
func (s *settings) restDeleteGroup(c *sdk.Call, gid string) error {
	return s.restDone(c, abi.HTTPRequest{Route: "rest_delete_group", Params: abi.Members[string]{{Name: "group", Value: gid}}}, nil)
}
