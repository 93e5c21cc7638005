package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

func TestManifestIsValid(t *testing.T) {
	data, err := os.ReadFile("manifest.json")
	require.NoError(t, err)
	var m abi.ModuleManifest
	require.NoError(t, abi.UnmarshalStrict(data, &m))
	require.NoError(t, m.Validate())
}
