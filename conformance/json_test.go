package conformance

import "testing"

// A backend may be sent a form, and may answer with JSON inside a text: what is in them is found as it is elsewhere.
func TestFormsAndInnerJSONAreRead(t *testing.T) {
	const form = "--b\r\ncontent-disposition: form-data; name=\"data\"\r\n\r\na cafe\u0301, \"quoted\"\r\n--b--\r\n"
	if !holdsText(bodyValue([]byte(form)), "a cafe\u0301, \"quoted\"") {
		t.Error("the text of a form is not found")
	}
	if holdsText(bodyValue([]byte(form)), "a caf\u00e9") {
		t.Error("a composed text is found in a form that has it decomposed")
	}
	item, _ := decode([]byte(`{"metadata": "{\"at\": [\"2026-03-01T10:30:00+01:00\"]}"}`))
	for want, is := range map[string]bool{"2026-03-01T09:30:00Z": true, "2026-03-01T10:30:00Z": false} {
		if anywhereInside(item, func(v any) bool { return sameTime(v, want) }) != is {
			t.Errorf("%s is found: %v", want, !is)
		}
	}
}
