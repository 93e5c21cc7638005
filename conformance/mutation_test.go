package conformance

import (
	"bytes"
	"fmt"
	"html"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
)

// mutant makes one mistake in the name of a provider: it stands between the host and the guest. A new one is made for
// each run.
type mutant struct {
	// made is set when the mistake has changed something.
	made atomic.Bool
}

// codable is what the contract's types are.
type codable[T any] interface {
	*T
	abi.Encodable
	abi.Decodable
}

// edit changes a document of a type.
func edit[T any, P codable[T]](text []byte, change func(P)) []byte {
	v := P(new(T))
	if abi.Unmarshal(text, v) != nil {
		return text
	}
	change(v)
	return abi.Marshal(v)
}

// enterer is what a mistake does with a call.
type enterer func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error)

// changeRequest changes what operations are asked; ops "" means all.
func changeRequest(ops string, change func(*abi.Envelope)) func(*mutant) enterer {
	return func(m *mutant) enterer {
		return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
			if ops != "" && !strings.Contains(" "+ops+" ", " "+e.Op+" ") {
				return enter(e)
			}
			other := *e
			change(&other)
			if !bytes.Equal(abi.Marshal(&other), abi.Marshal(e)) {
				m.made.Store(true)
			}
			return enter(&other)
		}
	}
}

// body changes the request of an operation.
func body[T any, P codable[T]](op string, change func(P)) func(*mutant) enterer {
	return changeRequest(op, func(e *abi.Envelope) { e.Body = edit[T, P](e.Body, change) })
}

// events changes the turns that are recorded, one by one or in batches.
func events(change func(*abi.MemoryEvent)) func(*mutant) enterer {
	return changeRequest("record_event record_events", func(e *abi.Envelope) {
		if e.Op == abi.OpRecordEvent {
			e.Body = edit(e.Body, change)
			return
		}
		e.Body = edit(e.Body, func(b *abi.EventBatch) {
			for i := range b.Events {
				change(&b.Events[i])
			}
		})
	})
}

// contents changes the messages of events.
func contents(change func(string) string) func(*mutant) enterer {
	return events(func(e *abi.MemoryEvent) {
		for i, m := range e.Messages {
			if m.Content != nil {
				text := change(*m.Content)
				e.Messages[i].Content = &text
			}
		}
	})
}

// answers changes the answer of an operation.
func answers[T any, P codable[T]](op string, change func(*abi.Envelope, P)) func(*mutant) enterer {
	return func(m *mutant) enterer {
		return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
			answer, isError, err := enter(e)
			if err != nil || isError || e.Op != op {
				return answer, isError, err
			}
			changed := edit(answer, func(v P) { change(e, v) })
			if !bytes.Equal(changed, edit(answer, func(P) {})) {
				m.made.Store(true)
			}
			return changed, false, nil
		}
	}
}

// receipts changes the receipts of turns, also those of a batch.
func receipts(change func(*abi.WriteReceipt)) func(*mutant) enterer {
	return func(m *mutant) enterer {
		one := answers(abi.OpRecordEvent, func(_ *abi.Envelope, r *abi.WriteReceipt) { change(r) })(m)
		many := answers(abi.OpRecordEvents, func(_ *abi.Envelope, b *abi.BatchReceipts) {
			for _, r := range b.Receipts {
				if r.Receipt != nil {
					change(r.Receipt)
				}
			}
		})(m)
		return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
			return one(e, func(e *abi.Envelope) ([]byte, bool, error) { return many(e, enter) })
		}
	}
}

// found changes retrievals.
func found(change func(*abi.RetrieveResult)) func(*mutant) enterer {
	return answers(abi.OpRetrieve, func(_ *abi.Envelope, r *abi.RetrieveResult) { change(r) })
}

// foundAndFormatted changes evidence and text of retrieve and of format_context alike.
func foundAndFormatted(change func(text *string, evidence []abi.Evidence)) func(*mutant) enterer {
	return func(m *mutant) enterer {
		one := found(func(r *abi.RetrieveResult) { change(&r.FormattedContext, r.Evidence) })(m)
		two := answers(abi.OpFormatContext, func(_ *abi.Envelope, r *abi.FormatResult) {
			change(&r.FormattedContext, r.Evidence)
		})(m)
		return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
			return one(e, func(e *abi.Envelope) ([]byte, bool, error) { return two(e, enter) })
		}
	}
}

// wrongErrors changes error objects.
func wrongErrors(change func(*abi.Envelope, *abi.Error)) func(*mutant) enterer {
	return func(m *mutant) enterer {
		return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
			answer, isError, err := enter(e)
			if err != nil || !isError {
				return answer, isError, err
			}
			changed := edit(answer, func(x *abi.Error) { change(e, x) })
			if !bytes.Equal(changed, answer) {
				m.made.Store(true)
			}
			return changed, true, nil
		}
	}
}

// instead answers an operation without the guest where it likes to.
func instead(op string, answer func(e *abi.Envelope, enter host.EnterGuest) abi.Encodable) func(*mutant) enterer {
	return func(m *mutant) enterer {
		return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
			if e.Op != op {
				return enter(e)
			}
			switch v := answer(e, enter).(type) {
			case nil:
				return enter(e)
			case *abi.Error:
				m.made.Store(true)
				return abi.Marshal(v), true, nil
			default:
				m.made.Store(true)
				return abi.Marshal(v), false, nil
			}
		}
	}
}

// traps fails as a trap does where a request is of a kind.
func traps(ops string, when func(*abi.Envelope) bool) func(*mutant) enterer {
	return func(m *mutant) enterer {
		return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
			if !strings.Contains(" "+ops+" ", " "+e.Op+" ") || !when(e) {
				return enter(e)
			}
			m.made.Store(true)
			return nil, false, abi.NewError(abi.CodeInternal, "plugin: unreachable")
		}
	}
}

const writing = "record_event record_events"

// trapsOn traps on turns of a kind.
func trapsOn(when func(*abi.MemoryEvent) bool) func(*mutant) enterer {
	return traps(writing, func(e *abi.Envelope) bool {
		list := new(abi.EventBatch)
		if e.Op == abi.OpRecordEvent {
			one := new(abi.MemoryEvent)
			if abi.Unmarshal(e.Body, one) == nil {
				list.Events = append(list.Events, *one)
			}
		} else {
			_ = abi.Unmarshal(e.Body, list)
		}
		for i := range list.Events {
			if when(&list.Events[i]) {
				return true
			}
		}
		return false
	})
}

