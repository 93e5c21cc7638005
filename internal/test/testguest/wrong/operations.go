package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

func setUp(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	receipt := &abi.SetupReceipt{Ready: true, NativeScope: map[string]string{"scope": s.scopeID(c)}}
	if c.ReadOnly {
		if s.fault == setupErases {
			_, err = s.call(c, "remove_called_read", nil, nil)
		}
		return receipt, err
	}
	answer, err := s.call(c, "create", nil, nil)
	receipt.Existed = sdk.Ptr(strings.Contains(string(answer), "true"))
	return receipt, err
}

func record(c *sdk.Call, e *abi.MemoryEvent) (*abi.WriteReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	answer, err := s.call(c, "add", nil, eventBody(e))
	if err != nil {
		return nil, err
	}
	id, status := field(answer, "id"), field(answer, "status")
	if id == "" {
		return nil, s.unusable("add", &abi.HTTPResponse{Status: 200}, answer)
	}
	receipt := &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted, NativeIDs: []string{id},
		NativeIDsKind: abi.NativeIDsFinal, StoredCount: sdk.Ptr(int64(1))}
	if status == "queued" && s.fault != committedEarly {
		receipt.Status, receipt.StoredCount, receipt.Markers = abi.StatusQueued, nil, []string{id}
	}
	if s.fault == newStatus {
		receipt.Status = "stored"
	}
	return receipt, nil
}

// eventBody is a turn as the backend takes it: one text.
func eventBody(e *abi.MemoryEvent) []byte {
	var lines []string
	for _, m := range e.Messages {
		if m.Content == nil {
			continue
		}
		if text := *m.Content; m.Name != "" { // so that the context says who said it
			lines = append(lines, m.Name+": "+text)
		} else {
			lines = append(lines, text)
		}
	}
	var j wirejson.Encoder
	j.ObjStart()
	for _, f := range [][2]string{{"event_id", e.EventID}, {"text", strings.Join(lines, "\n")},
		{"created_at", e.Timestamp}, {"session", e.SessionID}} {
		j.FieldStart(f[0])
		j.Str(f[1])
	}
	j.FieldStart("labels")
	labels(&j, e.Scenario, e.Context, e.Attribute)
	j.ObjEnd()
	return j.Bytes()
}

func labels(j *wirejson.Encoder, scenario, context, attribute string) {
	j.ObjStart()
	for _, f := range [][2]string{{"scenario", scenario}, {"context", context}, {"attribute", attribute}} {
		if f[1] != "" {
			j.FieldStart(f[0])
			j.Str(f[1])
		}
	}
	j.ObjEnd()
}

func recordAll(c *sdk.Call, b *abi.EventBatch) (*abi.BatchReceipts, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	out := &abi.BatchReceipts{Receipts: make([]abi.ReceiptOrError, len(b.Events))}
	for n := range b.Events {
		i := n
		if s.fault == reorders {
			i = len(b.Events) - 1 - n
		}
		receipt, err := record(c, &b.Events[i])
		if err != nil {
			out.Receipts[i] = abi.ReceiptOrError{EventID: b.Events[i].EventID, Error: abi.AsError(err)}
			continue
		}
		out.Receipts[i] = abi.ReceiptOrError{Receipt: receipt}
	}
	return out, nil
}

// cached is the fault sharedCache: the last answer by session and query.
var cached = map[string][]byte{}

func retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	answer, sent, err := s.search(c, r)
	if err != nil {
		return nil, err
	}
	result := &abi.RetrieveResult{Raw: abi.RawResult{Calls: []abi.RawCall{}}, Trace: &abi.Trace{BackendName: "tiny",
		ResultState: abi.ResultEmpty, AsOfMode: "ignored"}}
	if answer == nil { // no such scope yet
		s.tell(result, r, nil)
		return result, nil
	}
	if s.fault == writesInReads {
		if _, err := s.call(c, "add_called_read", nil, []byte(`{"event_id":"log","text":"somebody asked"}`)); err != nil {
			return nil, err
		}
	}
	items, err := parseItems(answer)
	if err != nil && s.fault != swallowsErrors {
		return nil, s.unusable("search", &abi.HTTPResponse{Status: 200}, answer)
	}
	if s.fault == rewritesRaw {
		answer = append(append([]byte(`{"items":`), tidied(items)...), '}')
	}
	result.Raw.Calls = append(result.Raw.Calls, abi.RawCall{Route: "search", Body: answer})
	for i, it := range items {
		e := abi.Evidence{Pointer: "/calls/0/body/items/" + string(sdk.Number(int64(i))), Rank: int64(i + 1), NativeID: it.id,
			NativeType: it.kind, Text: it.text,
			Score: it.score, CreatedAt: it.createdAt, TimeBasis: abi.TimeEvent, SourceEventIDs: []string{it.eventID}}
		switch s.fault {
		case inventsScores:
			e.Score = sdk.Ptr(0.987654)
		case ranksFromZero:
			e.Rank--
		case badPointers:
			e.Pointer = "/calls/0/body/results/" + string(sdk.Number(int64(i)))
		}
		result.Evidence = append(result.Evidence, e)
		result.Trace.ResultState = abi.ResultResults
	}
	fitted := s.format(c, items, r.Budget)
	result.FormattedContext = fitted.Text
	fitted.Mark(result.Evidence, 0)
	for _, e := range result.Evidence {
		if s.fault == shownElsewhere && e.Shown != nil {
			e.Shown.Start, e.Shown.End = 1, 1+int64(len(e.Text))
		}
	}
	fitted.Report(result.Trace, r.Budget)
	s.tell(result, r, sent)
	switch s.fault {
	case newWords:
		result.Trace.ResultState = "plenty"
	case negativeCounts:
		result.Trace.RetrievedCount = sdk.Ptr(int64(-1))
	}
	return result, nil
}

// search asks the backend. sent is the limit that it got, or was said to get.
func (s *settings) search(c *sdk.Call, r *abi.RetrieveRequest) (answer []byte, sent *int64, err error) {
	key := r.SessionID + "\x00" + r.Query
	if s.fault == sharedCache && cached[key] != nil {
		return cached[key], nil, nil
	}
	var j wirejson.Encoder
	j.ObjStart()
	j.FieldStart("query")
	j.Str(r.Query)
	if sent = r.Budget.MaxItems; sent != nil {
		j.FieldStart("limit")
		if s.fault == ignoresBudget {
			j.Int64(20)
		} else {
			j.Int64(*sent)
		}
	}
	if s.fault == fewItems && sent == nil {
		j.FieldStart("limit")
		j.Int64(20)
	}
	if s.fault == sessionBound {
		j.FieldStart("session")
		j.Str(r.SessionID)
	}
	if s.fault != dropsLabels {
		context := r.Context
		if sdk.CrossContext(r) {
			context = ""
		}
		j.FieldStart("labels")
		labels(&j, r.Scenario, context, r.Attribute)
	}
	j.ObjEnd()
	answer, err = s.call(c, "search", nil, j.Bytes())
	if err != nil && s.fault == swallowsErrors {
		return nil, sent, nil
	}
	if s.fault == sharedCache {
		cached[key] = answer
	}
	return answer, sent, err
}

// tell completes the trace: what became of budget and labels.
func (s *settings) tell(result *abi.RetrieveResult, r *abi.RetrieveRequest, sent *int64) {
	t := result.Trace
	if t.BudgetApplied == nil {
		sdk.Fitted{}.Report(t, r.Budget)
	}
	if sent != nil {
		sdk.Put(&t.BudgetApplied, "max_items", abi.BudgetUse{How: "native", Sent: sent})
	}
	if s.fault == silentLabels {
		return
	}
	asked := sdk.Labels(r)
	t.FilterMode, t.FiltersApplied = abi.FilterNone, sdk.Filters(asked, abi.FilterHard)
	for name := range r.Filters {
		if name != "cross_context" {
			sdk.Put(&t.FiltersApplied, name, string(abi.FilterNone))
		}
	}
	if len(asked) > 0 {
		t.FilterMode = abi.FilterHard
	}
}

// tidied is the items with what seemed to matter.
func tidied(items []item) []byte {
	var j wirejson.Encoder
	j.ArrStart()
	for _, it := range items {
		j.ObjStart()
		for _, f := range [][2]string{{"id", it.id}, {"event_id", it.eventID}, {"text", it.text}, {"type", it.kind},
			{"created_at", it.createdAt}} {
			j.FieldStart(f[0])
			j.Str(f[1])
		}
		if it.score != nil {
			j.FieldStart("score")
			j.Float64(*it.score)
		}
		j.ObjEnd()
	}
	j.ArrEnd()
	return j.Bytes()
}

