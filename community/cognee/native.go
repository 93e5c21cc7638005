package main

import (
	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// request is a request by one of the manifest's routes.
type request struct {
	route         string
	dataset, data string // if the route's path has one
	query         []abi.QueryParam
	json          []byte
	form          *form // instead of json
}

// ask sends a request. The answer is nil for statuses that the manifest declares to mean "nothing there"; every other
// answer that is no success is an error, which keeps Cognee's message.
func ask(c *sdk.Call, r request) ([]byte, error) {
	h := abi.HTTPRequest{Route: r.route, Query: r.query, Headers: map[string]string{"x-api-key": "{{secret:api_key}}"},
		Params: map[string]string{}}
	if r.dataset != "" {
		h.Params["dataset"] = r.dataset
	}
	if r.data != "" {
		h.Params["data"] = r.data
	}
	body := r.json
	switch {
	case r.form != nil:
		h.Headers["content-type"] = "multipart/form-data; boundary=" + r.form.boundary
		body = r.form.bytes()
	case body != nil:
		h.Headers["content-type"] = "application/json"
	}
	head, answer, err := c.HTTP(h, body)
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

// detail is Cognee's message: {"detail": "..."}, or {"error": "...", "detail": "..."}.
func detail(body []byte) string {
	var text, short string
	_ = wirejson.DecodeBytes(body).Obj(func(d *wirejson.Decoder, key string) error {
		switch key {
		case "detail":
			return sdk.ReadText(d, &text)
		case "error":
			return sdk.ReadText(d, &short)
		}
		return d.Skip()
	})
	if short != "" && text != "" {
		return short + ": " + text
	}
	return text + short
}

// unusable is the error for a success that does not hold what it should.
func unusable(route string, body []byte) error {
	return sdk.Unusable(route, 200, body, "does not hold what it should")
}

// form is a request as multipart/form-data.
type form struct {
	boundary string
	body     []byte
}

// newForm makes a form whose boundary is not in its content, because it is the content's digest.
func newForm(content string) *form { return &form{boundary: "memhost-" + sdk.Digest256(content)[:40]} }

func (f *form) field(name, value string) { f.part(`name="`+name+`"`, value) }

// file adds a text file. The name needs no quoting: it is one of documentOf.
func (f *form) file(name, fileName, content string) {
	f.part(`name="`+name+`"; filename="`+fileName+`"`+"\r\ncontent-type: text/plain; charset=utf-8", content)
}

func (f *form) part(head, value string) {
	f.body = append(f.body, "--"+f.boundary+"\r\ncontent-disposition: form-data; "+head+"\r\n\r\n"+value+"\r\n"...)
}

func (f *form) bytes() []byte { return append(f.body, "--"+f.boundary+"--\r\n"...) }

// labels are what the plugin keeps of an event with its document.
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

// searchHit is one chunk of a search.
type searchHit struct {
	id, kind, text, document, name string
	score                          *float64
	labels
}

// parseSearch reads [{"dataset_id": ..., "search_result": [...]}]. A server without access control answers with chunks
// of all datasets, and without the datasets' ids: that is an error.
func parseSearch(body []byte, dataset string) (list []searchHit, err error) {
	there := false
	err = wirejson.DecodeBytes(body).Arr(func(d *wirejson.Decoder) error {
		from := ""
		err := d.Obj(func(d *wirejson.Decoder, key string) error {
			switch key {
			case "dataset_id":
				return sdk.ReadText(d, &from)
			case "search_result":
				return d.Arr(func(d *wirejson.Decoder) error {
					f, err := parseFound(d)
					list = append(list, f)
					return err
				})
			}
			return d.Skip()
		})
		there = there || from == dataset
		if err == nil && from != dataset {
			err = abi.NewError(abi.CodeBackend, "a result is not of the scope's dataset")
		}
		return err
	})
	if err == nil && !there {
		err = abi.NewError(abi.CodeBackend, "the dataset is missing")
	}
	return list, err
}

func parseFound(d *wirejson.Decoder) (f searchHit, err error) {
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
		case "document_name":
			return sdk.ReadText(d, &f.name)
		case "external_metadata": // a text that holds JSON
			metadata := ""
			err := sdk.ReadText(d, &metadata)
			if err == nil && metadata != "" {
				f.labels, err = parseLabels(wirejson.DecodeBytes([]byte(metadata)))
			}
			return err
		case "score":
			if d.Next() != wirejson.Number {
				return d.Skip()
			}
			score, err := d.Float64()
			f.score = &score
			return err
		}
		return d.Skip()
	})
	return f, err
}

// document is one document of a dataset.
type document struct {
	id, name, location string
	labels
}

// pageSize is how many documents are listed at a time.
const pageSize = 1000

// eachDocument lists the dataset's documents. whole is false if the time did not suffice.
func eachDocument(c *sdk.Call, dataset string, each func(document)) (whole bool, err error) {
	for offset := int64(0); ; {
		if c.Remaining() < 2000 {
			return false, nil
		}
		answer, err := ask(c, request{route: "data", dataset: dataset, query: []abi.QueryParam{
			{Key: "limit", Value: sdk.Itoa(pageSize)}, {Key: "offset", Value: sdk.Itoa(offset)}}})
		if err != nil {
			return false, err
		}
		listed := int64(0)
		err = wirejson.DecodeBytes(answer).Arr(func(d *wirejson.Decoder) error {
			listed++
			one, err := parseDocument(d)
			each(one)
			return err
		})
		if err != nil {
			return false, unusable("data", answer)
		}
		c.Reuse(answer)
		if offset += listed; listed < pageSize {
			return true, nil
		}
	}
}

func parseDocument(d *wirejson.Decoder) (one document, err error) {
	err = d.Obj(func(d *wirejson.Decoder, key string) (err error) {
		switch key {
		case "id":
			one.id, err = d.Str()
		case "name":
			one.name, err = d.Str()
		case "rawDataLocation":
			err = sdk.ReadText(d, &one.location)
		case "externalMetadata":
			one.labels, err = parseLabels(d)
		default:
			err = d.Skip()
		}
		return err
	})
	return one, err
}
