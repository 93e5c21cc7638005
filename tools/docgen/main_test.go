package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheCommittedFileIsOfTheseSources(t *testing.T) {
	want, err := Generate("../../abi", "../../host/report", "../../internal/doors/server/wire")
	require.NoError(t, err)
	got, err := os.ReadFile("../../internal/doors/server/fields_gen.go")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "make generate writes it anew")
}
