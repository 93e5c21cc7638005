package run

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/subject"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/plugins"
)

// Only no_memory's variant named tells the subject who the user is.
func TestASubjectIsToldOfTheUserInOneConditionOnly(t *testing.T) {
	path, p := synthetic(t)
	told := map[string]subject.User{}
	o := options(t, p)
	o.Seat = seatOf(func(s *scriptedSubject) { told[s.start.Scope.RunID+" "+s.start.Scope.PersonaID] = s.start.User })
	folder := filepath.Join(t.TempDir(), "run")
	r, err := Begin(folder, labOf(t, `subject: {seat: stub}
budgets: [200]
providers:
  - {label: named, memory: {condition: no_memory, conditions: {no_memory: {variant: named}}}}
  - {label: anonymized, memory: {condition: no_memory, conditions: {no_memory: {variant: anonymized}}}}
  - full_history`), path, p, o)
	require.NoError(t, err)
	require.NoError(t, Go(t.Context(), folder, r, p, o))
	require.Len(t, told, 6)
	for _, cell := range r.Cells {
		talks, _ := conversations(t, folder, cell)
		require.NotEmpty(t, talks)
		for _, persona := range p.Manifest.Personas {
			person, err := p.Person(persona.PersonaID)
			require.NoError(t, err)
			want := subject.User{}
			if cell.Label == "named" {
				want = subject.User{Name: person.Name, Profile: person.Profile}
				assert.Equal(t, person.Name+" ("+person.Profile+")", want.String())
			} else {
				assert.Equal(t, "the user", want.String())
			}
			assert.Equal(t, want, told[cell.RunID+" "+persona.PersonaID], cell.Label)
		}
		for _, talk := range talks {
			assert.Equal(t, cell.Label == "named", talk.Told != "", cell.Label)
		}
	}
}

func TestABudgetHasAMinimum(t *testing.T) {
	path, p := synthetic(t)
	folder := filepath.Join(t.TempDir(), "run")
	o := options(t, p)
	three := int64(3)
	o.Seat = seatOf(func(s *scriptedSubject) {
		assert.EqualValues(t, 9000, s.start.MinTokens)
		s.say = func(s *scriptedSubject, text string) error {
			q := &abi.RetrieveRequest{Query: text, Scope: s.start.Scope, SessionID: s.start.Session}
			if len(s.said) > 1 { // a subject may ask for less
				q.Budget.MinTokens = &three
			}
			_, err := s.slot.Retrieve(context.Background(), q)
			return err
		}
	})
	r, err := Begin(folder, labOf(t, "subject: {seat: stub}\nbudgets: [{min_tokens: 9000, max_tokens: 9500}, 200]\nproviders: [full_history]"),
		path, p, o)
	require.NoError(t, err)
	o.Seat = onlyAt(o.Seat, 9500)
	require.NoError(t, Go(t.Context(), folder, r, p, o))
	short := func(trace *abi.Trace) bool {
		require.NotNil(t, trace)
		return trace.BudgetShortfall != nil
	}
	retrievals := 0
	for _, l := range lines(t, folder, r.Cells[0]) {
		if l.Kind == journal.KindProbe {
			assert.Equal(t, l.Probe.Budget == 9500, short(l.Probe.Trace))
		}
		if l.Kind == journal.KindTranscript && l.Transcript.Budget == 9500 {
			for _, retrieval := range l.Transcript.Retrievals {
				retrievals++
				assert.Equal(t, retrieval.Turn == 1, short(retrieval.Trace))
			}
		}
	}
	assert.Positive(t, retrievals)
}

// onlyAt seats another subject, which only answers, under all budgets but one.
func onlyAt(seat subject.Seat, budget int64) subject.Seat {
	return budgetedSeat{seat, budget}
}

type budgetedSeat struct {
	subject.Seat
	budget int64
}

func (s budgetedSeat) Sit(ctx context.Context, start *subject.Start) (subject.Subject, error) {
	if start.MaxTokens != s.budget {
		return seatOf(func(*scriptedSubject) {}).Sit(ctx, start)
	}
	return s.Seat.Sit(ctx, start)
}

