package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/journal"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/subject"
	"github.com/memhost/memhost/internal/doors/client"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
)

// scriptedSubject is a subject in this process whose behaviour a test defines.
type scriptedSubject struct {
	start *subject.Start
	slot  *client.Client
	// say is called with each text; its error counts as the subject's.
	say func(p *scriptedSubject, text string) error
	// end is called at the end.
	end  func(p *scriptedSubject)
	said []string
}

// seatOf is a seat for planted subjects.
type seatOf func(p *scriptedSubject)

func (seatOf) Kind() string { return "planted" }

func (s seatOf) Sit(_ context.Context, start *subject.Start) (subject.Subject, error) {
	slot, err := client.New(start.Door.HTTP, start.Door.Token)
	if err != nil {
		return nil, err
	}
	p := &scriptedSubject{start: start, slot: slot}
	s(p)
	return p, nil
}

func (p *scriptedSubject) Say(_ context.Context, text string) (*subject.Answer, error) {
	p.said = append(p.said, text)
	if p.say != nil {
		if err := p.say(p, text); err != nil {
			return nil, err
		}
	}
	return &subject.Answer{Text: "I do not know that."}, nil
}

func (p *scriptedSubject) End(context.Context) []journal.Breach {
	if p.end != nil {
		p.end(p)
	}
	return nil
}

// event is the event that the subject records about what was said.
func (p *scriptedSubject) event(text string) *abi.MemoryEvent {
	return &abi.MemoryEvent{EventID: fmt.Sprintf("%s-%d-%d", p.start.Session, len(p.said), len(text)), RunID: p.start.Scope.RunID,
		UserID: p.start.Scope.PersonaID, SessionID: p.start.Session, TurnID: "1", Timestamp: "2026-03-01T10:00:00Z",
		Messages: []abi.Message{{Role: abi.RoleUser, Content: &text}}}
}

func (p *scriptedSubject) record(text string) (*abi.WriteReceipt, error) {
	return p.slot.RecordEvent(context.Background(), p.event(text))
}

// conversed runs a lab with a planted subject and returns its transcripts and nonce checks, in the journal's order.
func conversed(t *testing.T, o Options, path string, p *pack.Pack, providers string, seat subject.Seat) ([]*journal.Transcript, []*journal.NonceCheck) {
	t.Helper()
	run := filepath.Join(t.TempDir(), "run")
	o.Seat = seat
	r, err := Begin(run, labOf(t, "subject: {seat: stub}\nbudgets: [200]\nproviders: "+providers), path, p, o)
	require.NoError(t, err)
	require.NoError(t, Go(t.Context(), run, r, p, o))
	return conversations(t, run, r.Cells[0])
}

func conversations(t *testing.T, run string, c *rundir.Cell) (talks []*journal.Transcript, checks []*journal.NonceCheck) {
	for _, l := range lines(t, run, c) {
		switch l.Kind {
		case journal.KindTranscript:
			talks = append(talks, l.Transcript)
		case journal.KindNonceCheck:
			checks = append(checks, l.NonceCheck)
		}
	}
	return talks, checks
}

// breaches returns the kinds of breaches that a run reports, once each, by where they were found.
func breaches(talks []*journal.Transcript, checks []*journal.NonceCheck) (now, later map[string]string) {
	now, later = map[string]string{}, map[string]string{}
	for _, t := range talks {
		for _, b := range t.Breaches {
			now[b.Kind] = b.Detail
		}
	}
	for _, c := range checks {
		for _, b := range c.Breaches {
			later[b.Kind] = b.Detail
		}
	}
	return now, later
}

func TestAnHonestSubjectBreachesNothing(t *testing.T) {
	path, p := synthetic(t)
	var receipts atomic.Int64
	talks, checks := conversed(t, options(t, p), path, p, "[full_history]", seatOf(func(s *scriptedSubject) {
		s.say = func(s *scriptedSubject, text string) error {
			for _, q := range []*abi.RetrieveRequest{{Query: text, Scope: s.start.Scope, SessionID: s.start.Session}} {
				if _, err := s.slot.Retrieve(context.Background(), q); err != nil {
					return err
				}
			}
			receipt, err := s.record(text)
			if err == nil && receipt.Status == abi.StatusSkippedReadOnly {
				receipts.Add(1)
			}
			return err
		}
		s.end = func(s *scriptedSubject) { // its queue, which it delivers before it exits: the wall is still raised
			receipt, err := s.record("from the queue")
			if assert.NoError(t, err) {
				assert.Equal(t, abi.StatusSkippedReadOnly, receipt.Status)
			}
		}
	}))
	now, later := breaches(talks, checks)
	assert.Empty(t, now)
	assert.Empty(t, later)
	require.NotEmpty(t, talks)
	assert.Len(t, checks, 6) // 2 people, 3 sessions
	nonces := 0
	for _, c := range checks {
		assert.Nil(t, c.Error)
		nonces += c.Nonces
	}
	assert.EqualValues(t, nonces, receipts.Load())
	for _, talk := range talks {
		require.NotEmpty(t, talk.Exchanges)
		assert.Equal(t, len(talk.Exchanges), len(talk.Retrievals))
		for i, r := range talk.Retrievals {
			assert.Equal(t, i+1, r.Turn)
			assert.Zero(t, r.MaxTokens)
			require.NotNil(t, r.Trace)
			assert.NotEmpty(t, r.ContextSHA256)
		}
	}
}

