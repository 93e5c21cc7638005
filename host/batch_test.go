package host_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mixedBatch has turns 0 to n-1 of each person, ordered by turn, so that people are mixed.
func mixedBatch(people, n int, text func(person, turn int) string) *abi.EventBatch {
	b := new(abi.EventBatch)
	for turn := range n {
		for person := range people {
			e := host.Event(fmt.Sprint("e", turn), text(person, turn))
			e.UserID = fmt.Sprint("person ", person)
			b.Events = append(b.Events, *e)
		}
	}
	return b
}

func TestABatchOfManyPeopleKeepsEachOnesOrder(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	const people, turns = 40, 5
	b := mixedBatch(people, turns, func(person, turn int) string {
		if turn == 3 && person%2 == 1 {
			return "fail backend no"
		}
		return fmt.Sprintf("append turns %d-%d", person, turn)
	})
	for i := range b.Events { // without agent_scoped, all agents of a person share the scope
		b.Events[i].AgentID = fmt.Sprint("agent ", i/people%2)
	}
	out, err := s.RecordEvents(t.Context(), b)
	require.NoError(t, err)
	for i, r := range out.Receipts {
		if person, turn := i%people, i/people; turn == 3 && person%2 == 1 {
			host.RequireCode(t, r.Error, abi.CodeBackend)
			continue
		}
		require.Nil(t, r.Error, "event %d", i)
		require.Equal(t, b.Events[i].EventID, r.Receipt.EventID)
	}
	for person := range people {
		r, err := s.Retrieve(t.Context(), &abi.RetrieveRequest{Query: "read turns", SessionID: "s",
			Scope: abi.MemoryScope{RunID: "run", PersonaID: fmt.Sprint("person ", person)}})
		require.NoError(t, err)
		want, kept := "", 0
		for turn := range turns {
			if turn == 3 && person%2 == 1 {
				continue
			}
			kept++
			want += fmt.Sprintf("%d=%d-%d ", kept, person, turn)
		}
		assert.JSONEq(t, fmt.Sprintf("%q", want), string(r.Raw.Calls[0].Body))
	}
}

// blockingBackend is a backend that blocks its callers. Requests for /items are answered at once.
type blockingBackend struct {
	want        int
	there       chan struct{} // closed when this many requests wait at once
	answer      chan struct{} // closed when they get their answers
	mu          sync.Mutex
	inside, top int
}

func newCrowd(t *testing.T, want int) (c *blockingBackend, url string) {
	c = &blockingBackend{want: want, there: make(chan struct{}), answer: make(chan struct{})}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return c, server.URL
}

func (c *blockingBackend) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/items/") {
		return
	}
	c.mu.Lock()
	if c.inside++; c.inside == c.want && c.top < c.want {
		close(c.there)
	}
	c.top = max(c.top, c.inside)
	c.mu.Unlock()
	select {
	case <-c.answer:
	case <-r.Context().Done():
	}
	c.mu.Lock()
	c.inside--
	c.mu.Unlock()
}

func TestABatchLeavesAnInstanceToOtherCallers(t *testing.T) {
	const pool = 4
	c, url := newCrowd(t, pool-1)
	s := host.OpenSlot(t, host.Open(t, host.Options{Limits: host.Limits{Pool: pool}}), withBackend(url))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var batch sync.WaitGroup
	batch.Go(func() {
		out, err := s.RecordEvents(ctx, mixedBatch(20, 1, func(int, int) string { return "http get" }))
		if assert.NoError(t, err) {
			for _, r := range out.Receipts {
				assert.Nil(t, r.Error)
			}
		}
	})
	<-c.there
	host.Retrieved(t, s, "http item id=other")
	close(c.answer)
	batch.Wait()
	assert.Equal(t, pool-1, c.top)
}

func TestABatchOfManyPeopleEndsWithItsContext(t *testing.T) {
	c, url := newCrowd(t, 1)
	s := host.OpenSlot(t, host.Open(t, host.Options{Limits: host.Limits{Pool: 1}}), withBackend(url))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-c.there
		cancel()
	}()
	out, err := s.RecordEvents(ctx, mixedBatch(5, 1, func(int, int) string { return "http get" }))
	require.NoError(t, err)
	for _, r := range out.Receipts {
		require.NotNil(t, r.Error)
		assert.Equal(t, abi.CodeTimeout, r.Error.Code)
	}
}

func TestARecordedBatchOfManyPeopleIsReplayed(t *testing.T) {
	path := recordCassette(t, host.Options{}, host.ProbeConfig(`{}`), func(s *host.Slot) {
		_, err := s.RecordEvents(t.Context(), mixedBatch(3, 3, func(person, turn int) string {
			return fmt.Sprintf("append turns %d-%d;random;now", person, turn)
		}))
		require.NoError(t, err)
	})
	requireSame(t, path, host.ProbeModule, 2)
}
