package follow

import (
	"sync"

	"github.com/memhost/memhost/internal/base/traceparent"
)

// causesKept is how many archived events of this process keep the span that recorded them: one takes 40 bytes.
const causesKept = 4096

// causes are the spans in which the newest events were recorded, by the events' numbers in the archive. No store has
// them: what is delivered much later, or by another process, has no link to where it came from.
type causes struct {
	mu   sync.Mutex
	kept []cause // the event of number n is at n modulo causesKept
}

type cause struct {
	number int64
	span   traceparent.Parent
}

// NoteCause keeps which span recorded n events, the first of which has a number in the archive. A span that is not
// sampled reaches no collector, and is not kept.
func (s *Store) NoteCause(first int64, n int, header string) {
	span, ok := traceparent.Parse(header)
	if !ok || !span.Sampled {
		return
	}
	c := &s.causes
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = make([]cause, causesKept)
	}
	for number := first; number < first+int64(n); number++ {
		c.kept[number%causesKept] = cause{number, span}
	}
}

// causesOf are the headers of the spans that recorded events, each once.
func (s *Store) causesOf(batch []archivedEvent) (headers []string) {
	c := &s.causes
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[traceparent.Parent]bool{}
	for _, e := range batch {
		if e.number <= 0 || c.kept == nil { // given events were not recorded
			continue
		}
		if kept := c.kept[e.number%causesKept]; kept.number == e.number && !seen[kept.span] {
			seen[kept.span] = true
			headers = append(headers, kept.span.String())
		}
	}
	return headers
}