// In a column with memory.feedback, corrections reach apply_feedback after the wall has come down, once each, also
// across an interruption.
func TestCorrectionsAreFeedbackInAColumnOfTheirOwn(t *testing.T) {
	path, p := synthetic(t)
	backend := memos.New(memos.Options{})
	server := httptest.NewServer(backend)
	defer server.Close()
	o := options(t, p)
	o.Provider = func(entry *lab.Provider) (host.ProviderConfig, error) {
		m, ok := plugins.Find("memos")
		require.True(t, ok)
		return host.ProviderConfig{Name: "memos", Module: m.Wasm, Source: "builtin", Feedback: entry.Feedback(),
			Block: abi.Raw(`{"url":"` + server.URL + `","feedback_enabled":true}`)}, nil
	}
	o.Seat = seatOf(func(s *scriptedSubject) {
		s.say = func(s *scriptedSubject, text string) error {
			_, err := s.slot.Retrieve(context.Background(), &abi.RetrieveRequest{Query: text, Scope: s.start.Scope, SessionID: s.start.Session})
			return err
		}
	})
	folder := filepath.Join(t.TempDir(), "run")
	r, err := Begin(folder, labOf(t, `subject: {seat: stub, budgets: [200]}
budgets: [200, 300]
freshness: 0
providers:
  - {label: plain, memory: {backend: memos}}
  - {label: corrected, memory: {backend: memos, feedback: true}}`), path, p, o)
	require.NoError(t, err)
	ctx, interrupt := context.WithCancel(t.Context())
	passed := 0
	stopping := o
	stopping.Seat = seatOf(func(s *scriptedSubject) {
		if strings.Contains(s.start.Scope.RunID, "corrected") {
			if passed++; passed == 6 {
				s.say = func(*scriptedSubject, string) error { interrupt(); return context.Canceled }
			}
		}
	})
	require.ErrorIs(t, Go(ctx, folder, r, p, stopping), context.Canceled)
	require.NoError(t, Go(t.Context(), folder, r, p, o))
	for _, cell := range r.Cells {
		wall, ids, corrections := false, map[string]bool{}, 0
		for _, l := range lines(t, folder, cell) {
			switch l.Kind {
			case journal.KindWall:
				wall = l.Wall.Up
			case journal.KindTranscript:
				for i, x := range l.Transcript.Exchanges {
					if x.Action == journal.ActionCorrect && i+1 < len(l.Transcript.Exchanges) {
						corrections++
					}
				}
			case journal.KindNonceCheck:
				assert.Empty(t, l.NonceCheck.Breaches, "no nonce is part of a correction")
			case journal.KindFeedback:
				assert.False(t, wall)
				require.Nil(t, l.Feedback.Error)
				assert.NotEmpty(t, l.Feedback.Status)
				assert.False(t, ids[l.Feedback.FeedbackID])
				assert.NotRegexp(t, nonceForm, l.Feedback.Text)
				assert.Contains(t, l.Feedback.Text, "No. I want ")
				ids[l.Feedback.FeedbackID] = true
			}
		}
		require.Positive(t, corrections)
		if cell.Label == "plain" {
			assert.Empty(t, ids)
			continue
		}
		assert.NotEmpty(t, ids)
		assert.LessOrEqual(t, len(ids), corrections)
	}
}

func TestFeedbackNeedsAProviderThatTakesIt(t *testing.T) {
	path, p := synthetic(t)
	o := options(t, p)
	o.Seat = seatOf(func(*scriptedSubject) {})
	folder := filepath.Join(t.TempDir(), "run")
	r, err := Begin(folder, labOf(t, "subject: {seat: stub}\nbudgets: [200]\nproviders: [{label: x, memory: {condition: bm25, feedback: true}}]"), path, p, o)
	require.NoError(t, err)
	err = Go(t.Context(), folder, r, p, o)
	require.ErrorContains(t, err, "bm25 has no apply_feedback")
}
