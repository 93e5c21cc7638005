package abi

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTextsAreSortedInByteOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOf(rapid.String()).Draw(t, "list")
		want := slices.Clone(list)
		slices.Sort(want)
		SortTexts(list)
		require.Equal(t, want, list)
	})
}

// TestAnErrorIsFoundAsPackageErrorsFindsIt covers errors that are wrapped, joined, or made by an As method.
func TestAnErrorIsFoundAsPackageErrorsFindsIt(t *testing.T) {
	e := NewError(CodeConflict, "x")
	for name, err := range map[string]error{
		"itself":  e,
		"wrapped": fmt.Errorf("a: %w", fmt.Errorf("b: %w", e)),
		"joined":  errors.Join(errors.New("other"), fmt.Errorf("b: %w", e)),
		"made":    fmt.Errorf("a: %w", &fieldError{}),
		"none":    errors.Join(errors.New("other"), fmt.Errorf("b: %w", errors.New("c"))),
		"nil":     nil,
	} {
		var want *Error
		is := errors.As(err, &want)
		got, ok := find[*Error](err)
		assert.Equal(t, is, ok, name)
		assert.Equal(t, want, got, name)
	}
}
