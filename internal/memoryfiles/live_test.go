package memoryfiles

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/memhost/memhost/plugins"
)

func TestMain(m *testing.M) { testcache.Run(m) }

// memory is a slot whose memory is files of the test's choice.
type memory struct {
	mu       sync.Mutex
	provider string
	none     bool // it has no query "files"
	files    map[abi.MemoryScope]map[string]string
	// asked, if not nil, runs in each query.
	asked func(context.Context) error
}

var ann = abi.MemoryScope{RunID: "r1", PersonaID: "ann"}

func newMemory(files map[string]string) *memory {
	return &memory{provider: "files_memory", files: map[abi.MemoryScope]map[string]string{ann: files}}
}

func (m *memory) NativeQuery(ctx context.Context, q *abi.NativeQuery) (*abi.NativeQueryResult, error) {
	if m.asked != nil {
		if err := m.asked(ctx); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	text, err := json.Marshal(m.files[q.Scope])
	return &abi.NativeQueryResult{Result: text}, err
}

func (m *memory) Capabilities(context.Context) (*report.Capabilities, error) {
	c := &report.Capabilities{Provider: m.provider}
	if !m.none {
		c.NativeQueries = []abi.NativeDecl{{Name: Query}}
	}
	return c, nil
}

func (m *memory) ListScopes(context.Context, report.ScopeQuery) (*report.ScopePage, error) {
	page := new(report.ScopePage)
	for scope := range maps.Keys(m.files) {
		page.Scopes = append(page.Scopes, report.ListedScope{ScopeMapping: report.ScopeMapping{Scope: scope}})
	}
	return page, nil
}

// process is one run of a program with the copies: it starts, does something and ends.
func process(t *testing.T, dir string, m *memory, every bool, do func(*Live)) {
	t.Helper()
	l := newLive(dir)
	require.NoError(t, l.Start(t.Context(), m, every))
	if do != nil {
		do(l)
	}
	within, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	l.Close(within)
	require.Empty(t, l.failed)
}

func newLive(dir string) *Live {
	return NewLive(LiveOptions{DataDir: dir, On: true, Logger: hclog.NewNullLogger()})
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(text)
}

// commits lists the subjects of the commits of the current branch, newest first.
func commits(t *testing.T, dir string) (subjects []string) {
	t.Helper()
	r, err := git.PlainOpen(dir)
	require.NoError(t, err)
	log, err := r.Log(&git.LogOptions{})
	require.NoError(t, err)
	require.NoError(t, log.ForEach(func(c *object.Commit) error {
		subject, _, _ := strings.Cut(c.Message, "\n")
		subjects = append(subjects, subject)
		return nil
	}))
	return subjects
}

func TestACopyIsUpToDateAfterEveryCommit(t *testing.T) {
	data, m := t.TempDir(), newMemory(map[string]string{"MEMORY.md": "tea", "sessions/s1.jsonl": "{}"})
	dir := filepath.Join(data, "files", "r1", "ann")
	process(t, data, m, false, nil)
	assert.Equal(t, "tea", read(t, dir, "MEMORY.md"))

	process(t, data, m, false, func(l *Live) {
		m.files[ann] = map[string]string{"MEMORY.md": "coffee"}
		l.Changed(ann)
	})
	assert.Equal(t, "coffee", read(t, dir, "MEMORY.md"))
	assert.NoDirExists(t, filepath.Join(dir, "sessions"))
	assert.Equal(t, []string{"Update 2 files", "Update 2 files"}, commits(t, dir))
	process(t, data, m, true, nil)
	assert.Len(t, commits(t, dir), 2, "nothing has changed")

	require.NoError(t, filepath.WalkDir(filepath.Join(data, "files"), func(path string, e fs.DirEntry, err error) error {
		info, _ := e.Info()
		if rel, _ := filepath.Rel(dir, path); !strings.HasPrefix(rel, ".git"+string(filepath.Separator)) {
			assert.Zero(t, info.Mode().Perm()&0o077, path)
		}
		return err
	}))
}

// TestWhatAPersonWroteIsKept: the copy follows the memory, and what a person wrote into it is kept in a second file.
func TestWhatAPersonWroteIsKept(t *testing.T) {
	data, m := t.TempDir(), newMemory(map[string]string{"MEMORY.md": "one", "old.md": "old", "same.md": "same"})
	dir := filepath.Join(data, "files", "r1", "ann")
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	process(t, data, m, false, func(l *Live) {
		require.Eventually(t, func() bool { return !l.behind() }, 5*time.Second, time.Millisecond)
		write("MEMORY.md", "edited")
		write("old.md", "edited as well")
		write("same.md", "edited, and not written by the memory since")
		write("notes.md", "mine")
		m.files[ann] = map[string]string{"MEMORY.md": "two", "same.md": "same"}
		l.Changed(ann)
		require.Eventually(t, func() bool { return !l.behind() }, 5*time.Second, time.Millisecond)
		require.Len(t, l.Warnings(), 1)
		assert.Contains(t, l.Warnings()[0], "files_edited")
	})
	for name, want := range map[string]string{"MEMORY.md": "two", "MEMORY.md.edited": "edited", "same.md": "same",
		"old.md.edited": "edited as well", "same.md.edited": "edited, and not written by the memory since", "notes.md": "mine"} {
		assert.Equal(t, want, read(t, dir, name), name)
	}
	assert.NoFileExists(t, filepath.Join(dir, "old.md"))

	write("MEMORY.md", "edited again")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".git"))) // the record is gone: nothing is taken for the memory's
	process(t, data, m, true, nil)
	assert.Equal(t, "edited again", read(t, dir, "MEMORY.md.edited-2"))
	assert.Equal(t, "two", read(t, dir, "MEMORY.md"))
}

