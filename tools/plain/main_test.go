package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOnlyProseIsRead: comments of Go and text of Markdown, neither code nor strings.
func TestOnlyProseIsRead(t *testing.T) {
	for _, c := range []struct {
		name, file, content string
		want                []string
	}{
		{"a comment", "a.go", "package a\n\n// f mends x.\nfunc f() {}\n", []string{"", "", "// f mends x.", "", ""}},
		{"a string", "a.go", "package a\n\nvar x = \"nobody // somebody\"\n", []string{"", "", "", ""}},
		{"a long comment", "a.go", "package a\n/* one\ntwo */\n", []string{"", "/* one", "two */", ""}},
		{"a directive", "a.go", "package a\n//go:generate mend\n", []string{"", "", ""}},
		{"Markdown", "a.md", "Mend `nobody`.\n```\nnobody\n```\n", []string{"Mend ``.", "", "", "", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := prose(c.file, []byte(c.content))
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}

// TestChangedLinesAreChecked: a phrase that was there before is let alone, and a new one is found, committed or not.
func TestChangedLinesAreChecked(t *testing.T) {
	root := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	page := func(text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(root, "a.md"), []byte(text), 0o600))
	}
	run("init", "-q")
	page("Nobody reads this.\n")
	run("add", ".")
	run("commit", "-qm", "one")
	page("Nobody reads this.\n\nThis is put aside.\n")
	run("commit", "-qam", "two")
	page("Nobody reads this.\n\nThis is put aside.\nIt is for good.\n")

	found, err := check(root, "", false)
	require.NoError(t, err)
	assert.Equal(t, []string{`a.md:3: "put aside": kept, renamed, dropped: say which`, `a.md:4: "for good": permanently`}, found)
	found, err = check(root, "HEAD", false)
	require.NoError(t, err)
	assert.Len(t, found, 1)
	found, err = check(root, "", true)
	require.NoError(t, err)
	assert.Len(t, found, 3)
	_, err = check(root, "nothing", false)
	assert.ErrorContains(t, err, "git diff")
}
