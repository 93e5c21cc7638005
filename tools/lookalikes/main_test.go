package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheCommittedTablesAreUpToDate(t *testing.T) {
	want, err := Generate()
	require.NoError(t, err)
	got, err := os.ReadFile("../../abi/lookalikes_gen.go")
	require.NoError(t, err)
	require.True(t, string(want) == string(got), "run: go generate ./abi")
}
