// Package memoryfiles writes the memory of a scope as files: what a provider's native query "files" returns, in a folder
// that may be a git repository.
//
// Reading order: files.go (the query, a folder), git.go, gitversions.go and gitledger.go (a repository), names.go (ids
// as names of folders), live.go (copies that follow every commit), copy.go (one such copy).
package memoryfiles

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/memhost/memhost/abi"
)

// Query is the native query that returns a scope's files.
const Query = "files"

// Querier is the part of the contract that this package needs.
type Querier interface {
	NativeQuery(ctx context.Context, q *abi.NativeQuery) (*abi.NativeQueryResult, error)
}

// Of requests all pages of the query "files": an object of texts by path, with the start of the next page in
// trace.details.next. A path that occurs again is continued.
func Of(ctx context.Context, d Querier, scope abi.MemoryScope) (map[string]string, error) {
	files := map[string]string{}
	params := map[string]abi.Raw{}
	for {
		page, err := d.NativeQuery(ctx, &abi.NativeQuery{Scope: scope, Name: Query, Params: params})
		if err != nil {
			return nil, err
		}
		var part map[string]string
		if err := json.Unmarshal(page.Result, &part); err != nil {
			return nil, abi.NewError(abi.CodeBackend, "files: "+err.Error())
		}
		for path, text := range part {
			files[path] += text
		}
		if page.Trace == nil || len(page.Trace.Details["next"]) == 0 {
			return files, nil
		}
		params["after"] = page.Trace.Details["next"]
	}
}

// Write writes files into an existing folder.
//
// Errors: a path that leaves the folder.
func Write(dir string, files map[string]string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := makeParent(root, path); err != nil {
			return err
		}
		if err := root.WriteFile(filepath.FromSlash(path), []byte(files[path]), 0o600); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func makeParent(root *os.Root, path string) error {
	parent := filepath.Dir(filepath.FromSlash(path))
	if parent == "." {
		return nil
	}
	return root.MkdirAll(parent, 0o700)
}
