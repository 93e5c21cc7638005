package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePageIsThatOfTheProgram(t *testing.T) {
	root := filepath.Join("..", "..")
	want, err := report(root)
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "licences.md"))
	require.NoError(t, err)
	require.Equal(t, string(want), string(page), "go -C tools run ./licences -C .. writes it anew")
}

func TestAModuleWithoutAKnownLicenceIsAnError(t *testing.T) {
	dir := t.TempDir()
	_, err := licences(dir)
	require.ErrorContains(t, err, "state no licence")
	for text, want := range map[string]string{
		"All rights reserved.": "state no licence",
		"GNU GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007":  "gnu general public license",
		"GNU Affero General\nPublic License version 3 or later":   "gnu affero general public license",
		"Apache License\nVersion 2.0, January 2004":               "",
		"Redistribution and use in source and binary forms, with": "",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "LICENSE"), []byte(text), 0o600))
		found, err := licences(dir)
		if want == "" {
			require.NoError(t, err)
			require.Len(t, found, 1)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}
