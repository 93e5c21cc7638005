package host

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

// The facts behind each row of the table in decide's comment, which is read from there: a row that is added, changed or
// missing fails.
func TestDecideIsItsTable(t *testing.T) {
	same := contentHash{1}
	record := func(is delivery, status abi.WriteStatus) []*facts {
		e := &ledgerEntry{hash: same, state: is}
		if status != "" {
			e.receipt = &abi.WriteReceipt{Status: status}
		}
		return []*facts{{hash: same, known: e}}
	}
	var arrived []*facts
	for _, status := range []abi.WriteStatus{abi.StatusCommitted, abi.StatusQueued, abi.StatusPending,
		abi.StatusNotRetained} {
		arrived = append(arrived, record(deliveryReceived, status)...)
	}
	existed := func(found string) []*facts {
		return []*facts{{hash: same, history: trimmedByLoss, canFind: true, lookup: &abi.FindEventAnswer{Found: found}}}
	}
	rows := map[string][]*facts{
		"is of a test session":                     {{testSession: true}, {testSession: true, forgotten: true}},
		"was forgotten":                            {{forgotten: true}, {forgotten: true, known: &ledgerEntry{hash: same}}},
		"is in the ledger with other content":      {{known: record(deliveryReceived, abi.StatusCommitted)[0].known}},
		"is in the ledger and arrived":             arrived,
		"is in the ledger, nothing was kept of it": record(deliveryEmpty, abi.StatusNotRetained),
		"and it is to be sent again": {{hash: same, retry: true,
			known: record(deliveryAgain, abi.StatusCommitted)[0].known}},
		"is in the ledger as lost":               record(deliveryLost, abi.StatusUncertain),
		"is in the ledger as failed":             record(deliveryFailed, abi.StatusCommitted),
		"is in the ledger as sent, no receipt":   record(deliverySent, ""),
		"is in the ledger, receipt undecided":    append(record(deliveryReceived, abi.StatusUncertain), record(deliveryReceived, abi.StatusPartial)...),
		"is new":                                 {{hash: same}, {hash: same, canFind: true}},
		"may have dropped out of the ledger":     {{hash: same, history: trimmedByRetention, canFind: true}},
		"and the provider cannot look it up":     {{hash: same, history: trimmedByRetention}},
		"may be in a backend that had the scope": nil, // the rows below it say how it goes on
		"and is not looked up":                   {{history: trimmedByLoss}, {history: trimmedByLoss, canFind: true}},
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
			assert.Equal(t, row[1], string(decide(f, false)), "%s, alone: %+v", row[0], f)
			assert.Equal(t, row[2], string(decide(f, true)), "%s, in a batch: %+v", row[0], f)
		}
	}
	require.Empty(t, rows, "rows that the table lacks")
}
