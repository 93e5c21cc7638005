package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
)

// The pages of warnings and errors take what a code means from testdata/codes, and from the code which codes there are
// and who gives them.

// codeRow is a line of testdata/codes: one or more codes that mean the same, and the cells of the table after them.
type codeRow struct{ codes, cells []string }

func codeRows(t *testing.T, name string) []codeRow {
	text, err := os.ReadFile(filepath.Join("testdata", "codes", name+".tsv"))
	require.NoError(t, err)
	var rows []codeRow
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.True(t, len(cells) > 1 && !slices.Contains(cells, ""), "%s: a line lacks a cell: %q", name, line)
		rows = append(rows, codeRow{strings.Split(cells[0], ", "), cells[1:]})
	}
	return rows
}

// quoted writes codes for a cell of a table.
func quoted(codes []string) string { return "`" + strings.Join(codes, "`, `") + "`" }

// errorsPage lists the error codes, and the reasons that refine them.
func errorsPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString(generatedFrom("Errors", "package `abi`, the reasons in the code, and cmd/memhost/testdata/codes") + `
` + "`code`" + ` is the class of an error, ` + "`reason`" + ` refines it. Both are stable; the text is for people. If an entry does not say what to
do, nothing has to be done. Plugins from elsewhere have reasons of their own.

## Codes

| code | HTTP status | retryable | what it means |
|---|---|---|---|
`)
	about := map[string]string{}
	for _, row := range codeRows(t, "errors") {
		about[row.codes[0]] = row.cells[0]
	}
	for _, code := range abi.Codes() {
		status := fmt.Sprint(code.HTTPStatus(false))
		if behind := code.HTTPStatus(true); behind != code.HTTPStatus(false) {
			status += fmt.Sprintf("; %d if the backend refused the slot", behind)
		}
		retryable := map[bool]string{true: "yes, unless the error says no", false: "no"}[abi.NewError(code, "").Retryable]
		assert.Contains(t, about, string(code))
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", code, status, retryable, about[string(code)])
	}
	b.WriteString("\n## Reasons\n\n| reason | code | what it means, and what to do |\n|---|---|---|\n")
	uses := codesInTheSource(t)
	listed := map[string]bool{}
	for _, row := range codeRows(t, "reasons") {
		for _, code := range row.codes {
			listed[code] = true
			assert.NotNil(t, uses.exact[code], "the code has no reason %q: take it out of cmd/memhost/testdata/codes", code)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", quoted(row.codes), quoted(strings.Split(row.cells[0], ", ")), row.cells[1])
	}
	for _, reason := range slices.Sorted(maps.Keys(uses.reasons)) {
		assert.True(t, listed[reason], "%s gives the reason %q, which cmd/memhost/testdata/codes/reasons.tsv lacks", uses.reasons[reason], reason)
	}
	return b.String()
}

// warningsPage lists the codes of warnings.
func warningsPage(t *testing.T) string {
	var b strings.Builder
	b.WriteString(generatedFrom("Warnings", "the warnings in the code and cmd/memhost/testdata/codes/warnings.tsv") + `
A warning begins with its code and a colon. It is in ` + "`warnings`" + ` of a receipt, of health or of the trace, and never replaces an
error. Codes are stable; the text after them is for people. If an entry does not say what to do, nothing has to be done. Plugins from
elsewhere have codes of their own.

| code | from | what it means, and what to do |
|---|---|---|
`)
	uses := codesInTheSource(t)
	for _, row := range codeRows(t, "warnings") {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", quoted(row.codes), uses.from(t, row.codes), row.cells[0])
	}
	return b.String()
}

// codeUses are the places of codes in the source.
type codeUses struct {
	begun   map[string]map[string]bool // by code: who writes "code: text"
	exact   map[string]map[string]bool // by code: who has a literal that is just the code
	reasons map[string]string          // by reason, a file that calls WithReason with it
}

// from names who gives the warnings.
func (u codeUses) from(t *testing.T, codes []string) string {
	all := map[string]bool{}
	for _, code := range codes {
		who := u.begun[code]
		if who == nil {
			who = u.exact[code]
		}
		assert.NotNil(t, who, "the code has no %q: take it out of cmd/memhost/testdata/codes", code)
		maps.Copy(all, who)
	}
	return strings.Join(slices.Sorted(maps.Keys(all)), ", ")
}

var codeAtStart = regexp.MustCompile(`^([a-z][a-z0-9]*(?:_[a-z0-9]+)*)(: |$)`)

// codesInTheSource reads the program's Go files without their tests.
func codesInTheSource(t *testing.T) codeUses {
	uses := codeUses{map[string]map[string]bool{}, map[string]map[string]bool{}, map[string]string{}}
	for _, folder := range []string{"abi", "eval", "host", "internal", "plugins", "sdk"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(repository, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, _ := filepath.Rel(repository, path)
			name = filepath.ToSlash(name)
			switch {
			case d.IsDir() && (d.Name() == "testdata" || name == "internal/test"):
				return filepath.SkipDir
			case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			require.NoError(t, err)
			uses.read(file, name)
			return nil
		}))
	}
	return uses
}

func (u codeUses) read(file *ast.File, name string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			m := codeAtStart.FindStringSubmatch(text)
			if err != nil || n.Kind != token.STRING || m == nil {
				return true
			}
			of := u.begun
			if m[2] == "" {
				of = u.exact
			}
			if of[m[1]] == nil {
				of[m[1]] = map[string]bool{}
			}
			of[m[1]][giver(name)] = true
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "WithReason" && len(n.Args) == 1 {
				if lit, ok := n.Args[0].(*ast.BasicLit); ok {
					reason, _ := strconv.Unquote(lit.Value)
					u.reasons[reason] = name
				}
			}
		}
		return true
	})
}

// giver is the provider whose file it is, as readers of the page know it.
func giver(name string) string {
	part := strings.Split(name, "/")
	switch {
	case part[0] == "plugins" && part[1] == "conditions" && part[2] == "internal":
		return "controls"
	case part[0] == "plugins" && part[1] == "conditions":
		return "`" + part[2] + "`"
	case part[0] == "plugins" && part[1] == "internal", part[0] == "sdk":
		return "providers"
	case part[0] == "plugins":
		return "`" + part[1] + "`"
	}
	return "host"
}
