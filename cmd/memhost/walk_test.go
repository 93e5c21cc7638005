package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/memhost/memhost/internal/test/brief"
	"github.com/stretchr/testify/require"
)

// TestWalk runs docs/new-plugin.md command by command, as written, and compares the output. Sections that need more
// than Go are skipped unless WALK=all.
func TestWalk(t *testing.T) {
	brief.Leave(t)
	page := filepath.Join("..", "..", "docs", "new-plugin.md")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	sections := walkSections(string(text))
	found := map[string]bool{}
	for _, s := range sections {
		found[s.language] = found[s.language] || len(s.commands) > 0
	}
	for _, language := range chapters() {
		t.Run(language, func(t *testing.T) {
			require.True(t, found[language], "the page has a chapter for it, with commands")
			if needsMore(language, "") && os.Getenv("WALK") != "all" {
				t.Skip("needs more than Go: WALK=all walks it")
			}
			sh := newShell(t, nil)
			for _, s := range sections {
				if s.language != "" && s.language != language {
					continue
				}
				if needsMore(language, s.heading) && os.Getenv("WALK") != "all" {
					t.Logf("left out, it needs more than Go: %s", s.heading)
					continue
				}
				for _, c := range s.commands {
					sh.run(t, s.heading, c)
				}
			}
		})
	}
}

// chapters returns the headings of the chapters about languages.
func chapters() []string { return []string{"Go", "Go for Extism", "AssemblyScript", "C"} }

// needsMore reports whether a section needs a compiler other than Go's.
func needsMore(language, heading string) bool {
	return language != "Go" || heading == "A small module"
}

// walkSection is the content below one heading, in a chapter about a language or outside.
type walkSection struct {
	language, heading string
	commands          []walkCommand
}

// walkCommand is a line after "$ ", with its expected output.
type walkCommand struct {
	line string
	want []string
}

// walkSections parses a page. A block that starts with "$ " has commands and their output; other blocks are not run.
func walkSections(page string) []walkSection {
	var sections []walkSection
	at := walkSection{}
	inBlock, isRun := false, false
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			inBlock, isRun = !inBlock, false
		case inBlock && isCommand:
			isRun = true
			at.commands = append(at.commands, walkCommand{line: command})
		case inBlock && isRun:
			last := &at.commands[len(at.commands)-1]
			last.want = append(last.want, line)
		case !inBlock && strings.HasPrefix(line, "## "):
			sections = append(sections, at)
			at = walkSection{heading: line[3:]}
			if slices.Contains(chapters(), at.heading) {
				at.language = at.heading
			}
		case !inBlock && strings.HasPrefix(line, "### "):
			sections = append(sections, at)
			at = walkSection{language: at.language, heading: line[4:]}
		}
	}
	return append(sections, at)
}

// printed compiles lines to a pattern: "…" in a line matches any text, and alone on a line any lines.
func printed(want []string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`\A`)
	for _, line := range want {
		if line == "…" {
			b.WriteString(`(?:.*\n)*?`)
			continue
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*") + `\n`)
	}
	return regexp.MustCompile(b.String() + `\z`)
}

// shell is one sh in its own folder, which contains memhost's checkout.
type shell struct {
	in    io.Writer
	lines chan string
}

// marker ends a command's output, before its exit code.
const marker = "--walked--"

// newShell starts a shell; extra is laid over its environment.
func newShell(t *testing.T, extra map[string]string) *shell {
	t.Helper()
	work := t.TempDir()
	env, source := goEnvironment(t)
	require.NoError(t, os.Symlink(source, filepath.Join(work, "memhost")))
	bin, home := filepath.Join(work, "bin"), filepath.Join(work, "home")
	toolchains, err := os.UserCacheDir()
	require.NoError(t, err)
	if os.Getenv("MEMHOST_TOOLCHAIN") == "" {
		env["MEMHOST_TOOLCHAIN"] = filepath.Join(toolchains, "memhost", "toolchain") // created once for all
	}
	env["GOBIN"], env["HOME"], env["LANG"], env["GOFLAGS"] = bin, home, "C", "-trimpath"
	env["npm_config_update_notifier"] = "false" // it prints notices on some days
	env["PATH"] = bin + string(os.PathListSeparator) + os.Getenv("PATH")
	env["XDG_CACHE_HOME"], env["XDG_DATA_HOME"] = filepath.Join(home, "cache"), filepath.Join(home, "data")
	maps.Copy(env, extra)

	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "sh")
	cmd.Dir = work
	// When make runs this test, a make on the page would print its folders.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=")
	})
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, write, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = write, write
	require.NoError(t, cmd.Start())
	require.NoError(t, write.Close())
	sh := &shell{in: in, lines: make(chan string)}
	go func() {
		defer close(sh.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			sh.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_, _ = io.WriteString(in, "\nkill $! 2>/dev/null\nexit\n") // what the page left running in the background
		for range sh.lines {
		}
		_ = cmd.Wait()
		cancel()
		_ = out.Close()
	})
	return sh
}

// run runs a command and compares its output. A background command is compared once it has printed what is on the page.
func (s *shell) run(t *testing.T, heading string, c walkCommand) {
	t.Helper()
	_, err := fmt.Fprintf(s.in, "%s\necho %s$?\n", c.line, marker)
	require.NoError(t, err)
	background := strings.HasSuffix(c.line, "&")
	want, got, code := printed(c.want), "", -1
	for code < 0 || background && !want.MatchString(got) {
		line, open := <-s.lines
		require.True(t, open, "%s: $ %s: the shell has ended after\n%s", heading, c.line, got)
		if number, isEnd := strings.CutPrefix(line, marker); isEnd {
			code, err = strconv.Atoi(number)
			require.NoError(t, err)
			continue
		}
		got += line + "\n"
		require.False(t, background && strings.HasPrefix(line, "memhost: "), "%s: $ %s\n%s", heading, c.line, got)
	}
	t.Logf("%s: $ %s\n%s", heading, c.line, got)
	require.Zero(t, code, "%s: $ %s\n%s", heading, c.line, got)
	require.Regexp(t, want, got, "%s: $ %s", heading, c.line)
}
