package whose_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/text/whose"
)

func TestRename(t *testing.T) {
	for _, c := range []struct{ name, body, want, hint string }{
		{"a scope in a request", `{"query":"<tea>?","scope":{"run_id":"r","user_id":"ann"}}`,
			`{"query":"<tea>?","scope":{"persona_id":"ann","run_id":"r"}}`,
			"scope.user_id was read as scope.persona_id"},
		{"a scope that is the request", `{"run_id":"r","user_id":"ann"}`, `{"persona_id":"ann","run_id":"r"}`,
			"user_id was read as persona_id"},
		{"an event", `{"event_id":"e","persona_id":"ann"}`, `{"event_id":"e","user_id":"ann"}`,
			"persona_id was read as user_id"},
		{"events of a batch", `{"events":[{"persona_id":"ann"},{"user_id":"bob"}]}`,
			`{"events":[{"user_id":"ann"},{"user_id":"bob"}]}`,
			"events[0].persona_id was read as events[0].user_id"},
		{"the right names", `{"scope":{"run_id":"r","persona_id":"ann"}}`,
			`{"scope":{"run_id":"r","persona_id":"ann"}}`, ""},
		{"both", `{"scope":{"user_id":"a","persona_id":"b"}}`, `{"scope":{"user_id":"a","persona_id":"b"}}`, ""},
		{"what a user says", `{"messages":[{"content":"my user_id"}],"metadata":{"persona_id":1}}`,
			`{"messages":[{"content":"my user_id"}],"metadata":{"persona_id":1}}`, ""},
		{"no object", `["user_id"]`, `["user_id"]`, ""},
		{"no JSON", `{"user_id"`, `{"user_id"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, hint := whose.Rename([]byte(c.body))
			require.Equal(t, c.want, string(got))
			require.Equal(t, c.hint, hint)
		})
	}
}
