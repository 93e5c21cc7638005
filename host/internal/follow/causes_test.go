package follow

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyTheNewestEventsKeepTheirCauses(t *testing.T) {
	header := func(span int) string { return fmt.Sprintf("00-%032x-%016x-01", 1, span) }
	batch := func(numbers ...int64) (list []archivedEvent) {
		for _, n := range numbers {
			list = append(list, archivedEvent{number: n})
		}
		return list
	}
	s := NewStore(Options{})
	require.Empty(t, s.causesOf(batch(1)))
	s.NoteCause(1, 3, header(1))
	s.NoteCause(4, 1, header(2))
	s.NoteCause(5, 1, "")
	s.NoteCause(6, 1, header(3)[:53]+"00") // not sampled
	require.Equal(t, []string{header(1), header(2)}, s.causesOf(batch(1, 2, 3, 4, 5, 6)))
	require.Empty(t, s.causesOf(batch(0, givenBase+1, 5, 6, 7)))
	s.NoteCause(1+maxCauses, 1, header(4))
	require.Equal(t, []string{header(4), header(1)}, s.causesOf(batch(1, 1+maxCauses, 2)))
}