// formats counts, for the fault unstableFormat.
var formats int64

// format fits the items into the budget. No item gives no text.
func (s *settings) format(c *sdk.Call, items []item, budget abi.ContextBudget) sdk.Fitted {
	if len(items) == 0 {
		return sdk.Fitted{}
	}
	blocks := make([]sdk.Block, len(items))
	for i, it := range items {
		blocks[i] = sdk.Block{Item: i, Before: "- ", Text: sdk.Indent(it.text), When: sdk.Day(it.createdAt)}
		if s.fault == showsIDs {
			blocks[i].Text += " (event " + it.eventID + ")"
		}
	}
	if formats++; s.fault == unstableFormat {
		blocks[0].Text = string(sdk.Number(formats)) + " " + blocks[0].Text
	}
	x := sdk.Context{Backend: "tiny", Scope: c.Scope, Kind: s.kind, Frame: s.frame}
	switch s.fault {
	case nameless:
		x.Backend = "memory"
	case overflows:
		budget = abi.ContextBudget{}
	}
	fitted := x.FitFirst(c, blocks, budget)
	if s.fault == unescaped {
		fitted.Text = strings.ReplaceAll(fitted.Text, "<\\", "<")
	}
	return fitted
}

func formatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	var items []item
	for _, call := range r.Result.Raw.Calls {
		some, err := parseItems(call.Body)
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+err.Error())
		}
		items = append(items, some...)
	}
	return s.format(c, items, r.Budget).Result(r.Result.Evidence), nil
}

func reset(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	switch s.fault {
	case resetTooLittle:
		_, err = s.call(c, "status", nil, nil)
	case resetTooMuch:
		_, err = s.call(c, "remove_prefix", []abi.QueryParam{{Key: "prefix", Value: s.native(c.Scope.RunID) + "-"}}, nil)
	default:
		_, err = s.call(c, "remove", nil, nil)
	}
	return &abi.ResetReceipt{Status: abi.ResetDone, Removed: map[string]*int64{"note": nil}}, err
}

func health(c *sdk.Call, _ *abi.Empty) (*abi.BackendHealth, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	answer, err := s.call(c, "health", nil, nil)
	if err != nil {
		return nil, err
	}
	if field(answer, "status") == "" {
		return nil, s.unusable("health", &abi.HTTPResponse{Status: 200}, answer)
	}
	return &abi.BackendHealth{Status: abi.HealthStatus(field(answer, "status")), BackendName: "tiny",
		BackendVersion:   field(answer, "version"),
		ConsistencyModel: "immediate", Isolation: "hard", PetObservability: "strong"}, nil
}

func readiness(c *sdk.Call, _ *abi.ReadinessMarkers) (*abi.BackendReadiness, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	answer, err := s.call(c, "status", nil, nil)
	if err != nil {
		return nil, err
	}
	ready := &abi.BackendReadiness{Status: abi.ReadinessReady, Method: "status"}
	if answer != nil && !strings.Contains(string(answer), `"pending":0`) {
		ready.Status = abi.ReadinessPending
	}
	return ready, nil
}

func findEvent(c *sdk.Call, r *abi.FindEventRequest) (*abi.FindEventAnswer, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	waiting, err := readiness(c, nil)
	if err != nil {
		return nil, err
	}
	found := &abi.FindEventAnswer{Found: "absent"}
	if waiting.Status == abi.ReadinessPending || s.fault == unsureEvents { // it may be in the queue, which cannot be read
		found.Found, found.RetryAfterMS = "unknown", sdk.Ptr(int64(100))
	}
	answer, err := s.call(c, "list", []abi.QueryParam{{Key: "event_id", Value: r.EventID}}, nil)
	if err != nil {
		return nil, err
	}
	if answer == nil || s.fault == deniesEvents || s.fault == unsureEvents {
		return found, nil
	}
	items, err := parseItems(answer)
	if err != nil {
		return nil, s.unusable("list", &abi.HTTPResponse{Status: 200}, answer)
	}
	for _, it := range items {
		found.Found = "present"
		found.NativeIDs = append(found.NativeIDs, it.id)
	}
	return found, nil
}

