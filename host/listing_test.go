package host_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
)

// allEvents reads every page of a list.
func allEvents(t *testing.T, s *host.Slot, q report.EventQuery) (list []report.ListedEvent, pages int) {
	t.Helper()
	for {
		page, err := s.ListEvents(context.Background(), q)
		require.NoError(t, err)
		list, pages = append(list, page.Events...), pages+1
		if page.Next == "" {
			return list, pages
		}
		q.After = page.Next
	}
}

func TestTheLedgerIsListedInPages(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	var want []string
	for i := range 7 {
		id := fmt.Sprintf("e%d", i)
		if i == 3 {
			host.RunCommands(t, s, id, "echo ask-"+id+"; status queued")
		} else {
			host.RunCommands(t, s, id, "append turns x")
		}
		want = append(want, id)
	}
	list, pages := allEvents(t, s, report.EventQuery{Scope: host.TestScope, Limit: 3})
	assert.Equal(t, 3, pages)
	var ids []string
	for _, e := range list {
		ids = append(ids, e.EventID)
		assert.NotEmpty(t, e.SentAt, e.EventID)
		assert.Equal(t, "s1", e.SessionID)
		require.NotNil(t, e.Receipt, e.EventID)
		assert.Equal(t, e.State, string(e.Receipt.Status))
		assert.Nil(t, e.Receipt.Trace)
	}
	assert.Equal(t, want, ids)
	for state, n := range map[string]int{"queued": 1, "committed": 6, "lost": 0, "sent": 0} {
		list, _ := allEvents(t, s, report.EventQuery{Scope: host.TestScope, States: []string{state}})
		assert.Len(t, list, n, state)
	}
	for session, n := range map[string]int{"s1": 7, "t": 0} {
		list, _ := allEvents(t, s, report.EventQuery{Scope: host.TestScope, SessionID: session,
			States: []string{"queued", "committed"}})
		assert.Len(t, list, n, session)
	}
	both, _ := allEvents(t, s, report.EventQuery{Scope: host.TestScope, States: []string{"queued", "committed"}, Limit: 2})
	assert.Len(t, both, 7)
	_, err := s.ListEvents(context.Background(), report.EventQuery{Scope: host.TestScope, States: []string{"queue"}})
	e := host.RequireCode(t, err, abi.CodeInvalidArgument, `"queue"`)
	assert.Equal(t, "did you mean queued?", e.Hint)
	_, err = s.ListEvents(context.Background(), report.EventQuery{})
	host.RequireCode(t, err, abi.CodeInvalidArgument, "run_id")
}

func TestAResetScopeListsItsNewGenerationOnly(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	ctx := context.Background()
	host.RunCommands(t, s, "old", "append turns x")
	_, err := s.ResetScope(ctx, host.TestScope)
	require.NoError(t, err)
	page, err := s.ListEvents(ctx, report.EventQuery{Scope: host.TestScope})
	require.NoError(t, err)
	assert.Empty(t, page.Events)
	assert.EqualValues(t, 2, page.Generation)
}

// TestScopesAreSearchedAndCounted: the counts are those of the present generation, after forgetting and a reset, too.
func TestScopesAreSearchedAndCounted(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	ctx := context.Background()
	record := func(run, id, text string) {
		e := host.Event(id, text)
		e.RunID = run
		_, err := s.RecordEvent(ctx, e)
		require.NoError(t, err)
	}
	for i := range 3 {
		record("Alpha", fmt.Sprint("e", i), "append turns x")
	}
	record("Alpha", "open", "echo ask-open; status queued")
	record("beta", "e0", "append turns x")
	list := func(q report.ScopeQuery) map[string]report.ListedScope {
		found := map[string]report.ListedScope{}
		for {
			page, err := s.ListScopes(ctx, q)
			require.NoError(t, err)
			for _, l := range page.Scopes {
				found[l.Scope.RunID] = l
			}
			if q.After = page.Next; q.After == "" {
				return found
			}
		}
	}
	all := list(report.ScopeQuery{Counts: true})
	require.Len(t, all, 2)
	assert.EqualValues(t, 4, *all["Alpha"].Events)
	assert.EqualValues(t, 1, *all["beta"].Events)
	events, _ := allEvents(t, s, report.EventQuery{Scope: all["Alpha"].Scope})
	require.Len(t, events, 4)
	last := slices.MaxFunc(events, func(a, b report.ListedEvent) int { return strings.Compare(a.SentAt, b.SentAt) })
	for _, e := range events {
		assert.Len(t, e.SentAt, len("2026-03-01T09:00:00.000Z"), "equal lengths, or .12Z would be sorted after .121Z")
	}
	assert.Equal(t, last.SentAt, all["Alpha"].LastAt)

	plain := list(report.ScopeQuery{})
	assert.Nil(t, plain["Alpha"].Events, "counting is asked for")
	assert.Empty(t, plain["Alpha"].LastAt)
	for contains, want := range map[string][]string{"alpha": {"Alpha"}, "TA / ": {"beta"}, "a": {"Alpha", "beta"}, "none": nil,
		"lpha / " + host.TestScope.PersonaID: {"Alpha"}} {
		found := list(report.ScopeQuery{Contains: contains, Limit: 1})
		assert.ElementsMatch(t, want, slices.Collect(maps.Keys(found)), contains)
	}
	assert.Equal(t, []string{"Alpha"}, slices.Collect(maps.Keys(list(report.ScopeQuery{OnlyOpen: true}))))

	_, err := s.ResetScope(ctx, all["Alpha"].Scope)
	require.NoError(t, err)
	assert.EqualValues(t, 0, *list(report.ScopeQuery{Counts: true})["Alpha"].Events)
	record("Alpha", "new", "append turns x")
	assert.EqualValues(t, 1, *list(report.ScopeQuery{Counts: true})["Alpha"].Events)
}

func TestScopesAreListedInPagesWithWhatIsOpen(t *testing.T) {
	s := host.ProbeSlot(t, `{}`)
	ctx := context.Background()
	var want []string
	for i := range 5 {
		e := host.Event("e", "echo ask-e; status queued")
		e.RunID = fmt.Sprintf("run-%d", i)
		want = append(want, e.RunID)
		_, err := s.RecordEvent(ctx, e)
		require.NoError(t, err)
	}
	var runs []string
	q := report.ScopeQuery{Limit: 2}
	for {
		page, err := s.ListScopes(ctx, q)
		require.NoError(t, err)
		assert.LessOrEqual(t, len(page.Scopes), 2)
		for _, sc := range page.Scopes {
			runs = append(runs, sc.Scope.RunID)
			assert.EqualValues(t, 1, sc.Generation)
			assert.EqualValues(t, 1, sc.Queued)
			assert.Zero(t, sc.Pending+sc.Lost)
		}
		if page.Next == "" {
			break
		}
		q.After = page.Next
	}
	slices.Sort(runs)
	assert.Equal(t, want, runs)
	for _, cursor := range []string{"x", "00"} {
		_, err := s.ListScopes(ctx, report.ScopeQuery{After: cursor})
		host.RequireCode(t, err, abi.CodeInvalidArgument, "after")
	}
}
