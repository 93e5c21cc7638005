package delivery

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/internal/answercheck"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The facts for each row of the table in Decide's comment, which the test parses: a row that is added, changed or
// missing fails.
func TestDecideIsItsTable(t *testing.T) {
	same := Hash{1}
	record := func(is State, status abi.WriteStatus) []*Facts {
		e := &Entry{Hash: same, State: is}
		if status != "" {
			e.Receipt = &abi.WriteReceipt{Status: status}
		}
		return []*Facts{{Hash: same, Known: e}}
	}
	var arrived []*Facts
	for _, status := range []abi.WriteStatus{abi.StatusCommitted, abi.StatusQueued, abi.StatusPending,
		abi.StatusNotRetained} {
		arrived = append(arrived, record(Received, status)...)
	}
	existed := func(found string) []*Facts {
		return []*Facts{{Hash: same, Gap: ScopeExisted, CanFind: true, Lookup: &abi.FindEventAnswer{Found: found}}}
	}
	rows := map[string][]*Facts{
		"is of a test session":                     {{TestSession: true}, {TestSession: true, Forgotten: true}},
		"was forgotten":                            {{Forgotten: true}, {Forgotten: true, Known: &Entry{Hash: same}}},
		"is in the ledger with other content":      {{Known: record(Received, abi.StatusCommitted)[0].Known}},
		"is in the ledger and arrived":             arrived,
		"is in the ledger, nothing was kept of it": record(Empty, abi.StatusNotRetained),
		"and it is to be sent again": {{Hash: same, Retry: true,
			Known: record(Again, abi.StatusCommitted)[0].Known}},
		"is in the ledger as lost":               record(Lost, abi.StatusUncertain),
		"is in the ledger as failed":             record(Failed, abi.StatusCommitted),
		"is in the ledger as sent, no receipt":   record(Sent, ""),
		"is in the ledger, receipt undecided":    append(record(Received, abi.StatusUncertain), record(Received, abi.StatusPartial)...),
		"is in the ledger, a part has arrived":   record(Part, abi.StatusPartial),
		"is new":                                 {{Hash: same}, {Hash: same, CanFind: true}},
		"may have been swept from the ledger":    {{Hash: same, Gap: Swept, CanFind: true}},
		"and the provider cannot look it up":     {{Hash: same, Gap: Swept}},
		"may be in a backend that had the scope": nil, // the rows below it decide
		"and is not looked up":                   {{Gap: ScopeExisted}, {Gap: ScopeExisted, CanFind: true}},
		"and the backend has it":                 existed(answercheck.FoundPresent),
		"and the backend has a part of it":       existed(answercheck.FoundPartial),
		"and the backend does not have it":       existed(answercheck.FoundAbsent),
		"and the backend cannot tell":            existed(answercheck.FoundUnknown),
	}
	text, err := os.ReadFile("decide.go")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "//\t----")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n//\n")
	columns := regexp.MustCompile(`\s{2,}`)
	for _, line := range strings.Split(table, "\n")[1:] {
		row := columns.Split(strings.TrimSpace(strings.TrimPrefix(line, "//")), -1)
		cases, known := rows[row[0]]
		require.True(t, known, "a row without a test: %q", row[0])
		delete(rows, row[0])
		for _, f := range cases {
			require.Len(t, row, 3, "%q", line)
			assert.Equal(t, row[1], string(Decide(f, false)), "%s, alone: %+v", row[0], f)
			assert.Equal(t, row[2], string(Decide(f, true)), "%s, in a batch: %+v", row[0], f)
		}
	}
	require.Empty(t, rows, "rows that the table lacks")
}
