package nanobot

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/model"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/plugins/conditions/internal/state"
	"github.com/memhost/memhost/sdk"
)

// Plugin serves the operations of a memory.
type Plugin struct {
	// Open opens the memory for an operation.
	Open func(c *sdk.Call) (Memory, error)
	// Types are the provider's native memory types.
	Types []string
	// Queries and Mutations list the native operations for the error about an unknown name: "files, status or history".
	Queries, Mutations string
	// History is the query that searches the history, "" if there is none.
	History string
}

// serve opens the memory for an operation. If the state has failed it returns the state's first error, whatever do
// returns.
func serve[T any](p *Plugin, c *sdk.Call, do func(m Memory, b *Base) T) (answer T, err error) {
	m, err := p.Open(c)
	if err != nil {
		return answer, err
	}
	b := m.Common()
	answer = do(m, b)
	return answer, b.Err()
}

// SetupScope prepares a scope. Existed reports whether it holds messages.
func (p *Plugin) SetupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	return serve(p, c, func(m Memory, b *Base) *abi.SetupReceipt {
		m.Setup()
		return &abi.SetupReceipt{Ready: true, Existed: sdk.Ptr(lastSession(b.State) != ""),
			NativeScope: map[string]string{},
			Trace:       b.Trace("")}
	})
}

// RecordEvent appends the messages to those of their session. It does not call the model: WaitUntilReady does the work
// that is due.
//
// Errors: conflict if the scope holds the event id with other content; those of the state.
func (p *Plugin) RecordEvent(c *sdk.Call, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	return serve(p, c, func(m Memory, b *Base) *abi.WriteReceipt {
		r := newRecorder(m)
		receipt, err := r.add(e)
		b.Fail(err)
		r.close(receipt)
		return receipt
	})
}

// RecordEvents is RecordEvent for each event, in order. Due work is determined once, at the end. A rejected event does
// not stop the others.
func (p *Plugin) RecordEvents(c *sdk.Call, batch *abi.EventBatch) (*abi.BatchReceipts, error) {
	return serve(p, c, func(m Memory, b *Base) *abi.BatchReceipts {
		r, answer := newRecorder(m), &abi.BatchReceipts{Receipts: make([]abi.ReceiptOrError, len(batch.Events))}
		receipts := make([]*abi.WriteReceipt, len(batch.Events))
		for i := range batch.Events {
			receipt, err := r.add(&batch.Events[i])
			if err != nil {
				answer.Receipts[i] = abi.ReceiptOrError{EventID: batch.Events[i].EventID, Error: abi.AsError(err)}
			} else {
				answer.Receipts[i].Receipt, receipts[i] = receipt, receipt
			}
		}
		r.close(receipts...)
		return answer
	})
}

// FindEvent looks an event up by its id. The result is certain, because messages and receipt are committed together.
func (p *Plugin) FindEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	return serve(p, c, func(_ Memory, b *Base) *abi.FindEventAnswer {
		var at index
		if b.Load(eventKey(r.EventID), at.members()...) == 0 {
			return &abi.FindEventAnswer{Found: "absent"}
		}
		return &abi.FindEventAnswer{Found: "present", NativeIDs: at.nativeIDs(), Markers: []string{r.EventID}}
	})
}

// Readiness judges markers, which are event ids, by whether their sessions have been processed that far.
func (p *Plugin) Readiness(c *sdk.Call, r *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	return serve(p, c, func(m Memory, _ *Base) *abi.BackendReadiness { return readiness(m, r.Markers) })
}

// WaitUntilReady does the work that is due. If sessions are archived at their end, it also archives the open one,
// unless no caller waits.
func (p *Plugin) WaitUntilReady(c *sdk.Call, r *abi.WaitRequest) (*abi.BackendReadiness, error) {
	return serve(p, c, func(m Memory, b *Base) *abi.BackendReadiness {
		began := b.Remaining()
		m.BeforeWork()
		workAll(m, r.Background)
		m.AfterWork(began / 4)
		return readiness(m, nil)
	})
}

// Retrieve returns the memory's items and, if configured, the messages of the request's session that are not archived
// yet. It calls no model and writes nothing.
func (p *Plugin) Retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	return serve(p, c, func(m Memory, b *Base) *abi.RetrieveResult {
		items, notes := m.Items(r)
		if b.Tail {
			session := FindSession(b.State, r.SessionID)
			items = append(items, b.tail(session, m.TailFrom(session))...)
			notes = append(notes, "tail_included: messages of the session that are not worked off yet are shown")
		}
		return b.result(r, items, notes)
	})
}

// FormatContext formats the items of an earlier result.
//
// Errors: invalid_argument when the result is not one of Retrieve.
func (p *Plugin) FormatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	return serve(p, c, func(_ Memory, b *Base) *abi.FormatResult {
		items, err := itemsOf(&r.Result.Raw)
		b.Fail(err)
		if r.Budget.MaxItems != nil {
			items = items[:min(int64(len(items)), max(0, *r.Budget.MaxItems))]
		}
		return fit(c, b.Config, items, b.budget(r.Budget)).Result(r.Result.Evidence)
	})
}

