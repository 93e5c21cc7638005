package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheCommittedFileIsOfTheseSources(t *testing.T) {
	want, err := Generate("../../../../abi", "../wire")
	require.NoError(t, err)
	got, err := os.ReadFile("../fields_gen.go")
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "go generate ./internal/doors/server writes it anew")
}
