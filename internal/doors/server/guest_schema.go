package server

import (
	"reflect"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
)

// crossing is the request and answer of a call across the border of a guest. nil means nothing, or bytes.
type crossing struct{ request, answer abi.Encodable }

// exports returns the operations of a guest. A request is the body of the envelope.
func exports() map[string]crossing {
	return map[string]crossing{
		abi.OpHealth:         {&abi.Empty{}, &abi.BackendHealth{}},
		abi.OpSetupScope:     {&abi.Empty{}, &abi.SetupReceipt{}},
		abi.OpRecordEvent:    {&abi.MemoryEvent{}, &abi.WriteReceipt{}},
		abi.OpRecordEvents:   {&abi.EventBatch{}, &abi.BatchReceipts{}},
		abi.OpRetrieve:       {&abi.RetrieveRequest{}, &abi.RetrieveResult{}},
		abi.OpFormatContext:  {&abi.FormatRequest{}, &abi.FormatResult{}},
		abi.OpResetScope:     {&abi.Empty{}, &abi.ResetReceipt{}},
		abi.OpReadiness:      {&abi.ReadinessMarkers{}, &abi.BackendReadiness{}},
		abi.OpWaitUntilReady: {&abi.WaitRequest{}, &abi.BackendReadiness{}},
		abi.OpFindEvent:      {&abi.FindEventRequest{}, &abi.FindEventAnswer{}},
		abi.OpApplyFeedback:  {&abi.MemoryFeedback{}, &abi.FeedbackReceipt{}},
		abi.OpForget:         {&abi.ForgetRequest{}, &abi.ForgetReceipt{}},
		abi.OpProvenance:     {&abi.ProvenanceRequest{}, &abi.Provenance{}},
		abi.OpNativeQuery:    {&abi.NativeQuery{}, &abi.NativeQueryResult{}},
		abi.OpNativeMutation: {&abi.NativeMutation{}, &abi.MutationReceipt{}},
		abi.OpInventory:      {&abi.Empty{}, &abi.Inventory{}},
	}
}

// imports returns the calls of a guest whose arguments or answers are JSON.
func imports() map[string]crossing {
	return map[string]crossing{
		"config":       {nil, &abi.GuestConfig{}},
		"http_send":    {&abi.HTTPRequest{}, &abi.HTTPResponse{}},
		"bolt_run":     {&abi.BoltRequest{}, &abi.BoltResult{}},
		"state_get":    {nil, &abi.StateVersion{}},
		"state_put":    {nil, &abi.StateVersion{}},
		"state_delete": {nil, &abi.StateDeleted{}},
		"state_list":   {&abi.StateListRequest{}, &abi.StateList{}},
		"state_append": {nil, &abi.StateSeq{}},
		"state_read":   {&abi.StateReadRequest{}, &abi.StateEntries{}},
	}
}

// GuestSchema is the JSON Schema (2020-12) of everything that crosses the border of a guest, made from the Go types:
// the module's manifest, the envelope, errors, and below "exports" and "imports" which types an operation and an import
// have. docs/schemas/guest.schema.json is a copy.
func GuestSchema() ([]byte, error) {
	r := newRegistry()
	ref := func(v abi.Encodable) map[string]any {
		return map[string]any{"$ref": r.Schema(reflect.TypeOf(v), true, "").Ref}
	}
	describe := func(list map[string]crossing) map[string]any {
		all := map[string]any{}
		for name, c := range list {
			one := map[string]any{}
			if c.request != nil {
				one["request"] = ref(c.request)
			}
			if c.answer != nil {
				one["answer"] = ref(c.answer)
			}
			all[name] = one
		}
		return all
	}
	doc := map[string]any{"title": "memhost guest contract", "envelope": ref(&abi.Envelope{}),
		"error": ref(&abi.Error{}), "manifest": ref(&abi.ModuleManifest{}), "exports": describe(exports()),
		"imports": describe(imports())}
	for name, s := range r.Map() {
		s.Required = slices.DeleteFunc(s.Required, func(field string) bool {
			return filledIn(r.TypeFromRef(schemaPrefix+name), field)
		})
	}
	return writeSchema(r, doc)
}

// filledIn reports whether the host fills in a field that a guest leaves out.
func filledIn(t reflect.Type, name string) bool {
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		if field, _, _ := strings.Cut(tag.Get("json"), ","); field == name {
			return slices.Contains(strings.Split(tag.Get("codec"), ","), "host")
		}
	}
	return false
}
