package abi

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sources parses the package without its tests.
func sources(t *testing.T) map[string]*ast.File {
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	files := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := goparser.ParseFile(token.NewFileSet(), name, nil, goparser.SkipObjectResolution)
		require.NoError(t, err)
		files[name] = file
	}
	return files
}

// structsWithCodecs are the exported types that have a method Decode.
func structsWithCodecs(t *testing.T) []string {
	var names []string
	for _, file := range sources(t) {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == "Decode" {
				if name := f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name; ast.IsExported(name) {
					names = append(names, name)
				}
			}
		}
	}
	require.NotEmpty(t, names)
	return names
}

// TestDeps rejects imports that TinyGo cannot build, or builds only with reflection: encoding/json, fmt, reflect, net.
func TestDeps(t *testing.T) {
	allowed := map[string]bool{"bytes": true, "errors": true, "io": true, "slices": true, "strconv": true,
		"strings":       true,
		"time":          true,
		"unicode/utf16": true, "unicode/utf8": true, "unsafe": true, "github.com/memhost/memhost/abi/wirejson": true}
	for name, file := range sources(t) {
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			require.True(t, allowed[path], "%s imports %s", name, path)
		}
	}
}
