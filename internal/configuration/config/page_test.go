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

// TestThePageHasEveryKey: docs/reference/configuration.md is generated from memhost.schema.json. -update writes it.
func TestThePageHasEveryKey(t *testing.T) {
	const path = "../../../docs/reference/configuration.md"
	var page strings.Builder
	page.WriteString("# Configuration keys\n\nGenerated from `memhost.schema.json`. `go test ./internal/configuration/config -run " +
		"TestThePageHasEveryKey -update` writes this page.\n\nHow to set them: [configure.md](../configure.md). The keys of a provider's " +
		"block: [providers.md](providers.md).\n\n| key | default | flag | takes | |\n|---|---|---|---|---|\n")
	// The schema's links are relative to docs.
	links := strings.NewReplacer("](#", "](../configure.md#", "](", "](../")
	for _, k := range config.Keys() {
		flag := ""
		if k.Flag != "" {
			flag = "`--" + k.Flag + "`"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", k.Path, shownDefault(k.Default), flag, k.Wants, links.Replace(k.Page))
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(page.String()), 0o644))
	}
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, page.String(), string(raw), "run go test ./internal/configuration/config -run TestThePageHasEveryKey -update")
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
