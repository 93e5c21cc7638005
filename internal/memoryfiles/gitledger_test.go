package memoryfiles

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ledgerOf makes the files of a ledger from lines "id branch parent mergeParent message"; "-" means none.
func ledgerOf(t testing.TB, lines ...string) map[string]string {
	t.Helper()
	files, heads := map[string]string{"HEAD": "main\n"}, map[string]string{}
	for i, line := range lines {
		w := strings.SplitN(line, " ", 5)
		require.Len(t, w, 5)
		event := fmt.Sprintf("%016x", i*2654435761)
		files["commits/"+w[0]+".json"] = fmt.Sprintf(`{"id":%q,"branch":%q,"events":[%q],"message":%q,"parent_id":%q,"merge_parent_id":%q,"timestamp":"2026-01-01T00:00:%02dZ"}`,
			w[0], w[1], event, w[4], strings.Trim(w[2], "-"), strings.Trim(w[3], "-"), min(i, 59))
		files["events/"+event+".json"] = fmt.Sprintf(`{"id":%q,"event_type":"add"}`, event)
		heads[w[1]] = w[0]
	}
	var branches []string
	for name, head := range heads {
		branches = append(branches, fmt.Sprintf(`{"name":%q,"head":%q}`, name, head))
	}
	files["branches.json"] = `{"version":1,"branches":[` + strings.Join(branches, ",") + `]}`
	return files
}

var merged = []string{"aa01 main - - Begin", "bb01 b aa01 - Say \"hello\" [to]\n{all} <of> you", "cc01 c aa01 - Third",
	"aa02 main aa01 - Go on", "aa03 main aa02 bb01 Merge b into main"}

// TestUpdatesWriteTheHistoryOfAnExport: a copy that grew commit by commit has the commits of an export made at once, also
// where its objects were removed.
func TestUpdatesWriteTheHistoryOfAnExport(t *testing.T) {
	f, err := openFolder(t.TempDir(), true)
	require.NoError(t, err)
	defer f.close()
	for n := range merged {
		files, whole := FanOut(ledgerOf(t, merged[:n+1]...)), t.TempDir()
		require.NoError(t, WriteGit(whole, files))
		require.NoError(t, f.update(files, time.Now()))
		assert.Equal(t, history(t, whole), history(t, f.dir))
	}
	files := FanOut(ledgerOf(t, merged...))
	want := history(t, f.dir)
	require.NoError(t, os.RemoveAll(filepath.Join(f.dir, ".git", "objects")))
	require.NoError(t, f.update(files, time.Now()))
	assert.Equal(t, want, history(t, f.dir))
}

// history lists all commits of a repository with their files, by branch.
func history(t *testing.T, dir string) map[string][]string {
	t.Helper()
	r, err := git.PlainOpen(dir)
	require.NoError(t, err)
	branches, err := r.Branches()
	require.NoError(t, err)
	found := map[string][]string{}
	require.NoError(t, branches.ForEach(func(b *plumbing.Reference) error {
		log, err := r.Log(&git.LogOptions{From: b.Hash()})
		if err != nil {
			return err
		}
		return log.ForEach(func(c *object.Commit) error {
			files, err := c.Files()
			if err != nil {
				return err
			}
			line := c.Hash.String()
			err = files.ForEach(func(f *object.File) error {
				line += " " + f.Name
				return nil
			})
			found[b.Name().Short()] = append(found[b.Name().Short()], line)
			return err
		})
	}))
	return found
}