// TestACommitByHandIsKept: of a memory that has versions, the branch is the memory's; what a person committed there
// stays under another name.
func TestACommitByHandIsKept(t *testing.T) {
	version := `{"author":"dream","message":"dream: one","time":"2026-01-01T00:00:00Z","tree":{"MEMORY.md":"1"}}` + "\n"
	files := map[string]string{"MEMORY.md": "one", "versions/log.jsonl": version, "versions/blobs/1": "one"}
	data, m := t.TempDir(), newMemory(files)
	dir := filepath.Join(data, "files", "r1", "ann")
	process(t, data, m, false, nil)
	r, err := git.PlainOpen(dir)
	require.NoError(t, err)
	tree, err := r.Worktree()
	require.NoError(t, err)
	by := &object.Signature{Name: "ann", When: time.Unix(0, 0)}
	mine, err := tree.Commit("by hand", &git.CommitOptions{AllowEmptyCommits: true, Author: by})
	require.NoError(t, err)

	process(t, data, m, true, nil)
	assert.Equal(t, []string{"dream: one"}, commits(t, dir))
	kept, err := r.Reference(plumbing.NewBranchReferenceName("by-hand-"+mine.String()[:12]), false)
	require.NoError(t, err)
	assert.Equal(t, mine, kept.Hash())
}

