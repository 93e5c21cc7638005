package report_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/doors/server/servertest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type codable[T any] interface {
	*T
	abi.Encodable
	abi.Decodable
}

func readsBack[T any, P codable[T]](t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x, y, std := servertest.Random[T](rt, "value"), new(T), new(T)
		text := abi.Marshal(P(x))
		require.NoError(rt, abi.UnmarshalStrict(text, P(y)), "%s", text)
		require.Equal(rt, x, y)
		require.NoError(rt, json.Unmarshal(text, std), "%s", text)
		require.Equal(rt, x, std)
	})
}

func TestWhatIsWrittenIsReadBackEqual(t *testing.T) {
	types := map[string]func(t *testing.T){
		"ArchiveStats":         readsBack[report.ArchiveStats],
		"ArchiveRequest":       readsBack[report.ArchiveRequest],
		"ArchivePage":          readsBack[report.ArchivePage],
		"ArchiveReceipt":       readsBack[report.ArchiveReceipt],
		"ArchiveCheck":         readsBack[report.ArchiveCheck],
		"Backfill":             readsBack[report.Backfill],
		"BackfillEvents":       readsBack[report.BackfillEvents],
		"BackfillServe":        readsBack[report.BackfillServe],
		"BackfillStop":         readsBack[report.BackfillStop],
		"BackfillPlan":         readsBack[report.BackfillPlan],
		"Capabilities":         readsBack[report.Capabilities],
		"Cluster":              readsBack[report.Cluster],
		"LateWrite":            readsBack[report.LateWrite],
		"OpenEvent":            readsBack[report.OpenEvent],
		"PersonaReceipt":       readsBack[report.PersonaReceipt],
		"PersonaRequest":       readsBack[report.PersonaRequest],
		"RunManifest":          readsBack[report.RunManifest],
		"RunStep":              readsBack[report.RunStep],
		"ShadowAnswer":         readsBack[report.ShadowAnswer],
		"ShadowAnswers":        readsBack[report.ShadowAnswers],
		"ShadowAnswersRequest": readsBack[report.ShadowAnswersRequest],
		"ShadowList":           readsBack[report.ShadowList],
	}
	source, err := os.ReadFile("codecs.go")
	require.NoError(t, err)
	for _, coded := range regexp.MustCompile(`func \(x \*(\w+)\) Encode`).FindAllSubmatch(source, -1) {
		require.Contains(t, types, string(coded[1]))
	}
	for name, test := range types {
		t.Run(name, test)
	}
}

func TestRequestsAreChecked(t *testing.T) {
	scope := &abi.MemoryScope{RunID: "r"}
	for want, request := range map[string]interface{ Validate() error }{
		"after: negative":                     &report.ArchiveRequest{After: -1},
		"limit: negative":                     &report.ArchiveRequest{Limit: -1},
		"scope: want the scope of the events": &report.ArchiveRequest{EventID: "e"},
		"event_ids: want event_id or event_ids, not both": &report.ArchiveRequest{EventID: "e", EventIDs: []string{"f"},
			Scope: &abi.MemoryScope{RunID: "r", PersonaID: "u"}},
		"event_ids: got 501, want at most 500": &report.ArchiveRequest{EventIDs: make([]string, 501),
			Scope: &abi.MemoryScope{RunID: "r", PersonaID: "u"}},
		"scope.persona_id: ":   &report.ArchiveRequest{EventID: "e", Scope: scope},
		"limit: want 0 to 500": &report.ShadowAnswersRequest{Limit: 501},
		"scope.persona_id:":    &report.ShadowAnswersRequest{Scope: scope},
		"persona_id: ":         &report.PersonaRequest{RunID: "r"},
	} {
		err := request.Validate()
		require.Equal(t, abi.CodeInvalidArgument, abi.CodeOf(err), want)
		require.True(t, strings.HasPrefix(abi.AsError(err).Message, want), "%s: %s", want, err)
	}
	require.NoError(t, new(report.ArchiveRequest).Validate())
	require.NoError(t, new(report.ShadowAnswersRequest).Validate())
	require.NoError(t, (&report.PersonaRequest{PersonaID: "ann"}).Validate())
}
