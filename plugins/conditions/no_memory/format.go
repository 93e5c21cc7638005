package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// formatContext has nothing to format.
func formatContext(*sdk.Call, *abi.FormatRequest) (*abi.FormatResult, error) {
	return &abi.FormatResult{}, nil
}