// TestACrashLeavesNoStaleCopy: a process that dies after a commit, or in the middle of an update.
func TestACrashLeavesNoStaleCopy(t *testing.T) {
	t.Run("before the copy", func(t *testing.T) {
		data, m := t.TempDir(), newMemory(map[string]string{"MEMORY.md": "one"})
		process(t, data, m, false, nil)
		dies := newLive(data)
		require.NoError(t, dies.writeStatus(status{Provider: m.provider})) // as Start does
		m.files[ann] = map[string]string{"MEMORY.md": "two"}
		process(t, data, m, false, nil)
		assert.Equal(t, "two", read(t, data, "files", "r1", "ann", "MEMORY.md"))
	})
	t.Run("in the middle of the copy", func(t *testing.T) {
		data, m := t.TempDir(), newMemory(map[string]string{"a.md": "one", "b.md": "one"})
		process(t, data, m, false, nil)
		dir := filepath.Join(data, "files", "r1", "ann")
		require.NoError(t, os.Mkdir(filepath.Join(dir, "c.md"), 0o700)) // stops the update after a.md and b.md
		f, err := openFolder(dir, true)
		require.NoError(t, err)
		require.Error(t, f.update(map[string]string{"a.md": "two", "b.md": "two", "c.md": "two"}, time.Now()))
		f.close()
		require.Equal(t, "two", read(t, dir, "a.md"))
		require.NoError(t, os.Remove(filepath.Join(dir, "c.md")))

		m.files[ann] = map[string]string{"a.md": "three", "b.md": "two"}
		process(t, data, m, true, nil)
		assert.Equal(t, "three", read(t, dir, "a.md"))
		edits, err := filepath.Glob(filepath.Join(dir, "*"+editedSuffix+"*"))
		require.NoError(t, err)
		assert.Empty(t, edits, "nobody edited anything")
	})
	t.Run("while something is erased", func(t *testing.T) {
		data, m := t.TempDir(), newMemory(map[string]string{"MEMORY.md": "secret"})
		process(t, data, m, false, nil)
		dies := newLive(data)
		require.NoError(t, dies.writeStatus(status{Provider: m.provider}))
		_, err := dies.Erasing(t.Context(), ann)
		require.NoError(t, err)
		requireNowhere(t, filepath.Join(data, "files"), "secret")
		m.files[ann] = map[string]string{"MEMORY.md": "left"}
		process(t, data, m, false, nil)
		assert.Equal(t, "left", read(t, data, "files", "r1", "ann", "MEMORY.md"))
		requireNowhere(t, filepath.Join(data, "files"), "secret")
	})
}

// requireNowhere requires that no file below dir, and no object of a repository, has a text.
func requireNowhere(t *testing.T, dir, text string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && e.Name() == ".git" {
			r, err := git.PlainOpen(filepath.Dir(path))
			require.NoError(t, err)
			blobs, err := r.BlobObjects()
			require.NoError(t, err)
			return blobs.ForEach(func(b *object.Blob) error {
				reader, err := b.Reader()
				require.NoError(t, err)
				content, err := io.ReadAll(reader)
				require.NoError(t, err)
				require.NotContains(t, string(content), text, path)
				return nil
			})
		}
		if e.Type().IsRegular() {
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NotContains(t, string(content), text, path)
		}
		return nil
	}))
}

// TestErasingDoesNotWaitForACopyThatWaitsForIt: the caller of Erasing may hold the scope's lock, for which the query of a
// copy waits. No copy is made before the erasing has ended.
func TestErasingDoesNotWaitForACopyThatWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data, m := t.TempDir(), newMemory(map[string]string{"MEMORY.md": "tea"})
		asked := 0
		m.asked = func(ctx context.Context) error {
			if asked++; asked > 1 {
				return nil
			}
			<-ctx.Done()
			return abi.AsError(ctx.Err())
		}
		process(t, data, m, true, func(l *Live) {
			synctest.Wait()
			require.Equal(t, 1, asked)
			done, err := l.Erasing(t.Context(), ann)
			require.NoError(t, err)
			l.Changed(ann)
			time.Sleep(time.Hour)
			assert.Equal(t, 1, asked)
			done()
		})
		assert.Equal(t, "tea", read(t, data, "files", "r1", "ann", "MEMORY.md"))
		assert.Empty(t, newLive(data).Warnings())
	})
}

