package main

import (
	"strings"
	"time"

	"github.com/memhost/memhost/abi/jsontext"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// What of an event is missing, and what a marker says was not stored.
const (
	partPrefix = "part " // and the digest of a verbatim part
	factPrefix = "fact " // and the text of an extracted fact
)

// listMax is the most that the self-hosted server lists; it has no pages. pageMax is the platform's largest page.
// gatewayMax is what is asked of the gateway, which has no limit of its own: an answer must fit into one.
const (
	listMax    = 1000
	pageMax    = 200
	gatewayMax = 5000
)

// found is what mem0 has of an event. whole: there are no other rows of it.
type found struct {
	rows  []*memory
	whole bool
}

// look finds the rows of an event. A search with its id as a filter finds them, but with an approximate index an empty answer proves nothing (upstream
// pgvector: hnsw filters behind the index). A list of the scope is exact up to 1000 rows, and needs no embedder.
func (b *backend) look(eventID string) (found, error) {
	if b.platform() {
		rows, count, err := b.listPlatform(1, pageMax, [2]string{keyEvent, eventID})
		return found{rows, err == nil && count <= int64(len(rows))}, err
	}
	if b.surface.gateway {
		// Filtered in the store, in no index's way, and without an embedder.
		rows, err := b.listFiltered([]filter{{keyEvent, sdk.Text(eventID)}}, gatewayMax)
		return found{rows, err == nil && len(rows) < gatewayMax}, err
	}
	rows, failed := b.searchEvent(eventID, listMax)
	if abi.CodeOf(failed) == abi.CodeIsolationBreach {
		return found{}, failed
	}
	if failed == nil && (b.exact() || len(rows) > 0 && len(missingParts("", rows)) == 0) {
		return found{rows, true}, nil
	}
	all, err := b.list(listMax)
	if err != nil {
		return found{}, err
	}
	listed := rows[:0:0]
	for _, m := range all {
		if m.label(keyEvent) == eventID {
			listed = append(listed, m)
		}
	}
	if len(all) < listMax {
		return found{listed, true}, nil
	}
	if len(rows) > len(listed) {
		listed = rows
	}
	return found{rows: listed}, nil
}

// searchEvent searches with the event's id as a filter. The query plays no part: threshold 0 lets every row through.
func (b *backend) searchEvent(eventID string, limit int64) ([]*memory, error) {
	var j jsontext.Encoder
	j.ObjStart()
	j.FieldStart("query")
	j.Str("memory")
	j.FieldStart("top_k")
	j.Int64(limit)
	j.FieldStart("threshold")
	j.Int(0)
	j.FieldStart("show_expired")
	j.Bool(true)
	j.FieldStart("filters")
	b.writeFilters(&j, []filter{{keyEvent, sdk.Text(eventID)}}, "")
	j.ObjEnd()
	body, err := b.send(request{route: b.searchRoute(), body: j.Bytes()})
	if err != nil {
		return nil, err
	}
	rows, _, err := b.readResults(b.searchRoute(), body)
	return rows, err
}

// listFiltered lists the scope's rows that fit, on the gateway.
func (b *backend) listFiltered(filters []filter, limit int64) ([]*memory, error) {
	var j jsontext.Encoder
	j.ObjStart()
	j.FieldStart("top_k")
	j.Int64(limit)
	j.FieldStart("show_expired")
	j.Bool(true)
	j.FieldStart("filters")
	b.writeFilters(&j, filters, "")
	j.ObjEnd()
	body, err := b.send(request{route: "list_filtered", body: j.Bytes()})
	if err != nil {
		return nil, err
	}
	rows, _, err := b.readResults("list_filtered", body)
	return rows, err
}

// list lists the scope on the self-hosted server, expired rows too: unordered, at most limit.
func (b *backend) list(limit int64) ([]*memory, error) {
	body, err := b.send(request{route: "list", query: []abi.QueryParam{{Key: "user_id", Value: b.ids.user}, {Key: "run_id", Value: b.ids.run},
		{Key: "top_k", Value: string(sdk.Number(limit))}, {Key: "show_expired", Value: "true"}}})
	if err != nil {
		return nil, err
	}
	rows, _, err := b.readResults("list", body)
	return rows, err
}

// listPlatform is one page of the scope's memories on the platform, those with a label where one is given, and how many there are in all.
func (b *backend) listPlatform(page, size int64, label [2]string) ([]*memory, int64, error) {
	body, err := b.platformPage(page, size, label)
	if err != nil {
		return nil, 0, err
	}
	return b.readResults("platform_list", body)
}

// platformPage is listPlatform as the platform answers it.
func (b *backend) platformPage(page, size int64, label [2]string) ([]byte, error) {
	var filters []filter
	if label[0] != "" {
		filters = []filter{{label[0], sdk.Text(label[1])}}
	}
	var j jsontext.Encoder
	j.ObjStart()
	j.FieldStart("filters")
	b.writeFilters(&j, filters, "")
	j.FieldStart("show_expired")
	j.Bool(true)
	j.ObjEnd()
	return b.send(request{route: "platform_list", body: j.Bytes(), query: pageQuery(page, size)})
}

// missingParts is what the rows of an event lack of its parts; digests "" takes them from the rows. Rows of an extracting add have no parts.
func missingParts(digests string, rows []*memory) []string {
	if digests == "" && len(rows) > 0 {
		digests = rows[0].label(keyParts)
	}
	have := map[string]int{}
	for _, m := range rows {
		have[digestOf(m.text)]++
	}
	var missing []string
	for _, digest := range strings.Fields(digests) {
		if have[digest] > 0 {
			have[digest]--
		} else {
			missing = append(missing, partPrefix+digest)
		}
	}
	return missing
}

// missingFacts is what markers name and no row has.
func missingFacts(markers []string, rows []*memory) []string {
	have := map[string]bool{}
	for _, m := range rows {
		have[m.text] = true
	}
	var missing []string
	for _, marker := range markers {
		if text, ok := strings.CutPrefix(marker, factPrefix); ok && !have[text] {
			missing = append(missing, marker)
		}
	}
	return missing
}

func idsOfRows(rows []*memory) []string {
	ids := make([]string, len(rows))
	for i, m := range rows {
		ids[i] = m.id
	}
	return ids
}

// findEvent says what mem0 has of an event. Absent means that all rows of the scope were seen, and that an earlier add can no longer land: mem0 works on after
// its caller has given up.
func findEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	b, err := open(c)
	if err != nil {
		return nil, err
	}
	look, err := b.look(r.EventID)
	if err != nil {
		return nil, err
	}
	missing := append(missingParts("", look.rows), missingFacts(r.Markers, look.rows)...)
	answer := &abi.FindEventAnswer{Found: "present", NativeIDs: idsOfRows(look.rows)}
	switch wait := b.landsWithin(r.SentAt); {
	case len(look.rows) == 0 && b.platform():
		return b.findJob(r, answer)
	case len(look.rows) > 0 && len(missing) == 0:
	case !look.whole:
		answer.Found = "unknown"
	case wait > 0:
		answer.Found, answer.RetryAfterMS = "unknown", &wait
	case len(look.rows) > 0:
		answer.Found, answer.Missing = "partial", missing
	default:
		answer.Found = "absent"
	}
	return answer, nil
}

// landsWithin is for how many ms more an add sent then may land; 0: no longer.
func (b *backend) landsWithin(sentAt string) int64 {
	sent, err := abi.ParseTime(sentAt)
	now, wrong := abi.ParseTime(b.Now)
	if err != nil || wrong != nil {
		return 1
	}
	return max(0, sent.Add(time.Duration(b.settings.addTimeoutS)*time.Second).Sub(now).Milliseconds())
}
