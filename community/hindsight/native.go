package main

import (
	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// request is a request about the call's scope by one of the manifest's routes.
type request struct {
	route               string
	document, operation string // if the route's path has one
	query               []abi.QueryParam
	body                []byte
}

// ask sends a request. The answer is nil for statuses that the manifest declares to mean "nothing there"; every other
// answer that is no success is an error, which keeps Hindsight's message.
func ask(c *sdk.Call, r request) ([]byte, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	h := abi.HTTPRequest{Route: r.route, Query: r.query, Headers: map[string]string{}, Params: map[string]string{}}
	if r.route != "health" && r.route != "version" {
		if h.Params["bank"], err = bankOf(c); err != nil {
			return nil, err
		}
	}
	if r.document != "" {
		h.Params["document"] = r.document
	}
	if r.operation != "" {
		h.Params["operation"] = r.operation
	}
	if s.hasKey {
		h.Headers["authorization"] = "Bearer {{secret:api_key}}"
	}
	if r.body != nil {
		h.Headers["content-type"] = "application/json"
	}
	head, answer, err := c.HTTP(h, r.body)
	switch {
	case err != nil:
		return nil, err // denied, read_only, timeout, unavailable, too_large
	case head.Empty:
		return nil, nil
	case head.Status >= 300:
		return nil, sdk.Failure(r.route, head, answer, detail(answer))
	case !abi.ValidJSON(answer):
		return nil, sdk.Unusable(r.route, head.Status, answer, "is not JSON")
	}
	return answer, nil
}

// detail is FastAPI's message in {"detail": "..."}. A list of mistakes in the request is kept in native alone.
func detail(body []byte) (text string) {
	_ = wirejson.DecodeBytes(body).Obj(func(d *wirejson.Decoder, key string) error {
		if key == "detail" {
			return sdk.ReadText(d, &text)
		}
		return d.Skip()
	})
	return text
}

// unusable is the error for a success that does not hold what it should.
func unusable(route string, body []byte) error {
	return sdk.Unusable(route, 200, body, "does not hold what it should")
}

// fields reads some members of an object, each with its reader. null and members that are not there leave the reader
// uncalled.
func fields(body []byte, readers map[string]func(*wirejson.Decoder) error) error {
	return wirejson.DecodeBytes(body).Obj(func(d *wirejson.Decoder, key string) error {
		read := readers[key]
		if read == nil || d.Next() == wirejson.Null {
			return d.Skip()
		}
		return read(d)
	})
}

// recallHit is one result of a recall.
type recallHit struct {
	id, text, kind, document, event, mentionedAt, occurredAt string
	score                                                    *float64
}

// parseRecall reads {"results": [...]}. An answer without the list is an error.
func parseRecall(body []byte) (list []recallHit, err error) {
	there := false
	err = fields(body, map[string]func(*wirejson.Decoder) error{"results": func(d *wirejson.Decoder) error {
		there = true
		return d.Arr(func(d *wirejson.Decoder) error {
			f, err := parseFound(d)
			list = append(list, f)
			return err
		})
	}})
	if err == nil && !there {
		err = abi.NewError(abi.CodeBackend, "results is missing")
	}
	return list, err
}

func parseFound(d *wirejson.Decoder) (f recallHit, err error) {
	err = d.Obj(func(d *wirejson.Decoder, key string) error {
		switch key {
		case "id":
			return sdk.ReadText(d, &f.id)
		case "text":
			return sdk.ReadText(d, &f.text)
		case "type":
			return sdk.ReadText(d, &f.kind)
		case "document_id":
			return sdk.ReadText(d, &f.document)
		case "mentioned_at":
			return sdk.ReadText(d, &f.mentionedAt)
		case "occurred_start":
			return sdk.ReadText(d, &f.occurredAt)
		case "metadata":
			labels, err := parseLabels(d)
			f.event = labels.event
			return err
		case "scores":
			if d.Next() == wirejson.Null {
				return d.Skip()
			}
			return d.Obj(func(d *wirejson.Decoder, key string) error {
				if key != "final" || d.Next() != wirejson.Number {
					return d.Skip()
				}
				score, err := d.Float64()
				f.score = &score
				return err
			})
		}
		return d.Skip()
	})
	return f, err
}

// labels are what the plugin keeps of an event in a document's metadata.
type labels struct{ event, session, time string }

func parseLabels(d *wirejson.Decoder) (l labels, err error) {
	if d.Next() != wirejson.Object {
		return l, d.Skip()
	}
	err = d.Obj(func(d *wirejson.Decoder, key string) error {
		switch key {
		case "event_id":
			return sdk.ReadText(d, &l.event)
		case "session_id":
			return sdk.ReadText(d, &l.session)
		case "timestamp":
			return sdk.ReadText(d, &l.time)
		}
		return d.Skip()
	})
	return l, err
}

// document is one document of a bank.
type document struct {
	id, hash string
	units    int64
	labels
}

// pageSize is how many documents are listed at a time.
const pageSize = 500

// eachDocument lists the bank's documents. whole is false if the time did not suffice.
func eachDocument(c *sdk.Call, each func(document)) (whole bool, err error) {
	for offset := int64(0); ; {
		if c.Remaining() < 2000 {
			return false, nil
		}
		answer, err := ask(c, request{route: "documents", query: []abi.QueryParam{{Key: "limit", Value: sdk.Itoa(pageSize)},
			{Key: "offset", Value: sdk.Itoa(offset)}}})
		if err != nil || answer == nil {
			return err == nil, err
		}
		listed, total := int64(0), int64(-1)
		err = fields(answer, map[string]func(*wirejson.Decoder) error{
			"total": func(d *wirejson.Decoder) (err error) { total, err = d.Int64(); return err },
			"items": func(d *wirejson.Decoder) error {
				return d.Arr(func(d *wirejson.Decoder) error {
					listed++
					one, err := parseDocument(d)
					each(one)
					return err
				})
			},
		})
		if err != nil || total < 0 {
			return false, unusable("documents", answer)
		}
		c.Reuse(answer)
		if offset += listed; listed == 0 || offset >= total {
			return offset >= total, nil
		}
	}
}

func parseDocument(d *wirejson.Decoder) (one document, err error) {
	err = d.Obj(func(d *wirejson.Decoder, key string) (err error) {
		switch key {
		case "id":
			one.id, err = d.Str()
		case "content_hash":
			err = sdk.ReadText(d, &one.hash)
		case "memory_unit_count":
			one.units, err = d.Int64()
		case "document_metadata":
			one.labels, err = parseLabels(d)
		default:
			err = d.Skip()
		}
		return err
	})
	return one, err
}