// TestAnotherProviderHasAnotherCopy: what serves is what is copied; of the copies of the memory before, only edits stay.
func TestAnotherProviderHasAnotherCopy(t *testing.T) {
	data, m := t.TempDir(), newMemory(map[string]string{"MEMORY.md": "tea", "old.md": "old"})
	bob := abi.MemoryScope{RunID: "r1", PersonaID: "bob"}
	m.files[bob] = map[string]string{"MEMORY.md": "cola"}
	process(t, data, m, false, nil)
	dir := filepath.Join(data, "files", "r1")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bob", "MEMORY.md"), []byte("edited"), 0o600))

	other := newMemory(map[string]string{"MEMORY.md": "coffee"})
	other.provider = "other_memory"
	process(t, data, other, false, nil)
	assert.Equal(t, "coffee", read(t, dir, "ann", "MEMORY.md"))
	assert.NoFileExists(t, filepath.Join(dir, "ann", "old.md"))
	assert.Len(t, commits(t, filepath.Join(dir, "ann")), 1, "the history is the other memory's")
	left, err := os.ReadDir(filepath.Join(dir, "bob"))
	require.NoError(t, err)
	require.Len(t, left, 1)
	assert.Equal(t, "edited", read(t, dir, "bob", "MEMORY.md.edited"))

	other.none = true
	process(t, data, other, true, nil)
	assert.NoDirExists(t, filepath.Join(dir, "ann"))
}

func TestCopiesOfAnEarlierTimeAreErasedAsWell(t *testing.T) {
	data, m := t.TempDir(), newMemory(map[string]string{"MEMORY.md": "secret"})
	require.Nil(t, NewLive(LiveOptions{DataDir: data}), "there is nothing")
	process(t, data, m, false, nil)
	off := NewLive(LiveOptions{DataDir: data, Logger: hclog.NewNullLogger()})
	require.NoError(t, off.Start(t.Context(), m, true))
	m.files[ann] = map[string]string{"MEMORY.md": "recorded while it was off"}
	off.Changed(ann)
	off.Close(t.Context())
	process(t, data, m, false, nil)
	assert.Equal(t, "recorded while it was off", read(t, data, "files", "r1", "ann", "MEMORY.md"))

	off = NewLive(LiveOptions{DataDir: data, Logger: hclog.NewNullLogger()})
	done, err := off.Erasing(t.Context(), ann)
	require.NoError(t, err)
	done()
	assert.NoDirExists(t, filepath.Join(data, "files", "r1"))
}

// TestIdsAreNamesOfFolders: ids come from strangers. Each scope has its own folder two levels below files, also on file
// systems that ignore case.
func TestIdsAreNamesOfFolders(t *testing.T) {
	ids := []string{"ann", "Ann", "ANN", "a/b", `a\b`, "..", ".", ".git", ".hidden", "con", "nul.txt", "user_a-1.2", "a.", "a ",
		"%2E%2E", "a@b", "a~b", "Ann~" + strings.TrimPrefix(folderName("Ann"), "Ann~"), "é", "e\u0301", "İ", "\x00", "a\nb",
		"a:b", "a*", strings.Repeat("x", 1000), strings.Repeat("x", 999) + "y", strings.Repeat("é", 500)}
	names := map[string]string{}
	for _, id := range ids {
		name := folderName(id)
		assert.True(t, filepath.IsLocal(name) && !strings.ContainsAny(name, `/\:*`), name)
		assert.LessOrEqual(t, len(name), 100)
		assert.NotEqual(t, byte('.'), name[0], name)
		assert.Equal(t, "", names[strings.ToLower(name)], "%q and another id have the folder %s", id, name)
		names[strings.ToLower(name)] = id
	}
	assert.Equal(t, "user_a-1.2", folderName("user_a-1.2"))
	assert.NotEqual(t, folderOf(abi.MemoryScope{RunID: "r", PersonaID: "a", AgentID: "b"}),
		folderOf(abi.MemoryScope{RunID: "r", PersonaID: "a@b"}))

	data, m := t.TempDir(), newMemory(map[string]string{"MEMORY.md": "ann"})
	for _, id := range ids[1:] {
		m.files[abi.MemoryScope{RunID: id, PersonaID: id}] = map[string]string{"MEMORY.md": id}
	}
	process(t, data, m, false, nil)
	found, err := filepath.Glob(filepath.Join(data, "files", "*", "*", "MEMORY.md"))
	require.NoError(t, err)
	assert.Len(t, found, len(ids))
}