// ResetScope counts what is removed. The host removes the generation's state, in the transaction that starts the next
// one.
func (p *Plugin) ResetScope(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	return serve(p, c, func(m Memory, b *Base) *abi.ResetReceipt {
		removed, kinds := map[string]*int64{}, counts(m)
		for i := range kinds {
			removed[kinds[i].Kind] = &kinds[i].Count
		}
		return &abi.ResetReceipt{Status: abi.ResetDone, Removed: removed, OldGeneration: c.Generation,
			NewGeneration: c.Generation + 1, Trace: b.Trace("")}
	})
}

// Inventory counts. It is quiescent if no work waits.
func (p *Plugin) Inventory(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	return serve(p, c, func(m Memory, b *Base) *abi.Inventory {
		return &abi.Inventory{Kinds: counts(m), Complete: true,
			Quiescent: readiness(m, nil).Status == abi.ReadinessReady,
			Trace:     b.Trace("state_list")}
	})
}

// counts counts the messages of all sessions and the memory's other items. The digest covers the sessions' names and
// their numbers of messages.
func counts(m Memory) []abi.InventoryKind {
	kind := abi.InventoryKind{Kind: "message"}
	var digest sdk.Digest
	for _, s := range Sessions(m.Common().State) {
		held := s.Messages - s.Forgotten
		kind.Count += held
		digest.Add(s.key + " " + sdk.Itoa(held) + "\n")
	}
	kind.Digest = digest.Hex()
	return append([]abi.InventoryKind{kind}, m.Counts()...)
}

// Health requests the endpoint's models, which shows whether it is up and accepts the key. Without it, events are still
// stored.
func (p *Plugin) Health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	return serve(p, c, func(_ Memory, b *Base) *abi.BackendHealth { return b.Model.Health(c, b.Config, p.Types) })
}

// NativeQuery answers
//
//	files {after}   {path: text}: the scope as the folder that Nanobot itself would have, in pages; trace.details.next is the after of the next page
//	status {}       the sessions with their pointers and failures, and the calls to the model
//	skill {}        {text}: what an agent should know about this memory, for this configuration
//
// and the memory's own. Errors: invalid_argument for an unknown name.
func (p *Plugin) NativeQuery(c *sdk.Call, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	return serve(p, c, func(m Memory, b *Base) *abi.NativeQueryResult {
		answer := &abi.NativeQueryResult{Name: r.Name, Trace: b.Trace(r.Name)}
		var e wirejson.Encoder
		switch r.Name {
		case "files":
			f := newFiles(b, Param(r.Params, "after"))
			m.WriteFiles(f)
			answer.Result = f.end()
			if f.next != "" {
				sdk.Put(&answer.Trace.Details, "next", sdk.Text(f.next))
			}
			return answer
		case "status":
			writeStatus(b.State, &e)
		case "skill":
			text := b.skill(nativeTool(b, p.History), nativeTool(b, m.AgentEdits()))
			object.Write(&e, object.Always("text", &text))
		default:
			if !m.Query(r, &e) {
				b.Fail(abi.NewError(abi.CodeInvalidArgument, "name: want "+p.Queries))
			}
		}
		answer.Result = e.Bytes()
		return answer
	})
}

// nativeTool returns the MCP tool's name for a native query or mutation; "" for none.
func nativeTool(b *Base, name string) string {
	if name == "" {
		return ""
	}
	return b.Config.Provider + "_" + name
}

// NativeMutation does
//
//	import_files {files, continues, done}   takes a workspace of Nanobot, or what files gave, into an empty scope
//
// and the memory's own. Errors: invalid_argument for an unknown name.
func (p *Plugin) NativeMutation(c *sdk.Call, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	return serve(p, c, func(m Memory, b *Base) *abi.MutationReceipt {
		receipt := &abi.MutationReceipt{Status: "no_change", Trace: b.Trace(r.Name)}
		if r.Name == "import_files" {
			importFiles(m, r, receipt)
		} else if !m.Mutate(r, receipt) {
			b.Fail(abi.NewError(abi.CodeInvalidArgument, "name: want "+p.Mutations))
		}
		return receipt
	})
}

// Param returns a string parameter of a native call, or "" if it is absent or of another type.
func Param(params map[string]abi.Raw, name string) string {
	text, err := wirejson.DecodeBytes(params[name]).Str()
	if err != nil {
		return ""
	}
	return text
}

// writeStatus writes the progress of the scope's work.
func writeStatus(s *state.State, e *wirejson.Encoder) {
	usage, _ := model.ReadUsage(s)
	e.ObjStart()
	e.FieldStart("usage")
	e.Raw(usage.JSON())
	e.FieldStart("sessions")
	e.ArrStart()
	for _, session := range Sessions(s) {
		session.writeStatus(e)
	}
	e.ArrEnd()
	e.ObjEnd()
}
