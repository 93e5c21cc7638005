package egress

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEffectOfAStatementThatWrites(t *testing.T) {
	for name, c := range map[string]struct {
		statement string
		err       error
		want      Effect
	}{
		"done":                               {liesStatement, nil, EffectDone},
		"done, and a row too large":          {liesStatement, errRowTooLarge, EffectDone},
		"done, and a value without spelling": {liesStatement, &rowError{"x"}, EffectDone},
		"no connection":                      {liesStatement, &unsentError{io.EOF}, EffectNone},
		"refused": {liesStatement,
			&Failure{"Neo.ClientError.Schema.ConstraintValidationFailed", ""}, EffectNone},
		"a fault of the database": {liesStatement,
			&Failure{"Neo.DatabaseError.Transaction.TransactionCommitFailed", ""}, EffectUnknown},
		"a passing fault": {liesStatement,
			&Failure{"Neo.TransientError.Transaction.DeadlockDetected", ""}, EffectUnknown},
		"a connection that broke": {liesStatement, io.EOF, EffectUnknown},
		"transactions of its own": {"MATCH (n) CALL (n) { DELETE n } IN TRANSACTIONS",
			&Failure{"Neo.ClientError.Schema.ConstraintValidationFailed", ""},
			EffectUnknown},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, boltEffect(c.statement, c.err)) })
	}
}