func anyMessage(e *abi.MemoryEvent, is func(*abi.Message) bool) bool {
	for i := range e.Messages {
		if is(&e.Messages[i]) {
			return true
		}
	}
	return false
}

// scopes changes whose memory is meant, and gives the context its scope back: the mistake is in native ids only.
func scopes(change func(*abi.Envelope)) func(*mutant) enterer {
	return func(m *mutant) enterer {
		return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
			if e.Op == abi.OpHealth {
				return enter(e)
			}
			other := *e
			change(&other)
			if other.Scope == e.Scope && other.Generation == e.Generation {
				return enter(e)
			}
			m.made.Store(true)
			answer, isError, err := enter(&other)
			if err != nil || isError {
				return answer, isError, err
			}
			switch e.Op {
			case abi.OpRetrieve:
				return edit(answer, func(r *abi.RetrieveResult) {
					rescope(&r.FormattedContext, r.Evidence, e.Scope)
				}), false, nil
			case abi.OpFormatContext:
				return edit(answer, func(r *abi.FormatResult) {
					rescope(&r.FormattedContext, r.Evidence, e.Scope)
				}), false, nil
			}
			return answer, false, nil
		}
	}
}

// rescope writes another scope into the element of a context.
func rescope(text *string, evidence []abi.Evidence, s abi.MemoryScope) {
	before, rest, ok := strings.Cut(*text, ` scope="`)
	said, after, ok2 := strings.Cut(rest, `"`)
	if !ok || !ok2 {
		return
	}
	meant := html.EscapeString(s.RunID + "/" + s.PersonaID)
	*text = before + ` scope="` + meant + `"` + after
	moved := int64(len(meant) - len(said))
	for i := range evidence {
		if at := evidence[i].Shown; at != nil {
			at.Start, at.End = at.Start+moved, at.End+moved
		}
	}
}

// persona and run change ids.
func ids(change func(run, persona string) (string, string)) func(*mutant) enterer {
	return scopes(func(e *abi.Envelope) { e.Scope.RunID, e.Scope.PersonaID = change(e.Scope.RunID, e.Scope.PersonaID) })
}

func both(change func(string) string) func(*mutant) enterer {
	return ids(func(run, persona string) (string, string) { return change(run), change(persona) })
}

func joinedBy(separator string) func(*mutant) enterer {
	return ids(func(run, persona string) (string, string) { return run + separator + persona, "x" })
}

// cloneAnswer keeps an answer beyond the next call.
func cloneAnswer(answer []byte, isError bool, err error) ([]byte, bool, error) {
	return bytes.Clone(answer), isError, err
}

// batch changes which events of a batch are recorded; the receipts of the others are made up.
func batch(keep func(i, n int, e *abi.MemoryEvent) bool) func(*mutant) enterer {
	return func(m *mutant) enterer {
		return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
			all := new(abi.EventBatch)
			if e.Op != abi.OpRecordEvents || abi.Unmarshal(e.Body, all) != nil {
				return enter(e)
			}
			kept := new(abi.EventBatch)
			for i := range all.Events {
				if keep(i, len(all.Events), &all.Events[i]) {
					kept.Events = append(kept.Events, all.Events[i])
				}
			}
			if len(kept.Events) == len(all.Events) {
				return enter(e)
			}
			m.made.Store(true)
			other := *e
			other.Body = abi.Marshal(kept)
			answer, isError, err := enter(&other)
			if err != nil || isError {
				return answer, isError, err
			}
			return edit(answer, func(r *abi.BatchReceipts) {
				list, next := []abi.ReceiptOrError{}, 0
				for i := range all.Events {
					if next < len(r.Receipts) && keep(i, len(all.Events), &all.Events[i]) {
						list = append(list, r.Receipts[next])
						next++
						continue
					}
					list = append(list, abi.ReceiptOrError{Receipt: inventedReceipt(&all.Events[i])})
				}
				r.Receipts = list
			}), false, nil
		}
	}
}

// inventedReceipt is a receipt for what was not recorded.
func inventedReceipt(e *abi.MemoryEvent) *abi.WriteReceipt {
	return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted, NativeIDs: []string{"made-up-" + e.EventID},
		NativeIDsKind: abi.NativeIDsFinal}
}

// loses answers committed to some single turns and records nothing.
func loses(make func() func(*abi.MemoryEvent) bool) func(*mutant) enterer {
	return func(m *mutant) enterer {
		lost := make()
		var mu sync.Mutex
		return instead(abi.OpRecordEvent, func(e *abi.Envelope, _ host.EnterGuest) abi.Encodable {
			turn := new(abi.MemoryEvent)
			_ = abi.Unmarshal(e.Body, turn)
			mu.Lock()
			defer mu.Unlock()
			if !lost(turn) {
				return nil
			}
			return inventedReceipt(turn)
		})(m)
	}
}

// forgetsNot is a mutant that answers done to the requests for which when is true, and removes nothing.
func forgetsNot(when func(*abi.ForgetRequest) bool) func(*mutant) enterer {
	return instead(abi.OpForget, func(e *abi.Envelope, _ host.EnterGuest) abi.Encodable {
		r := new(abi.ForgetRequest)
		if abi.Unmarshal(e.Body, r) != nil || !when(r) {
			return nil
		}
		return &abi.ForgetReceipt{Status: abi.ForgetDone, Removed: map[string][]string{}, DerivedMayRemain: []string{}}
	})
}

// removeCharacters removes characters.
func removeCharacters(is func(rune) bool) func(string) string {
	return func(s string) string {
		return strings.Map(func(r rune) rune {
			if is(r) {
				return -1
			}
			return r
		}, s)
	}
}

func cut(n int) func(string) string { return func(s string) string { return s[:min(n, len(s))] } }

