// Package memory is a tiny memory: it notes down what the user says and finds the notes that share a word with a
// question. Two example plugins are made of it, each with a shell of its own: examples/plugins/notes for mh1 and
// examples/plugins/notes_extism for Extism.
package memory

import (
	"slices"
	"strings"
	"unicode"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// Name is the provider's, whichever module serves it.
const Name = "notes"

// SetupScope has nothing to prepare.
func SetupScope(*sdk.Call, *abi.Empty) (*abi.SetupReceipt, error) {
	return &abi.SetupReceipt{Ready: true}, nil
}

// RecordEvent takes a turn in. The log is the scope's own; what is appended is committed together with the receipt,
// or not at all.
func RecordEvent(c *sdk.Call, e *abi.MemoryEvent) (_ *abi.WriteReceipt, err error) {
	for _, m := range e.Messages {
		if m.Role == abi.RoleUser && m.Content != nil && err == nil {
			text := *m.Content
			if m.Name != "" { // of several people, so that the context says who said it
				text = m.Name + ": " + text
			}
			_, err = c.Append("notes", sdk.Text(strings.Join(strings.Fields(text), " ")))
		}
	}
	return &abi.WriteReceipt{EventID: e.EventID, Status: abi.StatusCommitted, NativeIDsKind: abi.NativeIDsNone}, err
}

// Retrieve gives context out: the notes themselves for those who measure, and one text for the agent's prompt. It
// looks at the newest 1000 notes.
func Retrieve(c *sdk.Call, r *abi.RetrieveRequest) (*abi.RetrieveResult, error) {
	page, _, err := c.Read(abi.StateReadRequest{Log: "notes", Reverse: true})
	if err != nil {
		return nil, err
	}
	asked, found := words(r.Query), []abi.RawCall{}
	for _, note := range slices.Backward(page) {
		if slices.ContainsFunc(words(string(note.Data)), func(word string) bool {
			return slices.Contains(asked, word)
		}) {
			found = append(found, abi.RawCall{Route: "notes", Body: note.Data})
		}
	}
	fitted, err := format(c, found, r.Budget)
	result := &abi.RetrieveResult{FormattedContext: fitted.Text,
		Raw: abi.RawResult{Calls: found[fitted.First:fitted.End]},
		Trace: &abi.Trace{BackendName: Name, ResultState: abi.ResultEmpty, FilterMode: abi.FilterNone,
			FiltersApplied: sdk.Filters(sdk.Labels(r), abi.FilterNone), AsOfMode: "ignored"}}
	fitted.Report(result.Trace, r.Budget)
	for i := range result.Raw.Calls {
		result.Trace.ResultState = abi.ResultResults
		result.Evidence = append(result.Evidence, abi.Evidence{Pointer: "/calls/" + string(sdk.Number(int64(i))) +
			"/body",
			Rank: int64(i + 1)})
	}
	fitted.Mark(result.Evidence, fitted.First)
	return result, err
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	})
}

// format fits the notes into the budget; if not all fit, the newest stay. The sdk escapes them: a note cannot close the
// element around it.
func format(c *sdk.Call, notes []abi.RawCall, budget abi.ContextBudget) (sdk.Fitted, error) {
	blocks := make([]sdk.Block, len(notes))
	for i, note := range notes {
		text, err := wirejson.DecodeBytes(note.Body).Str()
		if err != nil {
			return sdk.Fitted{}, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+err.Error())
		}
		blocks[i] = sdk.Block{Item: i, Before: "- ", Text: text}
	}
	config, err := c.Config()
	if err != nil {
		return sdk.Fitted{}, err
	}
	return sdk.ContextOf(config, c.Scope).FitNewest(c, blocks, budget), nil
}

// FormatContext fits an earlier result into a budget; into its own it gives the same text.
func FormatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	fitted, err := format(c, r.Result.Raw.Calls, r.Budget)
	if err != nil {
		return nil, err
	}
	return fitted.Result(r.Result.Evidence), nil
}

// ResetScope forgets the notes.
func ResetScope(c *sdk.Call, _ *abi.Empty) (*abi.ResetReceipt, error) {
	removed, err := c.Delete("")
	return &abi.ResetReceipt{Status: abi.ResetDone, Removed: map[string]*int64{"note": &removed}}, err
}

// Health of the host's own state.
func Health(*sdk.Call, *abi.Empty) (*abi.BackendHealth, error) {
	return &abi.BackendHealth{Status: abi.HealthOK, BackendName: Name, ConsistencyModel: "immediate", Isolation: "hard",
		PetObservability: "weak"}, nil
}
