package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// repository is the path of the repository's root from this folder.
const repository = "../.."

// modulePath is the import path of the root.
const modulePath = "github.com/memhost/memhost/"

var inBackquotes = regexp.MustCompile("`([^`\n]+)`")

// readRooms reads the table in docs/reference/rooms.md: for each room, the rooms that it uses.
func readRooms(t *testing.T) map[string][]string {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "reference", "rooms.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "\n| room | what it is | uses |\n|---|---|---|\n")
	require.True(t, found, "docs/reference/rooms.md has no table of rooms")
	rooms := map[string][]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 5 {
			break
		}
		room := inBackquotes.FindStringSubmatch(cells[1])
		require.NotNil(t, room, "a row without a room: %s", line)
		rooms[room[1]] = []string{}
		for _, used := range inBackquotes.FindAllStringSubmatch(cells[3], -1) {
			rooms[room[1]] = append(rooms[room[1]], used[1])
		}
	}
	return rooms
}

// roomOf returns the room with the longest path that is a prefix of a package's path; "" if there is none.
func roomOf(rooms map[string][]string, pkg string) string {
	for ; pkg != "."; pkg = path.Dir(pkg) {
		if _, ok := rooms[pkg]; ok {
			return pkg
		}
	}
	return ""
}

// eachFile calls visit for each file in the repository with a suffix, by its path from the root. It skips test data,
// templates and build output.
func eachFile(t *testing.T, suffix string, visit func(name string)) {
	err := fs.WalkDir(os.DirFS(repository), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			hidden := name != "." && (base[0] == '.' || base[0] == '_')
			if hidden || slices.Contains([]string{"testdata", "templates", "node_modules", "bin"}, base) {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(base, suffix) {
			visit(name)
		}
		return nil
	})
	require.NoError(t, err)
}

// TestRoomsUseWhatTheFloorPlanSays compares the table in docs/reference/rooms.md with the imports of all packages,
// except tests.
func TestRoomsUseWhatTheFloorPlanSays(t *testing.T) {
	rooms := readRooms(t)
	uses := map[string]map[string]string{} // room, used room, an example file
	eachFile(t, ".go", func(name string) {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "tools/") {
			return
		}
		room := roomOf(rooms, path.Dir(name))
		if !assert.NotEmpty(t, room, "docs/reference/rooms.md has no room for %s", name) {
			return
		}
		if uses[room] == nil {
			uses[room] = map[string]string{}
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(repository, name), nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			pkg, ours := strings.CutPrefix(imported, modulePath)
			if used := roomOf(rooms, pkg); ours && used != room {
				uses[room][used] = name
			}
		}
	})
	for room, listed := range rooms {
		for _, used := range slices.Sorted(maps.Keys(uses[room])) {
			assert.Contains(t, listed, used, "%s uses room %q, which docs/reference/rooms.md does not list for %s",
				uses[room][used], used, room)
		}
		for _, used := range listed {
			assert.Contains(t, uses[room], used, "docs/reference/rooms.md lists %s for %s, which no longer uses it", used,
				room)
		}
		if room != "tools" {
			_, err := os.Stat(filepath.Join(repository, room))
			assert.NoError(t, err, "docs/reference/rooms.md lists a room that is gone")
		}
	}
}

// TestTheProgramHasNoFakesOfBackends checks two guarantees on the page itself: the program contains no fakes and no
// test helpers, and package host contains no second engine.
func TestTheProgramHasNoFakesOfBackends(t *testing.T) {
	rooms := readRooms(t)
	for _, room := range []string{"host", "host/internal/guest", "host/internal/egress", "host/internal/opstate",
		"host/internal/tape"} {
		assert.NotContains(t, rooms[room], "host/extism", room)
	}
	for feature := range rooms { // the core of the command line, which features use
		if room := rooms["internal/cli"]; strings.HasPrefix(feature, "internal/cli/") || strings.HasSuffix(feature, "cmd") {
			assert.NotContains(t, room, feature, "internal/cli")
		}
	}
	for _, room := range []string{"cmd/memhost", "internal/cli", "internal/cli/serving", "internal/cli/memory",
		"internal/doors", "host", "conformance", "eval"} {
		for _, used := range []string{"internal/test", "internal/test/fakes", "internal/test/testguest", "internal/test/testenv", "tools"} {
			assert.NotContains(t, rooms[room], used, room)
		}
	}
}

// TestFilesThatPagesNameAreThere checks the paths in docs/architecture.md: everything in backquotes that has a slash
// and an extension.
func TestFilesThatPagesNameAreThere(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "architecture.md"))
	require.NoError(t, err)
	isFile := regexp.MustCompile(`^[\w./-]+/[\w-]+\.(go|md|json)$`)
	n := 0
	for _, m := range inBackquotes.FindAllStringSubmatch(string(page), -1) {
		if !isFile.MatchString(m[1]) {
			continue
		}
		n++
		_, err := os.Stat(filepath.Join(repository, m[1]))
		assert.NoError(t, err, "docs/architecture.md names a file that is not there")
	}
	require.Greater(t, n, 30)
}

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```$")
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the fragments that GitHub generates for a page's headings.
func anchors(page string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
		text := link.ReplaceAllString(m[1], "]")
		found[strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(text), ""), " ", "-")] = true
	}
	return found
}

// TestPagesBeginWithCommandsAndEndWithProblems: a page about a job begins with commands and ends with what can go
// wrong. docs/README.md is a list of pages, docs/results.md a report.
func TestPagesBeginWithCommandsAndEndWithProblems(t *testing.T) {
	n := 0
	eachFile(t, ".md", func(name string) {
		dir, base := path.Split(name)
		if dir != "docs/" && dir != "docs/backends/" || base == "README.md" || base == "results.md" {
			return
		}
		n++
		page, err := os.ReadFile(filepath.Join(repository, name))
		require.NoError(t, err)
		start, _, _ := strings.Cut(string(page), "\n## ")
		assert.Contains(t, start, "\n```", "%s begins without commands", name)
		prose := codeBlock.ReplaceAllString(string(page), "")
		last := prose[strings.LastIndex(prose, "\n## ")+1:]
		assert.True(t, strings.HasPrefix(last, "## What can go wrong\n"), "%s ends without what can go wrong", name)
	})
	require.Greater(t, n, 20)
}

// TestLinksBetweenPagesWork checks every relative link on every Markdown page, including fragments.
func TestLinksBetweenPagesWork(t *testing.T) {
	eachFile(t, ".md", func(name string) {
		page, err := os.ReadFile(filepath.Join(repository, name))
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(page), ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			target, fragment, _ := strings.Cut(m[1], "#")
			at := name
			if target != "" {
				at = path.Join(path.Dir(name), target)
			}
			text, err := os.ReadFile(filepath.Join(repository, at))
			if info, e := os.Stat(filepath.Join(repository, at)); e == nil && info.IsDir() {
				continue
			}
			if assert.NoError(t, err, "%s links to %s", name, m[1]) && fragment != "" && strings.HasSuffix(at, ".md") {
				assert.True(t, anchors(string(text))[fragment],
					"%s links to %s, and no heading there has that fragment", name, m[1])
			}
		}
	})
}