// mutants are the implementations of the catalogue, by name. What is not here is a fault of the guest of testguest.
func mutants() map[string]func(*mutant) enterer {
	ptr := func(n int64) *int64 { return &n }
	list := map[string]func(*mutant) enterer{
		// Texts.
		"ascii_only": contents(removeCharacters(func(r rune) bool { return r > 127 })),
		"question_marks": contents(func(s string) string {
			return strings.Map(func(r rune) rune {
				if r > 255 {
					return '?'
				}
				return r
			}, s)
		}),
		"no_emoji":        contents(removeCharacters(func(r rune) bool { return r > 0xffff })),
		"no_joiners":      contents(removeCharacters(func(r rune) bool { return r == '\u200d' })),
		"no_marks":        contents(removeCharacters(func(r rune) bool { return r == '\u200e' || r == '\u200f' })),
		"composed":        contents(strings.NewReplacer("e\u0301", "é").Replace),
		"accents_off":     contents(strings.NewReplacer("é", "e", "ë", "e", "Å", "A").Replace),
		"drops_lines":     contents(strings.NewReplacer("\n", "").Replace),
		"lines_to_blanks": contents(strings.NewReplacer("\n", " ").Replace),
		"first_line":      contents(func(s string) string { first, _, _ := strings.Cut(s, "\n"); return first }),
		"drops_tabs":      contents(strings.NewReplacer("\t", " ").Replace),
		"collapses":       contents(func(s string) string { return strings.Join(strings.Fields(s), " ") }),
		"lower_case":      contents(strings.ToLower),
		"escapes_html":    contents(html.EscapeString),
		"unescapes_html":  contents(html.UnescapeString),
		"strips_tags":     contents(strings.NewReplacer("<b>", "", "</b>", "", "<i>", "").Replace),
		"drops_quotes":    contents(strings.NewReplacer(`"`, "").Replace),
		"doubles_escapes": contents(strings.NewReplacer(`\`, `\\`).Replace),
		"drops_escapes":   contents(strings.NewReplacer(`\`, "").Replace),
		"expands":         contents(strings.NewReplacer("{{name}}", "").Replace),
		"cut_200":         contents(cut(200)),
		"cut_4096":        contents(cut(4096)),
		"cut_in_character": contents(func(s string) string {
			if len(s) < 100 {
				return s
			}
			for n := 64; n < len(s); n++ {
				if !utf8.RuneStart(s[n]) {
					return strings.ToValidUTF8(s[:n], "\ufffd")
				}
			}
			return s
		}),
		"latin1": contents(func(s string) string {
			out := []rune{}
			for i := range len(s) {
				out = append(out, rune(s[i]))
			}
			return string(out)
		}),
		"says_twice":      contents(func(s string) string { return s + " " + s }),
		"trims_text":      contents(strings.TrimSpace),
		"compat_forms":    contents(strings.NewReplacer("ﬁ", "fi", "½", "1/2", "Ⅳ", "IV", "\u00a0", " ").Replace),
		"straight_quotes": contents(strings.NewReplacer("“", `"`, "”", `"`, "’", "'", "…", "...").Replace),
		"drops_returns":   contents(strings.NewReplacer("\r\n", "\n").Replace),
		"decodes_percent": contents(strings.NewReplacer("%20", " ", "+", " ").Replace),
		"cut_64k":         contents(cut(64 << 10)),
		// Turns.
		"roles_swapped": events(func(e *abi.MemoryEvent) {
			for i, m := range e.Messages {
				switch m.Role {
				case abi.RoleUser:
					e.Messages[i].Role = abi.RoleAssistant
				case abi.RoleAssistant:
					e.Messages[i].Role = abi.RoleUser
				}
			}
		}),
		"names_dropped": events(func(e *abi.MemoryEvent) {
			for i := range e.Messages {
				e.Messages[i].Name = ""
			}
		}),
		"messages_reversed": events(func(e *abi.MemoryEvent) { slices.Reverse(e.Messages) }),
		"session_constant":  events(func(e *abi.MemoryEvent) { e.SessionID = "s" }),
		"times_made_up":     events(func(e *abi.MemoryEvent) { e.Timestamp = "2026-06-01T00:00:00Z" }),
		"times_to_date":     events(func(e *abi.MemoryEvent) { e.Timestamp = e.Timestamp[:10] + "T00:00:00Z" }),
		"first_message":     events(func(e *abi.MemoryEvent) { e.Messages = e.Messages[:1] }),
		"last_message":      events(func(e *abi.MemoryEvent) { e.Messages = e.Messages[len(e.Messages)-1:] }),
		"user_only": events(func(e *abi.MemoryEvent) {
			for i := range e.Messages {
				if e.Messages[i].Role == abi.RoleAssistant {
					empty := ""
					e.Messages[i].Content = &empty
				}
			}
		}),
		"five_messages": events(func(e *abi.MemoryEvent) { e.Messages = e.Messages[:min(2, len(e.Messages))] }),
		"traps_on_tools": trapsOn(func(e *abi.MemoryEvent) bool {
			return anyMessage(e, func(m *abi.Message) bool { return m.Role == abi.RoleTool })
		}),
		"traps_on_calls": trapsOn(func(e *abi.MemoryEvent) bool {
			return anyMessage(e, func(m *abi.Message) bool { return len(m.ToolCalls) > 0 })
		}),
		"traps_on_null": trapsOn(func(e *abi.MemoryEvent) bool {
			return anyMessage(e, func(m *abi.Message) bool { return m.Content == nil })
		}),
		"traps_on_empty": trapsOn(func(e *abi.MemoryEvent) bool {
			return anyMessage(e, func(m *abi.Message) bool { return m.Content != nil && *m.Content == "" })
		}),
		"traps_on_names": trapsOn(func(e *abi.MemoryEvent) bool {
			return anyMessage(e, func(m *abi.Message) bool { return m.Name != "" && m.Role == abi.RoleUser })
		}),
		"traps_on_system":        trapsOn(func(e *abi.MemoryEvent) bool { return e.Messages[0].Role == abi.RoleSystem }),
		"traps_on_one":           trapsOn(func(e *abi.MemoryEvent) bool { return len(e.Messages) == 1 }),
		"traps_on_many":          trapsOn(func(e *abi.MemoryEvent) bool { return len(e.Messages) > 8 }),
		"wants_user_first":       trapsOn(func(e *abi.MemoryEvent) bool { return e.Messages[0].Role == abi.RoleAssistant }),
		"traps_on_metadata":      trapsOn(func(e *abi.MemoryEvent) bool { return len(e.Metadata) > 0 }),
		"traps_on_depth":         traps(writing, func(e *abi.Envelope) bool { return bytes.Contains(e.Body, []byte(`[{"a":[{"a":[{"a":`)) }),
		"traps_on_labels":        trapsOn(func(e *abi.MemoryEvent) bool { return strings.ContainsAny(e.Context+e.Scenario, "日ü\"") }),
		"traps_over_8k":          traps(writing, func(e *abi.Envelope) bool { return len(e.Body) > 8<<10 }),
		"traps_over_64k":         traps(writing, func(e *abi.Envelope) bool { return len(e.Body) > 64<<10 }),
		"traps_on_long_ids":      trapsOn(func(e *abi.MemoryEvent) bool { return len(e.EventID) > 255 }),
		"key_of_event":           trapsOn(func(e *abi.MemoryEvent) bool { return len("e/"+e.EventID) > 512 }),
		"traps_on_long_sessions": trapsOn(func(e *abi.MemoryEvent) bool { return len(e.SessionID) > 255 }),
		"traps_on_separators":    trapsOn(func(e *abi.MemoryEvent) bool { return strings.ContainsAny(e.EventID, "/:'*") }),
		"traps_on_offsets":       trapsOn(func(e *abi.MemoryEvent) bool { return !strings.HasSuffix(e.Timestamp, "Z") }),
		"traps_on_fractions":     trapsOn(func(e *abi.MemoryEvent) bool { return strings.Contains(e.Timestamp, ".") }),
		"newest_only": loses(func() func(*abi.MemoryEvent) bool {
			last := map[string]string{}
			return func(e *abi.MemoryEvent) bool {
				key := e.RunID + "\x00" + e.UserID
				if e.Timestamp < last[key] {
					return true
				}
				last[key] = e.Timestamp
				return false
			}
		}),
		"one_per_session": loses(func() func(*abi.MemoryEvent) bool {
			had := map[string]bool{}
			return func(e *abi.MemoryEvent) bool {
				key := e.RunID + "\x00" + e.UserID + "\x00" + e.SessionID
				was := had[key]
				had[key] = true
				return was
			}
		}),
		"loses_second": loses(func() func(*abi.MemoryEvent) bool {
			n := 0
			return func(*abi.MemoryEvent) bool { n++; return n%2 == 0 }
		}),
		"loses_all": loses(func() func(*abi.MemoryEvent) bool { return func(*abi.MemoryEvent) bool { return true } }),
		"sends_twice": func(m *mutant) enterer {
			return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
				if e.Op == abi.OpRecordEvent {
					m.made.Store(true)
					_, _, _ = enter(e)
				}
				return enter(e)
			}
		},
		// Receipts.
		"made_up_ids": receipts(func(r *abi.WriteReceipt) {
			r.NativeIDs = []string{"id-of-" + r.EventID}
			r.NativeIDsKind = abi.NativeIDsFinal
		}),
		"final_without_ids": receipts(func(r *abi.WriteReceipt) { r.NativeIDs = nil; r.NativeIDsKind = abi.NativeIDsFinal }),
		"none_with_ids":     receipts(func(r *abi.WriteReceipt) { r.NativeIDsKind = abi.NativeIDsNone }),
		"says_not_retained": receipts(func(r *abi.WriteReceipt) { r.Status = abi.StatusNotRetained }),
		"says_queued":       receipts(func(r *abi.WriteReceipt) { r.Status = "accepted" }),
		"uncoded_warning":   receipts(func(r *abi.WriteReceipt) { r.Warnings = append(r.Warnings, "stored, but slowly") }),
		"negative_stored":   receipts(func(r *abi.WriteReceipt) { r.StoredCount = ptr(-1) }),
		// Batches.
		"batch_first":        batch(func(i, _ int, _ *abi.MemoryEvent) bool { return i == 0 }),
		"batch_last":         batch(func(i, n int, _ *abi.MemoryEvent) bool { return i == n-1 }),
		"batch_drops_last":   batch(func(i, n int, _ *abi.MemoryEvent) bool { return i < n-1 || n == 1 }),
		"batch_ten":          batch(func(i, _ int, _ *abi.MemoryEvent) bool { return i < 10 }),
		"batch_every_second": batch(func(i, _ int, _ *abi.MemoryEvent) bool { return i%2 == 0 }),
		"batch_sessions": func(m *mutant) enterer {
			return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
				had := map[string]int{}
				all := new(abi.EventBatch)
				if e.Op == abi.OpRecordEvents {
					_ = abi.Unmarshal(e.Body, all)
					for i := range all.Events {
						had[all.Events[i].SessionID] = i
					}
				}
				return batch(func(i, _ int, x *abi.MemoryEvent) bool { return had[x.SessionID] == i })(m)(e, enter)
			}
		},
		"batch_first_text": changeRequest(abi.OpRecordEvents, func(e *abi.Envelope) {
			e.Body = edit(e.Body, func(b *abi.EventBatch) {
				for i := range b.Events {
					b.Events[i].Messages = b.Events[0].Messages
				}
			})
		}),
		"batch_reversed": answers(abi.OpRecordEvents, func(_ *abi.Envelope, b *abi.BatchReceipts) {
			for i, j := 0, len(b.Receipts)-1; i < j; i, j = i+1, j-1 {
				b.Receipts[i], b.Receipts[j] = b.Receipts[j], b.Receipts[i]
			}
		}),
		"batch_short": answers(abi.OpRecordEvents, func(_ *abi.Envelope, b *abi.BatchReceipts) {
			b.Receipts = b.Receipts[:max(1, len(b.Receipts)-1)]
		}),
		"batch_same_id": answers(abi.OpRecordEvents, func(_ *abi.Envelope, b *abi.BatchReceipts) {
			for _, r := range b.Receipts {
				if r.Receipt != nil && b.Receipts[0].Receipt != nil {
					r.Receipt.NativeIDs = b.Receipts[0].Receipt.NativeIDs
				}
			}
		}),
		"batch_hides_errors": answers(abi.OpRecordEvents, func(_ *abi.Envelope, b *abi.BatchReceipts) {
			for i, r := range b.Receipts {
				if r.Error != nil {
					b.Receipts[i] = abi.ReceiptOrError{Receipt: inventedReceipt(&abi.MemoryEvent{EventID: r.EventID})}
				}
			}
		}),
		"batch_all_fail": answers(abi.OpRecordEvents, func(_ *abi.Envelope, b *abi.BatchReceipts) {
			var bad *abi.Error
			for _, r := range b.Receipts {
				if r.Error != nil {
					bad = r.Error
				}
			}
			for i, r := range b.Receipts {
				if bad != nil && r.Receipt != nil {
					b.Receipts[i] = abi.ReceiptOrError{EventID: r.Receipt.EventID, Error: bad}
				}
			}
		}),
		"batch_traps_on_error": func(m *mutant) enterer {
			return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
				answer, isError, err := enter(e)
				if e.Op == abi.OpRecordEvents && bytes.Contains(answer, []byte(`"error":{`)) {
					m.made.Store(true)
					return nil, false, abi.NewError(abi.CodeInternal, "plugin: unreachable")
				}
				return answer, isError, err
			}
		},
		// Identity.
		"concatenates":      joinedBy(""),
		"joins_dash":        joinedBy("-"),
		"joins_underscore":  joinedBy("_"),
		"joins_slash":       joinedBy("/"),
		"joins_colon":       joinedBy(":"),
		"joins_dot":         joinedBy("."),
		"joins_bar":         joinedBy("|"),
		"joins_blank":       joinedBy(" "),
		"no_run":            ids(func(_, persona string) (string, string) { return "x", persona }),
		"no_persona":        ids(func(run, _ string) (string, string) { return run, "x" }),
		"no_agent":          scopes(func(e *abi.Envelope) { e.Scope.AgentID = "" }),
		"agent_joined":      scopes(func(e *abi.Envelope) { e.Scope.PersonaID += e.Scope.AgentID; e.Scope.AgentID = "" }),
		"agent_folds":       scopes(func(e *abi.Envelope) { e.Scope.AgentID = strings.ToLower(e.Scope.AgentID) }),
		"no_generations":    scopes(func(e *abi.Envelope) { e.Generation = 1 }),
		"generation_parity": scopes(func(e *abi.Envelope) { e.Generation %= 2 }),
		"ids_cut":           both(cut(64)),
		"ids_lower":         both(strings.ToLower),
		"ids_trimmed":       both(strings.TrimSpace),
		"ids_ascii":         both(removeCharacters(func(r rune) bool { return r > 127 })),
		"ids_word":          both(removeCharacters(func(r rune) bool { return strings.ContainsRune(" _-/:|.*%\"{}$'=+#,;@~", r) })),
		"ids_underscored":   both(strings.NewReplacer("-", "_", "/", "_", ":", "_", " ", "_", ".", "_").Replace),
		"ids_composed":      both(strings.NewReplacer("e\u0301", "é").Replace),
		"ids_unescaped":     both(strings.NewReplacer("%20", " ", "+", " ").Replace),
		"ids_hashed": ids(func(run, persona string) (string, string) {
			sum := 0
			for _, b := range []byte(run + "\x00" + persona) {
				sum = (sum*31 + int(b)) % 64
			}
			return fmt.Sprintf("h%0*d", len(run), sum), "x" // as long as before, so that contexts still fit
		}),
		// Retrievals.
		"as_of_native": found(func(r *abi.RetrieveResult) {
			if r.Trace != nil {
				r.Trace.AsOfMode = "native"
			}
		}),
		"as_of_silent": found(func(r *abi.RetrieveResult) {
			if r.Trace != nil {
				r.Trace.AsOfMode = ""
			}
		}),
		"result_empty": found(func(r *abi.RetrieveResult) {
			if r.Trace != nil && len(r.Evidence) > 0 {
				r.Trace.ResultState = abi.ResultEmpty
			}
		}),
		"evidence_twice": found(func(r *abi.RetrieveResult) {
			if len(r.Evidence) > 0 {
				again := r.Evidence[0]
				again.Rank, again.Shown = int64(len(r.Evidence)+1), nil
				r.Evidence = append(r.Evidence, again)
			}
		}),
		"budget_halved": changeRequest("retrieve format_context", func(e *abi.Envelope) {
			half := func(n *int64) {
				if n != nil && *n > 1 {
					*n /= 2
				}
			}
			if e.Op == abi.OpRetrieve {
				e.Body = edit(e.Body, func(r *abi.RetrieveRequest) { half(r.Budget.MaxTokens) })
			} else {
				e.Body = edit(e.Body, func(r *abi.FormatRequest) { half(r.Budget.MaxTokens) })
			}
		}),
		"groups_in_order": found(func(r *abi.RetrieveResult) { // one list, which is filled in order, passes for two
			for i := range r.Evidence {
				e := &r.Evidence[i]
				e.Score = nil
				if e.Group = "facts"; 2*i >= len(r.Evidence) {
					e.Group = "notes"
				}
			}
		}),
		"count_zero": found(func(r *abi.RetrieveResult) {
			if r.Trace != nil && len(r.Evidence) > 0 {
				r.Trace.RetrievedCount = ptr(0)
			}
		}),
		"top_score_one": found(func(r *abi.RetrieveResult) {
			one := 123.456
			if r.Trace != nil && len(r.Evidence) > 0 {
				r.Trace.TopScore = &one
			}
		}),
		"frame_zero": found(func(r *abi.RetrieveResult) {
			if r.Trace != nil && r.Trace.FrameTokens != nil {
				r.Trace.FrameTokens = ptr(0)
			}
		}),
		"frame_all": found(func(r *abi.RetrieveResult) {
			if r.Trace != nil && r.Trace.FrameTokens != nil {
				r.Trace.FrameTokens = ptr(int64(len(r.FormattedContext)+3) / 4)
			}
		}),
		"frame_more": found(func(r *abi.RetrieveResult) {
			if r.Trace != nil && r.Trace.FrameTokens != nil {
				r.Trace.FrameTokens = ptr(1 << 20)
			}
		}),
		"shown_short": foundAndFormatted(func(_ *string, list []abi.Evidence) { eachShown(list, func(s *abi.Shown) { s.End-- }) }),
		"shown_short_cut": foundAndFormatted(func(_ *string, list []abi.Evidence) {
			eachShown(list, func(s *abi.Shown) { s.End -= 2; s.Whole = false })
		}),
		"shown_late": foundAndFormatted(func(_ *string, list []abi.Evidence) { eachShown(list, func(s *abi.Shown) { s.Start++ }) }),
		"shown_early": foundAndFormatted(func(_ *string, list []abi.Evidence) {
			eachShown(list, func(s *abi.Shown) { s.Start, s.End = s.Start-4, s.End-4 })
		}),
		"shown_characters": foundAndFormatted(func(text *string, list []abi.Evidence) {
			eachShown(list, func(s *abi.Shown) {
				s.Start, s.End = s.Start+1, s.End+1
			})
		}),
		"shown_swapped": foundAndFormatted(func(_ *string, list []abi.Evidence) {
			if len(list) > 1 && list[0].Shown != nil && list[1].Shown != nil {
				list[0].Shown, list[1].Shown = list[1].Shown, list[0].Shown
			}
		}),
		"shown_not_formatted": answers(abi.OpFormatContext, func(_ *abi.Envelope, r *abi.FormatResult) {
			for i := range r.Evidence {
				r.Evidence[i].Shown = nil
			}
		}),
		"labels_off_by_one": foundAndFormatted(func(text *string, _ []abi.Evidence) { *text = strings.Replace(*text, "\nm2 ", "\nm3 ", 1) }),
		"labels_from_zero":  foundAndFormatted(func(text *string, _ []abi.Evidence) { *text = strings.Replace(*text, "\nm1 ", "\nm0 ", 1) }),
		"labels_all_one":    foundAndFormatted(func(text *string, _ []abi.Evidence) { *text = strings.ReplaceAll(*text, "\nm2 ", "\nm1 ") }),
		"never_truncated": func(m *mutant) enterer {
			one := found(func(r *abi.RetrieveResult) {
				no := false
				if r.Trace != nil && r.Trace.Truncated != nil {
					r.Trace.Truncated = &no
				}
			})(m)
			two := answers(abi.OpFormatContext, func(_ *abi.Envelope, r *abi.FormatResult) { r.Truncated = false })(m)
			return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
				return one(e, func(e *abi.Envelope) ([]byte, bool, error) { return two(e, enter) })
			}
		},
		"evidence_short": found(func(r *abi.RetrieveResult) {
			if len(r.Evidence) > 1 {
				r.Evidence = r.Evidence[:len(r.Evidence)-1]
			}
		}),
		"evidence_none": found(func(r *abi.RetrieveResult) { r.Evidence = []abi.Evidence{} }),
		"evidence_reversed": found(func(r *abi.RetrieveResult) {
			for i, j := 0, len(r.Evidence)-1; i < j; i, j = i+1, j-1 {
				r.Evidence[i], r.Evidence[j] = r.Evidence[j], r.Evidence[i]
			}
		}),
		"evidence_first_pointer": found(func(r *abi.RetrieveResult) {
			for i := range r.Evidence {
				r.Evidence[i].Pointer = r.Evidence[0].Pointer
			}
		}),
		"text_shouted": found(func(r *abi.RetrieveResult) {
			for i := range r.Evidence {
				r.Evidence[i].Text = strings.ToUpper(r.Evidence[i].Text)
			}
		}),
		"times_now": found(func(r *abi.RetrieveResult) {
			for i := range r.Evidence {
				r.Evidence[i].CreatedAt = "2031-01-01T00:00:00Z"
			}
		}),
		"ids_swapped": found(func(r *abi.RetrieveResult) {
			if n := len(r.Evidence); n > 1 && r.Evidence[0].NativeID != "" {
				r.Evidence[0].NativeID, r.Evidence[1].NativeID = r.Evidence[1].NativeID, r.Evidence[0].NativeID
			}
		}),
		"ids_counted": found(func(r *abi.RetrieveResult) {
			for i := range r.Evidence {
				r.Evidence[i].NativeID = fmt.Sprint("item-number-", i)
			}
		}),
		"sources_first": found(func(r *abi.RetrieveResult) {
			for i := range r.Evidence {
				if len(r.Evidence[i].SourceEventIDs) > 0 {
					r.Evidence[i].SourceEventIDs = r.Evidence[0].SourceEventIDs
				}
			}
		}),
		"sources_native": found(func(r *abi.RetrieveResult) {
			for i := range r.Evidence {
				if len(r.Evidence[i].SourceEventIDs) > 0 {
					r.Evidence[i].SourceEventIDs = []string{r.Evidence[i].NativeID}
				}
			}
		}),
		"raw_emptied": found(func(r *abi.RetrieveResult) { r.Raw.Calls = []abi.RawCall{}; r.Evidence = []abi.Evidence{} }),
		"raw_as_text": found(func(r *abi.RetrieveResult) {
			for i := range r.Raw.Calls {
				r.Raw.Calls[i].Body = abi.Raw(fmt.Sprintf(`{"text":%q}`, "items"))
				r.Evidence = []abi.Evidence{}
			}
		}),
		"budget_silent": found(func(r *abi.RetrieveResult) {
			if r.Trace != nil {
				delete(r.Trace.BudgetApplied, "min_tokens")
			}
		}),
		"budget_native": found(func(r *abi.RetrieveResult) {
			if r.Trace != nil && len(r.Trace.BudgetApplied) > 0 {
				r.Trace.BudgetApplied["max_tokens"] = abi.BudgetUse{How: "native", Sent: ptr(4711)}
			}
		}),
		"labels_one": found(func(r *abi.RetrieveResult) {
			if r.Trace != nil {
				delete(r.Trace.FiltersApplied, "attribute")
			}
		}),
		"labels_none": found(func(r *abi.RetrieveResult) {
			if r.Trace != nil && len(r.Trace.FiltersApplied) > 0 {
				r.Trace.FilterMode = "strict"
			}
		}),
		"context_ignored":   body("retrieve", func(r *abi.RetrieveRequest) { r.Context = "" }),
		"cross_ignored":     body("retrieve", func(r *abi.RetrieveRequest) { delete(r.Filters, "cross_context") }),
		"labels_unrecorded": events(func(e *abi.MemoryEvent) { e.Scenario, e.Context, e.Attribute = "", "", "" }),
		"query_ascii": body("retrieve", func(r *abi.RetrieveRequest) {
			r.Query = removeCharacters(func(c rune) bool { return c > 127 })(r.Query)
		}),
		"query_cut":     body("retrieve", func(r *abi.RetrieveRequest) { r.Query = strings.ToValidUTF8(cut(40)(r.Query), "") }),
		"query_traps":   traps("retrieve", func(e *abi.Envelope) bool { return len(e.Body) > 8<<10 }),
		"query_empty":   body("retrieve", func(r *abi.RetrieveRequest) { r.Query = "-" }),
		"scope_must_be": traps("retrieve", func(e *abi.Envelope) bool { return strings.Contains(e.Scope.PersonaID, "somebody") }),
		"items_twice": body("retrieve", func(r *abi.RetrieveRequest) {
			if r.Budget.MaxItems != nil {
				*r.Budget.MaxItems *= 2
			}
		}),
		"budget_ignored": changeRequest("retrieve format_context", func(e *abi.Envelope) {
			if e.Op == abi.OpRetrieve {
				e.Body = edit(e.Body, func(r *abi.RetrieveRequest) { r.Budget.MaxTokens = nil })
			} else {
				e.Body = edit(e.Body, func(r *abi.FormatRequest) { r.Budget.MaxTokens = nil })
			}
		}),
		"context_always_empty": foundAndFormatted(func(text *string, list []abi.Evidence) {
			*text = ""
			for i := range list {
				list[i].Shown = nil
			}
		}),
		"format_random": answers(abi.OpFormatContext, func(_ *abi.Envelope, r *abi.FormatResult) {
			r.FormattedContext = strings.Replace(r.FormattedContext, "\n", fmt.Sprintf("\n%d ", rand.IntN(1000)), 1)
			for i := range r.Evidence {
				r.Evidence[i].Shown = nil
			}
		}),
		// Reset.
		"reset_failed": answers(abi.OpResetScope, func(_ *abi.Envelope, r *abi.ResetReceipt) { r.Status = abi.ResetFailed }),
		"reset_nothing": instead(abi.OpResetScope, func(*abi.Envelope, host.EnterGuest) abi.Encodable {
			return &abi.ResetReceipt{Status: abi.ResetDone, Removed: map[string]*int64{}}
		}),
		"reset_negative": answers(abi.OpResetScope, func(_ *abi.Envelope, r *abi.ResetReceipt) {
			r.Removed = map[string]*int64{"note": ptr(-1)}
		}),
		"reset_person": func(m *mutant) enterer {
			return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
				if e.Op == abi.OpResetScope && !e.Mode.ReadOnly {
					other := *e
					other.Scope.PersonaID += "2"
					m.made.Store(true)
					_, _, _ = cloneAnswer(enter(&other))
				}
				return enter(e)
			}
		},
		"reset_next": scopes(func(e *abi.Envelope) {
			if e.Op == abi.OpResetScope {
				e.Generation++
			}
		}),
		// Forget.
		"forget_session_not": forgetsNot(func(r *abi.ForgetRequest) bool { return r.SessionID != "" }),
		"forget_range_not":   forgetsNot(func(r *abi.ForgetRequest) bool { return r.From != "" }),
		"forget_native_not":  forgetsNot(func(r *abi.ForgetRequest) bool { return len(r.NativeIDs) > 0 }),
		"forget_events_not":  forgetsNot(func(r *abi.ForgetRequest) bool { return len(r.EventIDs) > 0 }),
		"forget_first": body("forget", func(r *abi.ForgetRequest) {
			if len(r.EventIDs) > 1 {
				r.EventIDs = r.EventIDs[:1]
			}
		}),
		"forget_text_times": forgetsNot(func(r *abi.ForgetRequest) bool { return r.From > r.To }),
		"forget_open_end": forgetsNot(func(r *abi.ForgetRequest) bool {
			from, _ := abi.ParseTime(r.From)
			to, err := abi.ParseTime(r.To)
			return r.From != "" && err == nil && from.Equal(to)
		}),
		"forget_wide": body("forget", func(r *abi.ForgetRequest) {
			if r.From != "" {
				r.From, r.To = "2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z"
			}
		}),
		"forget_session_all": body("forget", func(r *abi.ForgetRequest) {
			if r.SessionID != "" {
				r.SessionID, r.From, r.To = "", "2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z"
			}
		}),
		"forget_prefix": body("forget", func(r *abi.ForgetRequest) {
			for _, id := range r.EventIDs {
				r.EventIDs = append(r.EventIDs, id+"0")
			}
		}),
		"forget_everywhere": func(m *mutant) enterer {
			return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
				if e.Op == abi.OpForget && e.Scope.PersonaID == "p" {
					other := *e
					other.Scope.PersonaID = "q"
					m.made.Store(true)
					_, _, _ = cloneAnswer(enter(&other))
				}
				return enter(e)
			}
		},
		"forget_traps": traps("forget", func(e *abi.Envelope) bool { return bytes.Contains(e.Body, []byte("session_id")) }),
		// Provenance.
		"provenance_all": body("provenance", func(r *abi.ProvenanceRequest) {
			if r.EventID != "" || r.NativeID != "" {
				r.EventID, r.NativeID, r.From, r.To = "", "", "2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z"
			}
		}),
		"provenance_any_time": body("provenance", func(r *abi.ProvenanceRequest) {
			if r.From != "" {
				r.From, r.To = "2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z"
			}
		}),
		"provenance_loops": answers(abi.OpProvenance, func(e *abi.Envelope, r *abi.Provenance) {
			if len(r.Items) > 0 {
				r.NextCursor = "0"
			}
		}),
		"provenance_cursor_lost": body("provenance", func(r *abi.ProvenanceRequest) { r.Cursor = "" }),
		"provenance_limit":       body("provenance", func(r *abi.ProvenanceRequest) { r.Limit = 1000 }),
		"provenance_one_page":    answers(abi.OpProvenance, func(_ *abi.Envelope, r *abi.Provenance) { r.NextCursor = "" }),
		"provenance_traps":       traps("provenance", func(e *abi.Envelope) bool { return bytes.Contains(e.Body, []byte("kit-none")) }),
		// Inventory, readiness, health, set-up.
		"inventory_constant": answers(abi.OpInventory, func(_ *abi.Envelope, r *abi.Inventory) {
			r.Kinds = []abi.InventoryKind{{Kind: "note", Count: 3, Digest: strings.Repeat("0", 64)}}
		}),
		"inventory_zero": answers(abi.OpInventory, func(_ *abi.Envelope, r *abi.Inventory) {
			for i := range r.Kinds {
				r.Kinds[i].Count = 0
			}
		}),
		"inventory_digest": answers(abi.OpInventory, func(_ *abi.Envelope, r *abi.Inventory) {
			for i := range r.Kinds {
				r.Kinds[i].Digest = strings.Repeat("0", 64)
			}
		}),
		"inventory_random": answers(abi.OpInventory, func(_ *abi.Envelope, r *abi.Inventory) {
			for i := range r.Kinds {
				r.Kinds[i].Digest = fmt.Sprintf("%064x", rand.Uint64())
			}
		}),
		"readiness_failed": answers(abi.OpReadiness, func(_ *abi.Envelope, r *abi.BackendReadiness) { r.Status = abi.ReadinessFailed }),
		"readiness_traps":  traps("readiness", func(*abi.Envelope) bool { return true }),
		"readiness_word":   answers(abi.OpReadiness, func(_ *abi.Envelope, r *abi.BackendReadiness) { r.Status = "done" }),
		"health_ok": func(m *mutant) enterer {
			return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
				answer, isError, err := enter(e)
				if e.Op == abi.OpHealth && (isError || bytes.Contains(answer, []byte(`"unavailable"`))) {
					m.made.Store(true)
					return abi.Marshal(&abi.BackendHealth{Status: abi.HealthOK, BackendName: "tiny", ConsistencyModel: "immediate",
						Isolation: "hard", PetObservability: "strong"}), false, nil
				}
				return answer, isError, err
			}
		},
		"health_word":     answers(abi.OpHealth, func(_ *abi.Envelope, r *abi.BackendHealth) { r.Isolation = "perfect" }),
		"setup_not_ready": answers(abi.OpSetupScope, func(_ *abi.Envelope, r *abi.SetupReceipt) { r.Ready = false }),
		"setup_same":      answers(abi.OpSetupScope, func(_ *abi.Envelope, r *abi.SetupReceipt) { r.NativeScope = map[string]string{"scope": "default"} }),
		"setup_once": func(m *mutant) enterer {
			var mu sync.Mutex
			done := map[string]bool{}
			return instead(abi.OpSetupScope, func(e *abi.Envelope, _ host.EnterGuest) abi.Encodable {
				mu.Lock()
				defer mu.Unlock()
				key := string(abi.Marshal(&e.Scope))
				if done[key] {
					return abi.NewError(abi.CodeConflict, "the scope is there already")
				}
				done[key] = true
				return nil
			})(m)
		},
		"query_any": instead(abi.OpNativeQuery, func(*abi.Envelope, host.EnterGuest) abi.Encodable {
			return &abi.NativeQueryResult{Name: "kit_none", Result: abi.Raw("null")}
		}),
		"find_present": answers(abi.OpFindEvent, func(_ *abi.Envelope, r *abi.FindEventAnswer) { r.Found = "present" }),
		"find_absent":  answers(abi.OpFindEvent, func(_ *abi.Envelope, r *abi.FindEventAnswer) { r.Found = "absent"; r.NativeIDs = nil }),
		"find_word":    answers(abi.OpFindEvent, func(_ *abi.Envelope, r *abi.FindEventAnswer) { r.Found = "yes" }),
		// Errors.
		"errors_retryable": wrongErrors(func(_ *abi.Envelope, e *abi.Error) { e.Retryable = true }),
		"errors_final":     wrongErrors(func(_ *abi.Envelope, e *abi.Error) { e.Retryable = false }),
		"errors_mute":      wrongErrors(func(_ *abi.Envelope, e *abi.Error) { e.Message = "" }),
		"errors_internal":  wrongErrors(func(_ *abi.Envelope, e *abi.Error) { e.Code = abi.CodeInternal }),
		"errors_new_code":  wrongErrors(func(_ *abi.Envelope, e *abi.Error) { e.Code = "oops" }),
		"errors_backend":   wrongErrors(func(_ *abi.Envelope, e *abi.Error) { e.Code = abi.CodeBackend }),
		"errors_no_native": wrongErrors(func(_ *abi.Envelope, e *abi.Error) { e.Native = nil }),
		"errors_no_status": wrongErrors(func(_ *abi.Envelope, e *abi.Error) {
			if e.Native != nil && e.Native.Status != nil {
				e.Native.Status = ptr(500)
			}
		}),
		"errors_own_words": wrongErrors(func(_ *abi.Envelope, e *abi.Error) {
			if e.Native != nil {
				e.Native.Body = "something went wrong"
			}
		}),
		"errors_retry_seconds": wrongErrors(func(_ *abi.Envelope, e *abi.Error) {
			if e.RetryAfterMS != nil {
				e.RetryAfterMS = ptr(*e.RetryAfterMS / 1000)
			}
		}),
		"errors_nothing_stored": wrongErrors(func(e *abi.Envelope, x *abi.Error) {
			if strings.Contains(writing, e.Op) {
				x.NothingStored = true
			}
		}),
		"errors_empty": func(m *mutant) enterer {
			return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
				answer, isError, err := enter(e)
				if e.Op == abi.OpRetrieve && isError {
					m.made.Store(true)
					return []byte(`{"raw":{"calls":[]},"formatted_context":"","evidence":[],"trace":{"result_state":"empty"}}`), false, nil
				}
				return answer, isError, err
			}
		},
		"errors_trap": func(m *mutant) enterer {
			return func(e *abi.Envelope, enter host.EnterGuest) ([]byte, bool, error) {
				answer, isError, err := enter(e)
				if isError {
					m.made.Store(true)
					return nil, false, abi.NewError(abi.CodeInternal, "plugin: unreachable")
				}
				return answer, isError, err
			}
		},
	}
	return list
}

// eachShown changes where items are said to be shown.
func eachShown(list []abi.Evidence, change func(*abi.Shown)) {
	for i := range list {
		if list[i].Shown != nil && list[i].Shown.End-list[i].Shown.Start > 4 {
			change(list[i].Shown)
		}
	}
}