// forget removes the items of the events that a request means.
func forget(c *sdk.Call, r *abi.ForgetRequest) (*abi.ForgetReceipt, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	receipt := &abi.ForgetReceipt{Status: abi.ForgetDone, Removed: map[string][]string{"note": {}}}
	answer, err := s.call(c, "list", nil, nil)
	if err != nil || answer == nil || s.fault == forgetsNothing {
		return receipt, err
	}
	items, err := parseItems(answer)
	if err != nil {
		return nil, s.unusable("list", &abi.HTTPResponse{Status: 200}, answer)
	}
	for _, it := range items {
		meant := slices.Contains(r.EventIDs, it.eventID) || slices.Contains(r.NativeIDs, it.id) ||
			sdk.Forgets(r, it.session, it.createdAt)
		if !meant && s.fault != forgetsTooMuch {
			continue
		}
		remove := abi.HTTPRequest{Route: "remove_item", Params: map[string]string{"scope": s.scopeID(c), "id": it.id}}
		if _, err := s.send(c, remove, nil); err != nil {
			return nil, err
		}
		receipt.Removed["note"] = append(receipt.Removed["note"], it.id)
	}
	if s.fault == forgetsOnce && len(receipt.Removed["note"]) == 0 {
		return nil, abi.NewError(abi.CodeNotFound, "there is nothing to forget")
	}
	return receipt, nil
}

func inventory(c *sdk.Call, _ *abi.Empty) (*abi.Inventory, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	answer, err := s.call(c, "list", nil, nil)
	if err != nil {
		return nil, err
	}
	var ids []string
	if answer != nil {
		items, err := parseItems(answer)
		if err != nil {
			return nil, s.unusable("list", &abi.HTTPResponse{Status: 200}, answer)
		}
		for _, it := range items {
			ids = append(ids, it.id)
		}
	}
	slices.Sort(ids)
	var digest sdk.Digest
	for _, id := range ids {
		digest.Add(id + "\n")
	}
	return &abi.Inventory{Kinds: []abi.InventoryKind{{Kind: "note", Count: int64(len(ids)), Digest: digest.Hex()}},
		Complete: true, Quiescent: true}, nil
}

// provenance pages through the items that a request means, by their place in the list.
func provenance(c *sdk.Call, r *abi.ProvenanceRequest) (*abi.Provenance, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	answer, err := s.call(c, "list", nil, nil)
	if err != nil || answer == nil {
		return &abi.Provenance{}, err
	}
	items, err := parseItems(answer)
	if err != nil {
		return nil, s.unusable("list", &abi.HTTPResponse{Status: 200}, answer)
	}
	items = slices.DeleteFunc(items, func(it item) bool {
		times := abi.ForgetRequest{From: r.From, To: r.To}
		return it.id != r.NativeID && it.eventID != r.EventID && !sdk.Forgets(&times, "", it.createdAt)
	})
	first, _ := strconv.Atoi(r.Cursor)
	items = items[min(first, len(items)):]
	found := &abi.Provenance{}
	for i, it := range items {
		if r.Limit > 0 && int64(i) == r.Limit {
			found.NextCursor = strconv.Itoa(first + i)
			break
		}
		var j wirejson.Encoder
		j.ObjStart()
		j.FieldStart("id")
		j.Str(it.id)
		j.FieldStart("text")
		j.Str(it.text)
		j.ObjEnd()
		found.Items = append(found.Items, abi.ProvenanceItem{Native: j.Bytes(), Evidence: abi.Evidence{Rank: int64(i + 1),
			NativeID: it.id, Text: it.text, CreatedAt: it.createdAt, SourceEventIDs: []string{it.eventID}}})
	}
	return found, nil
}

// query knows one query: status.
func query(c *sdk.Call, r *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	if s.fault == queryWrites {
		_, _ = s.call(c, "add_called_read", nil, []byte(`{"event_id":"log","text":"somebody asked"}`))
	}
	if r.Name != "status" {
		return nil, abi.NewError(abi.CodeInvalidArgument, "name: the one query is status")
	}
	answer, err := s.call(c, "status", nil, nil)
	if answer == nil {
		answer = []byte("null")
	}
	return &abi.NativeQueryResult{Name: r.Name, Result: answer}, err
}
