package main

import (
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/plugins/internal/wire"
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

// look finds the rows of an event. A search with its id as a filter finds them, but with an approximate index an empty
// answer proves nothing (upstream pgvector: hnsw filters after the index). A list of the scope is exact up to 1000
// rows, and needs no embedder.
func (b *backend) look(eventID string) (found, error) {
	event := filter{keyEvent, sdk.Text(eventID)}
	if b.platform() {
		rows, count, err := b.listPlatform(1, pageMax, event)
		return found{rows, err == nil && count <= int64(len(rows))}, err
	}
	if b.surface.gateway {
		// Filtered in the store, in no index's way, and without an embedder.
		rows, err := b.listFiltered(gatewayMax, event)
		return found{rows, err == nil && len(rows) < gatewayMax}, err
	}
	rows, failed := b.searchEvent(event, listMax)
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
	var listed []*memory
	for _, m := range all {
		if m.label(keyEvent) == eventID {
			listed = append(listed, m)
		}
	}
	if whole := len(all) < listMax; whole || len(listed) >= len(rows) {
		return found{listed, whole}, nil
	}
	return found{rows: rows}, nil
}

// searchEvent searches with the event's id as a filter. The query plays no part: threshold 0 lets every row through.
func (b *backend) searchEvent(event filter, limit int64) ([]*memory, error) {
	rows, _, _, err := b.rows(request{route: b.route("search"), body: wire.Object{"query", "memory", "top_k", limit,
		"threshold", 0, "show_expired", true, "filters", b.conditions([]filter{event}, "")}.JSON()})
	return rows, err
}

// listFiltered lists the scope's rows that fit, on the gateway.
func (b *backend) listFiltered(limit int64, filters ...filter) ([]*memory, error) {
	rows, _, _, err := b.rows(request{route: "list_filtered", body: wire.Object{"top_k", limit, "show_expired", true,
		"filters", b.conditions(filters, "")}.JSON()})
	return rows, err
}

// list lists the scope on the self-hosted server, expired rows too: unordered, at most limit.
func (b *backend) list(limit int64) ([]*memory, error) {
	rows, _, _, err := b.rows(request{route: "list", query: []abi.QueryParam{{Key: "user_id", Value: b.ids.user},
		{Key: "run_id", Value: b.ids.run},
		{Key: "top_k", Value: sdk.Itoa(limit)}, {Key: "show_expired", Value: "true"}}})
	return rows, err
}

// listPlatform is one page of the scope's memories on the platform, those that fit, and how many there are in all.
func (b *backend) listPlatform(page, size int64, filters ...filter) ([]*memory, int64, error) {
	rows, count, _, err := b.rows(b.platformPage(page, size, filters...))
	return rows, count, err
}

func (b *backend) platformPage(page, size int64, filters ...filter) request {
	return request{route: "platform_list", query: pageQuery(page, size),
		body: wire.Object{"filters", b.conditions(filters, ""), "show_expired", true}.JSON()}
}

// missingParts is what the rows of an event lack of its parts; digests "" takes them from the rows. Rows of an
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

// findEvent says what mem0 has of an event. Absent means that all rows of the scope were seen, and that an earlier add
// can no longer land: mem0 works on after its caller has given up.
func findEvent(b *backend, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	look, err := b.look(r.EventID)
	if err != nil {
		return nil, err
	}
	missing := append(missingParts("", look.rows), missingFacts(r.Markers, look.rows)...)
	answer := &abi.FindEventAnswer{Found: "present", NativeIDs: idsOfRows(look.rows)}
	wait := b.landsWithin(r.SentAt)
	if wait > 0 && b.surface.gateway && b.startedAfter(r.SentAt) {
		wait = 0
	}
	switch {
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

// startedAfter reports whether the gateway's process has started since an add was sent, so that the add can no longer
// land. Where it does not say for how long it has run, or does not answer, nothing is known.
func (b *backend) startedAfter(sentAt string) bool {
	sent, err := abi.ParseTime(sentAt)
	now, wrong := abi.ParseTime(b.Now)
	if err != nil || wrong != nil {
		return false
	}
	var uptime int64
	_, err = b.ask(request{route: "capabilities"}, "uptime_ms", &uptime)
	// Now is of before the question: the process has started at this time, or later.
	return err == nil && uptime > 0 && now.Add(-time.Duration(uptime)*time.Millisecond).After(sent)
}

// landsWithin is for how many ms more an add sent then may land; 0: no longer.
func (b *backend) landsWithin(sentAt string) int64 {
	sent, err := abi.ParseTime(sentAt)
	now, wrong := abi.ParseTime(b.Now)
	if err != nil || wrong != nil {
		return 1
	}
	return max(0, sent.Add(time.Duration(b.addTimeoutS)*time.Second).Sub(now).Milliseconds())
}
