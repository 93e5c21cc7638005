package main

import (
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
	"github.com/memhost/memhost/sdk"
)

// Parts of an event that can be missing, as the answer and the markers name them.
const (
	partPrefix = "part " // followed by the digest of a verbatim part
	factPrefix = "fact " // followed by the text of an extracted fact
)

// listMax is the maximum that the self-hosted server lists; it has no pages. pageMax is the platform's largest page.
// gatewayMax is what is requested from the gateway, which has no limit itself: an answer must fit into one response.
const (
	listMax    = 1000
	pageMax    = 200
	gatewayMax = 5000
)

// eventRows are mem0's rows of an event. whole: it has no other rows.
type eventRows struct {
	rows     []*memory
	complete bool
}

// findRows finds the rows of an event. A search with its id as a filter finds them, but with an approximate index an
// empty answer proves nothing (upstream pgvector: hnsw filters after the index). A list of the scope is exact up to
// 1000 rows, and needs no embedder.
func (b *backend) findRows(eventID string) (eventRows, error) {
	event := filter{keyEvent, sdk.Text(eventID)}
	if b.platform() {
		rows, count, err := b.listPlatform(1, pageMax, event)
		return eventRows{rows, err == nil && count <= int64(len(rows))}, err
	}
	if b.surface.gateway {
		// The gateway filters in the store, without the index and without an embedder.
		rows, err := b.listFiltered(gatewayMax, event)
		return eventRows{rows, err == nil && len(rows) < gatewayMax}, err
	}
	rows, failed := b.searchEvent(event, listMax)
	if abi.CodeOf(failed) == abi.CodeIsolationBreach {
		return eventRows{}, failed
	}
	if failed == nil && (b.exact() || len(rows) > 0 && len(missingParts("", rows)) == 0) {
		return eventRows{rows, true}, nil
	}
	all, err := b.list(listMax)
	if err != nil {
		return eventRows{}, err
	}
	var listed []*memory
	for _, m := range all {
		if m.label(keyEvent) == eventID {
			listed = append(listed, m)
		}
	}
	if whole := len(all) < listMax; whole || len(listed) >= len(rows) {
		return eventRows{listed, whole}, nil
	}
	return eventRows{rows: rows}, nil
}

// searchEvent searches with the event's id as a filter. The query is irrelevant: threshold 0 accepts every row.
func (b *backend) searchEvent(event filter, limit int64) ([]*memory, error) {
	rows, _, _, err := b.rows(request{route: b.route("search"), body: wire.Object{"query", "memory", "top_k", limit,
		"threshold", 0, "show_expired", true, "filters", b.conditions([]filter{event}, "")}.JSON()})
	return rows, err
}

// listFiltered lists the scope's matching rows, on the gateway.
func (b *backend) listFiltered(limit int64, filters ...filter) ([]*memory, error) {
	rows, _, _, err := b.rows(request{route: "list_filtered", body: wire.Object{"top_k", limit, "show_expired", true,
		"filters", b.conditions(filters, "")}.JSON()})
	return rows, err
}

// list lists the scope on the self-hosted server, including expired rows, unordered, at most limit.
func (b *backend) list(limit int64) ([]*memory, error) {
	rows, _, _, err := b.rows(request{route: "list", query: []abi.QueryParam{{Key: "user_id", Value: b.ids.user},
		{Key: "run_id", Value: b.ids.run},
		{Key: "top_k", Value: sdk.Itoa(limit)}, {Key: "show_expired", Value: "true"}}})
	return rows, err
}

// listPlatform returns one page of the scope's matching memories on the platform, and their total number.
func (b *backend) listPlatform(page, size int64, filters ...filter) ([]*memory, int64, error) {
	rows, count, _, err := b.rows(b.platformPage(page, size, filters...))
	return rows, count, err
}

func (b *backend) platformPage(page, size int64, filters ...filter) request {
	return request{route: "platform_list", query: pageQuery(page, size),
		body: wire.Object{"filters", b.conditions(filters, ""), "show_expired", true}.JSON()}
}

// missingParts returns the parts of the event that its rows lack; digests "" takes them from the rows. Rows of an
// extracting add have no parts.
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

// missingFacts returns facts that markers name but no row has.
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

// findEvent reports which parts of an event mem0 has. Absent means that all rows of the scope were checked, and that an
// earlier add can no longer take effect: mem0 continues to work after its caller has given up.
func findEvent(b *backend, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	look, err := b.findRows(r.EventID)
	if err != nil {
		return nil, err
	}
	missing := append(missingParts("", look.rows), missingFacts(r.Markers, look.rows)...)
	answer := &abi.FindEventAnswer{Found: "present", NativeIDs: idsOfRows(look.rows)}
	wait := b.mayLandForMS(r.SentAt)
	if wait > 0 && b.surface.gateway && b.startedAfter(r.SentAt) {
		wait = 0
	}
	switch {
	case len(look.rows) == 0 && b.platform():
		return b.findJob(r, answer)
	case len(look.rows) > 0 && len(missing) == 0:
	case !look.complete:
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

// startedAfter reports whether the gateway's process started after an add was sent, so that the add can no longer take
// effect. It returns false if the gateway does not report its uptime, or does not answer.
func (b *backend) startedAfter(sentAt string) bool {
	sent, err := abi.ParseTime(sentAt)
	now, wrong := abi.ParseTime(b.Now)
	if err != nil || wrong != nil {
		return false
	}
	var uptime int64
	_, err = b.ask(request{route: "capabilities"}, "uptime_ms", &uptime)
	// Now was read before the request, so the process started at this time, or later.
	return err == nil && uptime > 0 && now.Add(-time.Duration(uptime)*time.Millisecond).After(sent)
}

// mayLandForMS returns for how many more ms an add sent at a time may still take effect; 0: it cannot.
func (b *backend) mayLandForMS(sentAt string) int64 {
	sent, err := abi.ParseTime(sentAt)
	now, wrong := abi.ParseTime(b.Now)
	if err != nil || wrong != nil {
		return 1
	}
	return max(0, sent.Add(time.Duration(b.addTimeoutS)*time.Second).Sub(now).Milliseconds())
}
