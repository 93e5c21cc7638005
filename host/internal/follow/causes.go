package follow

import (
	"sync"

	"github.com/memhost/memhost/internal/base/traceparent"
)

// maxCauses is for how many archived events this process remembers the span that recorded them, at 40 bytes each.
const maxCauses = 4096

// causes are the spans in which the newest events were recorded, by the events' numbers in the archive. They are not
// stored: events that are delivered much later, or by another process, have no link to their span.
type causes struct {
	mu   sync.Mutex
	ring []cause // number n is at index n modulo maxCauses
}

type cause struct {
	number int64
	span   traceparent.Parent
}

// NoteCause remembers which span recorded n events, whose first number in the archive is first. Spans that are not
// sampled are skipped, because they reach no collector.
func (s *Store) NoteCause(first int64, n int, header string) {
	span, ok := traceparent.Parse(header)
	if !ok || !span.Sampled {
		return
	}
	c := &s.causes
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ring == nil {
		c.ring = make([]cause, maxCauses)
	}
	for number := first; number < first+int64(n); number++ {
		c.ring[number%maxCauses] = cause{number, span}
	}
}

// causesOf returns the traceparent headers of the spans that recorded events, each once.
func (s *Store) causesOf(batch []archivedEvent) (headers []string) {
	c := &s.causes
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[traceparent.Parent]bool{}
	for _, e := range batch {
		if e.number <= 0 || c.ring == nil { // given events were not recorded
			continue
		}
		if cause := c.ring[e.number%maxCauses]; cause.number == e.number && !seen[cause.span] {
			seen[cause.span] = true
			headers = append(headers, cause.span.String())
		}
	}
	return headers
}