// TestNothingOfAMemoryGetsIntoTheRepository: its hooks would be run by the next git command.
func TestNothingOfAMemoryGetsIntoTheRepository(t *testing.T) {
	data, m := t.TempDir(), newMemory(map[string]string{"MEMORY.md": "tea", ".git/hooks/post-commit": "x", ".GIT/config": "x",
		"a/.git/config": "x", "GIT~1/config": "x", ".git ./config": "x", ".git::$INDEX_ALLOCATION/config": "x", "../../out": "x",
		`..\..\out`: "x", "/out": "x"})
	process(t, data, m, false, nil)
	requireNowhere(t, filepath.Join(data, "files"), "\x00x")
	assert.NoFileExists(t, filepath.Join(data, "files", "r1", "ann", ".git", "hooks", "post-commit"))
	found, err := os.ReadDir(filepath.Join(data, "files", "r1", "ann"))
	require.NoError(t, err)
	assert.Len(t, found, 2, "the repository and MEMORY.md")
	assert.NoFileExists(t, filepath.Join(data, "files", "out"))
}

// TestErasingAMemoryErasesItsCopy with a real slot: forget, reset and the erasure of a person leave nothing of a text in
// the copy or in its git history.
func TestErasingAMemoryErasesItsCopy(t *testing.T) {
	ctx := t.Context()
	for name, erase := range map[string]func(t *testing.T, slot *host.Slot){
		"forget": func(t *testing.T, slot *host.Slot) {
			_, err := slot.Forget(ctx, &abi.ForgetRequest{Scope: ann, EventIDs: []string{"e1"}, Reason: "asked"})
			require.NoError(t, err)
		},
		"reset": func(t *testing.T, slot *host.Slot) {
			_, err := slot.ResetScope(ctx, ann)
			require.NoError(t, err)
		},
		"a person": func(t *testing.T, slot *host.Slot) {
			_, err := slot.ErasePersona(ctx, &report.PersonaRequest{PersonaID: "ann", Reason: "asked"}, nil)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			l := newLive(data)
			h, err := host.New(ctx, host.Options{DataDir: data, CacheDir: testcache.Dir(), FileCopies: l})
			require.NoError(t, err)
			defer func() { require.NoError(t, h.Close(context.Background())) }()
			m, found := plugins.Find("ledger_memory")
			require.True(t, found)
			slot, err := h.Open(ctx, host.ProviderConfig{Name: "ledger_memory", Module: m.Wasm, Source: "builtin"})
			require.NoError(t, err)
			defer func() { require.NoError(t, slot.Close(context.Background())) }()
			require.NoError(t, l.Start(ctx, slot, true))
			for id, text := range map[string]string{"e1": "a secret word", "e2": "tea"} {
				_, err = slot.RecordEvent(ctx, &abi.MemoryEvent{EventID: id, RunID: "r1", UserID: "ann", SessionID: "s1", TurnID: id,
					Timestamp: "2026-03-02T09:00:00Z", Messages: []abi.Message{{Role: "user", Content: &text}}})
				require.NoError(t, err)
			}
			dir := filepath.Join(data, "files")
			written := func(text string) bool {
				all := ""
				_ = filepath.WalkDir(filepath.Join(dir, "r1", "ann", "events"), func(path string, e fs.DirEntry, err error) error {
					if err == nil && !e.IsDir() {
						content, _ := os.ReadFile(path)
						all += string(content)
					}
					return nil
				})
				return strings.Contains(all, text)
			}
			require.Eventually(t, func() bool { return written("secret") && written("tea") }, 10*time.Second, 5*time.Millisecond)

			erase(t, slot)
			requireNowhere(t, dir, "secret")
			l.Close(ctx)
			requireNowhere(t, dir, "secret")
			assert.Equal(t, name == "forget", written("tea"))
			assert.True(t, l.readStatus().Clean)
		})
	}
}
