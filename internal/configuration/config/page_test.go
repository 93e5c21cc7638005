package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/memhost/memhost/internal/configuration/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestThePageHasEveryKey: the table in docs/configure.md is made of memhost.schema.json. -update writes it.
func TestThePageHasEveryKey(t *testing.T) {
	const page, start, end = "../../../docs/configure.md", "## Every key\n\n", "\nEvery key has an environment variable"
	raw, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(raw), start)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	var table strings.Builder
	table.WriteString("| key | default | flag | takes | |\n|---|---|---|---|---|\n")
	for _, k := range config.Keys() {
		flag := ""
		if k.Flag != "" {
			flag = "`--" + k.Flag + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s | %s |\n", k.Path, shownDefault(k.Default), flag, k.Wants, k.Page)
	}
	want := before + start + table.String() + end + after
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(raw), "run go test ./internal/configuration/config -update")
}

func shownDefault(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case []string:
		return "`[]`"
	case string:
		if v == "" {
			return "empty"
		}
		return "`" + v + "`"
	case bool:
		return fmt.Sprintf("`%v`", v)
	}
	return fmt.Sprint(v)
}