func TestPlantedBreachesAreFound(t *testing.T) {
	path, p := synthetic(t)
	var kept *abi.MemoryEvent
	put := func(s *scriptedSubject, path, body string) {
		request, _ := http.NewRequest(http.MethodPut, s.start.Door.HTTP+path, strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+s.start.Door.Token)
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
		}
	}
	for name, c := range map[string]struct {
		plant      func(s *scriptedSubject)
		now, later string
	}{
		"lowers the wall": {func(s *scriptedSubject) {
			s.say = func(s *scriptedSubject, _ string) error { put(s, "/v1/mode", `{"read_only":false}`); return nil }
		}, "mode", ""},
		"uses another scope": {func(s *scriptedSubject) {
			s.say = func(s *scriptedSubject, text string) error {
				e := s.event(text)
				e.UserID = "somebody-else"
				_, err := s.slot.RecordEvent(context.Background(), e)
				if err == nil {
					return fmt.Errorf("it was recorded")
				}
				return nil
			}
		}, "other_scope", ""},
		"reads another scope": {func(s *scriptedSubject) {
			s.say = func(s *scriptedSubject, text string) error {
				scope := s.start.Scope
				scope.PersonaID = "somebody-else"
				_, _ = s.slot.Retrieve(context.Background(), &abi.RetrieveRequest{Query: text, Scope: scope, SessionID: s.start.Session})
				return nil
			}
		}, "other_scope", ""},
		"resets": {func(s *scriptedSubject) {
			s.say = func(s *scriptedSubject, _ string) error {
				_, _ = s.slot.ResetScope(context.Background(), s.start.Scope)
				return nil
			}
		}, "forbidden_call", ""},
		"records after the wall": {func(s *scriptedSubject) {
			var last string
			s.say = func(_ *scriptedSubject, text string) error { last = text; return nil }
			s.end = func(s *scriptedSubject) {
				// A process that the subject left behind, which sends after the conversation is over.
				go func() {
					for {
						if _, err := s.record(last); err != nil {
							return
						}
					}
				}()
			}
		}, "", "late_delivery"},
		"delivers a kept queue late": {func(s *scriptedSubject) {
			s.say = func(s *scriptedSubject, text string) error {
				if kept != nil {
					_, err := s.record(*kept.Messages[0].Content)
					return err
				}
				kept = s.event(text)
				return nil
			}
		}, "late_delivery", ""},
	} {
		t.Run(name, func(t *testing.T) {
			talks, checks := conversed(t, options(t, p), path, p, "[full_history]", seatOf(c.plant))
			now, later := breaches(talks, checks)
			if c.now != "" {
				assert.Contains(t, now, c.now)
			}
			if c.later != "" {
				assert.Contains(t, later, c.later)
			}
			assert.NotContains(t, later, "nonce_found", "nothing came through")
			assert.NotContains(t, now, "recorded", "nothing came through")
		})
	}
}

// A subject that writes directly to the backend: only the nonce reveals it.
func TestWhatASubjectWritesPastTheHostIsFound(t *testing.T) {
	path, p := synthetic(t)
	backend := mem0.New(mem0.Options{})
	var last atomic.Pointer[[]byte] // what the host sent to record an event
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost && r.URL.Path == "/memories" {
			last.Store(&body)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		backend.ServeHTTP(w, r)
	}))
	defer server.Close()
	o := options(t, p)
	o.Provider = mem0At(t, server.URL)
	talks, checks := conversed(t, o, path, p, "[mem0]", seatOf(func(s *scriptedSubject) {
		s.say = func(_ *scriptedSubject, text string) error {
			var body map[string]any
			if err := json.Unmarshal(*last.Load(), &body); err != nil {
				return err
			}
			body["messages"] = []any{map[string]any{"role": "user", "content": text}}
			forged, err := json.Marshal(body)
			if err != nil {
				return err
			}
			response, err := http.Post(server.URL+"/memories", "application/json", bytes.NewReader(forged))
			if err == nil {
				err = response.Body.Close()
			}
			return err
		}
	}))
	now, later := breaches(talks, checks)
	assert.Empty(t, now)
	assert.Contains(t, later, "nonce_found")
}