func TestAGitExportWritesWhatIsNewOnly(t *testing.T) {
	const n = 300
	lines := []string{"aaaa000000000000 main - - Commit 0"}
	for i := 1; i < n; i++ {
		id := func(i int) string { return fmt.Sprintf("%04x%012x", (i*40503+0xaaaa)&0xffff, i) }
		lines = append(lines, fmt.Sprintf("%s main %s - Commit %d", id(i), id(i-1), i))
	}
	files, dir := FanOut(ledgerOf(t, lines...)), t.TempDir()
	require.NoError(t, WriteGit(dir, files))
	r, err := git.PlainOpen(dir)
	require.NoError(t, err)
	objects := 0
	all, err := r.Storer.IterEncodedObjects(plumbing.AnyObject)
	require.NoError(t, err)
	for {
		if _, err := all.Next(); err != nil {
			break
		}
		objects++
	}
	assert.Greater(t, objects, 3*n)
	assert.LessOrEqual(t, objects, 8*n, "two blobs, two folders of each kind, a root and a commit")
	head, err := r.Head()
	require.NoError(t, err)
	log, err := r.Log(&git.LogOptions{From: head.Hash()})
	require.NoError(t, err)
	commits := 0
	require.NoError(t, log.ForEach(func(*object.Commit) error { commits++; return nil }))
	assert.Equal(t, n, commits)
	c, err := r.CommitObject(head.Hash())
	require.NoError(t, err)
	tree, err := c.Files()
	require.NoError(t, err)
	found := map[string]string{}
	require.NoError(t, tree.ForEach(func(f *object.File) error {
		text, err := f.Contents()
		found[f.Name] = text
		return err
	}))
	for path, text := range files {
		if strings.Contains(path, "/") {
			assert.Equal(t, text, found[path], path)
		}
	}
}

func TestAGitExportOfAMergeHasWhatBothSidesHave(t *testing.T) {
	files, dir := FanOut(ledgerOf(t, merged...)), t.TempDir()
	require.NoError(t, WriteGit(dir, files))
	r, err := git.PlainOpen(dir)
	require.NoError(t, err)
	head, err := r.Head()
	require.NoError(t, err)
	c, err := r.CommitObject(head.Hash())
	require.NoError(t, err)
	assert.Len(t, c.ParentHashes, 2)
	for path := range files {
		if strings.HasPrefix(path, "commits/") {
			_, err := c.File(path)
			assert.Equal(t, strings.Contains(path, "cc01"), err != nil, path)
		}
	}
}

func TestAGitExportStagesWhatItsBranchHas(t *testing.T) {
	for name, files := range map[string]map[string]string{"a ledger": FanOut(ledgerOf(t, merged...)),
		"files": {"USER.md": "- Likes tea.\n", "memory/MEMORY.md": ""}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for path, text := range files {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600))
			}
			require.NoError(t, WriteGit(dir, files))
			r, err := git.PlainOpen(dir)
			require.NoError(t, err)
			staged, err := r.Storer.Index()
			require.NoError(t, err)
			require.NotEmpty(t, staged.Entries)
			tree, err := r.Worktree()
			require.NoError(t, err)
			state, err := tree.Status()
			require.NoError(t, err)
			for path, s := range state {
				assert.Equal(t, git.Untracked, s.Worktree, "%s: what is in the commit is neither changed nor deleted",
					path)
			}
		})
	}
}

func TestAGitExportRefusesWhatItCannotWrite(t *testing.T) {
	version := `{"Author":"A <b>\n","Message":"m","Time":"2026-01-02T03:04:05Z","Tree":{}}`
	outside := FanOut(ledgerOf(t, merged...))
	outside["branches.json"] = strings.ReplaceAll(outside["branches.json"], `"name":"b"`, `"name":"../../config"`)
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no version":                 {map[string]string{"versions/log.jsonl": ""}, "it names no version"},
		"no time":                    {map[string]string{"versions/log.jsonl": "{}"}, "cannot parse"},
		"a branch in another folder": {outside, "cannot be named ../../config"},
	} {
		assert.ErrorContains(t, WriteGit(t.TempDir(), c.files), c.want, name)
	}
	dir := t.TempDir()
	require.NoError(t, WriteGit(dir, map[string]string{"versions/log.jsonl": version}))
	assert.ErrorIs(t, WriteGit(dir, map[string]string{}), fs.ErrExist)
	r, err := git.PlainOpen(dir)
	require.NoError(t, err)
	head, err := r.Head()
	require.NoError(t, err)
	c, err := r.CommitObject(head.Hash())
	require.NoError(t, err)
	assert.Equal(t, "A b", c.Author.Name, "a name does not end its line")
}
