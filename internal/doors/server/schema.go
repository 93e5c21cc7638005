package server

import (
	"compress/flate"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/doors/server/wire"
)

const schemaPrefix = "#/components/schemas/"

// newRegistry makes schemas from the Go types, with corrections for types whose JSON form differs from what reflection
// shows.
func newRegistry() huma.Registry {
	r := huma.NewMapRegistry(schemaPrefix, schemaName)
	r.RegisterTypeAlias(reflect.TypeFor[abi.Raw](), reflect.TypeFor[anyJSON]())
	r.RegisterTypeAlias(reflect.TypeFor[abi.ReceiptOrError](), reflect.TypeFor[receiptOrError]())
	return r
}

// schemaName is a type's name in the document.
func schemaName(t reflect.Type, hint string) string {
	if t == reflect.TypeFor[abi.Error]() || t == reflect.TypeFor[*abi.Error]() {
		return "AdapterError"
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// anyJSON stands for abi.Raw.
type anyJSON struct{}

var _ huma.SchemaProvider = anyJSON{}

// Schema implements huma.SchemaProvider. Any JSON value has the schema without constraints.
func (anyJSON) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "Any JSON value."}
}

// receiptOrError stands for abi.ReceiptOrError.
type receiptOrError struct{}

var _ huma.SchemaProvider = receiptOrError{}

// Schema implements huma.SchemaProvider.
func (receiptOrError) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{Description: "A receipt, or an event id with what went wrong.",
		OneOf: []*huma.Schema{r.Schema(reflect.TypeFor[abi.WriteReceipt](), true, ""),
			r.Schema(reflect.TypeFor[EventError](), true, "")}}
}

// EventError is the JSON form of an abi.ReceiptOrError with an error. It is exported for reflection.
type EventError struct {
	EventID string     `json:"event_id"`
	Error   *abi.Error `json:"error"`
}

// words are the possible values of fields that are plain strings in Go, by type and JSON name.
func words() map[string][]string {
	return map[string][]string{
		"BackendHealth.consistency_model": {"immediate", "eventual", "async_derived"},
		"BackendHealth.isolation":         {"hard", "filtered", "unverified"},
		"BackendHealth.pet_observability": {"strong", "partial", "weak"},
		"BudgetUse.how":                   {"native", "fixed", "advisory", "formatter"},
		"FeedbackReceipt.status":          {"applied", "no_change", "queued", "skipped_read_only"},
		"IO.class":                        {"read", "write", "admin"},
		"Liveness.service":                {wire.Service},
		"ModeReceipt.enforced_by":         {"host"},
		"MutationReceipt.status":          {"applied", "no_change", "rejected", "skipped_read_only"},
		"RunManifest.clock":               {"real", "virtual"},
		"RunManifest.smoke":               {"auto", "always", "never"},
		"RunStep.verdict":                 {"pass", "fail", "pending", "skipped"},
		"SmokeVerdict.verdict":            {"pass", "fail", "pending", "inconclusive", "skipped"},
		"Trace.as_of_mode":                {"native", "ignored"},
		"Trace.consistency":               {"committed", "queued", "pending"},
	}
}

// times are the fields that are always RFC 3339: those for which a request can be rejected, and those that the host
// writes.
func times() []string {
	return []string{"MemoryEvent.timestamp", "MemoryFeedback.timestamp", "RetrieveRequest.as_of",
		"ProvenanceRequest.from", "ProvenanceRequest.to",
		"ModeReceipt.since", "RunManifest.serving_since", "ScopeMapping.since"}
}

// finish adds to the schemas what reflection cannot know: values, comments, times, and which objects may have further
// fields.
func finish(r huma.Registry, requests []reflect.Type) {
	strict := reachable(requests)
	types, fields := readComments()
	f := finisher{words: words(), enums: enums(), comments: fields, times: times()}
	for name, s := range r.Map() {
		t := r.TypeFromRef(schemaPrefix + name)
		if s.Description == "" {
			s.Description = types[t.Name()]
		}
		// A request with an unknown field is rejected. An answer may have more fields than are known today.
		s.AdditionalProperties = nil
		if strict[t] {
			s.AdditionalProperties = false
		}
		f.fields(t, s)
	}
}

// readComments decodes the comments: of types, and of fields by type and JSON name.
func readComments() (types map[string]string, fields map[string]map[string]string) {
	types, fields = map[string]string{}, map[string]map[string]string{}
	of := ""
	// The text is generated. If it were damaged, TestTheDocumentIsAsItWas would fail.
	text, _ := io.ReadAll(flate.NewReader(strings.NewReader(comments)))
	for line := range strings.Lines(string(text)) {
		name, about, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if name != "" {
			of, types[name], fields[name] = name, about, map[string]string{}
			continue
		}
		name, about, _ = strings.Cut(about, "\t")
		fields[of][name] = about
	}
	return types, fields
}

type finisher struct {
	words    map[string][]string
	enums    map[string][]string
	comments map[string]map[string]string
	times    []string
}

func (f *finisher) fields(t reflect.Type, s *huma.Schema) {
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			f.fields(field.Type, s)
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		p := s.Properties[name]
		if p == nil {
			continue
		}
		if about := f.comments[t.Name()][name]; about != "" {
			p.Description = about
		}
		f.value(t.Name()+"."+name, field.Type, p)
	}
	if t == reflect.TypeFor[abi.Message]() {
		// Absent and null mean the same, and a message that only calls tools has no content.
		s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return name == "content" })
	}
}

// value describes the values of a field, or of the elements of its list.
func (f *finisher) value(path string, t reflect.Type, p *huma.Schema) {
	if t.Kind() == reflect.Slice && p.Items != nil {
		p.Nullable = false // the codecs encode an empty list as []
		f.value(path, t.Elem(), p.Items)
		return
	}
	list := f.words[path]
	if list == nil && t.Kind() == reflect.String {
		list = f.enums[t.Name()]
	}
	for _, word := range list {
		p.Enum = append(p.Enum, word)
	}
	if slices.Contains(f.times, path) {
		p.Format = "date-time"
	}
}

// reachable collects the struct types that occur in roots.
func reachable(roots []reflect.Type) map[reflect.Type]bool {
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(t.Elem())
		case reflect.Struct:
			if seen[t] {
				return
			}
			seen[t] = true
			for i := range t.NumField() {
				if t.Field(i).IsExported() {
					walk(t.Field(i).Type)
				}
			}
		}
	}
	for _, t := range roots {
		walk(t)
	}
	return seen
}