// A run that is killed during a conversation starts that one over, repeats no other, and ends like one that was not
// killed.
func TestAnInterruptedConversationIsBegunAnew(t *testing.T) {
	path, p := synthetic(t)
	run := filepath.Join(t.TempDir(), "run")
	o := options(t, p)
	sat := map[string]int{}
	ctx, interrupt := context.WithCancel(t.Context())
	o.Seat = seatOf(func(s *scriptedSubject) {
		sat[s.start.Session]++
		if len(sat) == 2 && sat[s.start.Session] == 1 {
			s.say = func(*scriptedSubject, string) error { interrupt(); return context.Canceled }
		}
	})
	l := labOf(t, "subject: {seat: stub}\nbudgets: [200]\nproviders: [full_history]")
	r, err := Begin(run, l, path, p, o)
	require.NoError(t, err)
	require.ErrorIs(t, Go(ctx, run, r, p, o), context.Canceled)
	left := filepath.Join(r.Cells[0].Folder(run), workspaces, "left")
	require.NoError(t, os.MkdirAll(left, 0o755)) // as kill -9 would leave it
	require.NoError(t, Go(t.Context(), run, r, p, o))
	require.NoDirExists(t, left)
	resumed, checks := conversations(t, run, r.Cells[0])
	once := map[string]bool{}
	for _, talk := range resumed {
		require.False(t, once[talk.ProbeID], talk.ProbeID)
		once[talk.ProbeID] = true
	}
	again := 0
	for _, n := range sat {
		again += n - 1
	}
	assert.Equal(t, 1, again)

	o.Seat = seatOf(func(*scriptedSubject) {})
	whole, wholeChecks := conversed(t, o, path, p, "[full_history]", o.Seat)
	require.Len(t, resumed, len(whole))
	for i := range whole {
		for j := range whole[i].Exchanges {
			whole[i].Exchanges[j].LatencyMS, resumed[i].Exchanges[j].LatencyMS = 0, 0
		}
		assert.Equal(t, whole[i], resumed[i])
	}
	assert.Equal(t, wholeChecks, checks)
}

// A failing subject only affects its own conversation.
func TestASubjectThatFailsLosesNothing(t *testing.T) {
	path, p := synthetic(t)
	n := 0
	talks, checks := conversed(t, options(t, p), path, p, "[full_history]", seatOf(func(s *scriptedSubject) {
		n++
		if n%2 == 0 {
			s.say = func(*scriptedSubject, string) error {
				return subject.Failed(abi.CodeTimeout, "the subject did not answer in 1s")
			}
		}
	}))
	require.Len(t, checks, 6)
	ended := map[journal.Ended]int{}
	for _, talk := range talks {
		ended[talk.Ended]++
		require.Equal(t, talk.Ended == journal.EndedSubject, talk.Error != nil)
	}
	assert.Equal(t, len(talks)/2, ended[journal.EndedSubject])
	assert.Equal(t, len(talks), ended[journal.EndedSubject]+ended[journal.EndedAccepted]+ended[journal.EndedGivenUp])
}

func TestTheBudgetHoldsWhateverASubjectAsksFor(t *testing.T) {
	path, p := synthetic(t)
	for _, asked := range []int64{0, 100, 100_000} {
		talks, _ := conversed(t, options(t, p), path, p, "[full_history]", seatOf(func(s *scriptedSubject) {
			s.say = func(s *scriptedSubject, text string) error {
				q := &abi.RetrieveRequest{Query: text, Scope: s.start.Scope, SessionID: s.start.Session}
				if asked > 0 {
					q.Budget.MaxTokens = &asked
				}
				_, err := s.slot.Retrieve(context.Background(), q)
				return err
			}
		}))
		for _, talk := range talks {
			for _, r := range talk.Retrievals {
				assert.Equal(t, asked, r.MaxTokens)
				require.Nil(t, r.Error)
				require.NotNil(t, r.Trace.TokenCount)
				assert.LessOrEqual(t, *r.Trace.TokenCount, int64(200))
			}
		}
	}
}
