package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
)

const exportHelp = `Writes a scope's memory as files that a person can read, by the provider's native query "files". FOLDER must be empty or not there.
With --git (ledger_memory) FOLDER becomes a repository: its commits are the ledger's, and its branches the ledger's branches. Events and commits then stand in
folders by the first two digits of their ids, so that a commit need not write the names of all.`

func (a *app) exportCommand() *cobra.Command {
	var f scopeFlags
	var withGit bool
	cmd := &cobra.Command{Use: "export FOLDER", Short: "Write a scope's memory as files", Long: exportHelp, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withScope(cmd.Context(), &f, func(ctx context.Context, d *door) error {
				files, err := filesOf(ctx, d, f.scope())
				if err != nil {
					return err
				}
				if withGit {
					files = fanOut(files)
				}
				if err := writeFolder(args[0], files); err != nil {
					return err
				}
				if withGit {
					if err := writeGit(args[0], files); err != nil {
						return err
					}
				}
				a.out.print("%s\n", count(len(files), "file"))
				return nil
			})
		}}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&withGit, "git", false, "make a repository whose commits are the versions")
	return cmd
}

func (a *app) importCommand() *cobra.Command {
	var f scopeFlags
	cmd := &cobra.Command{Use: "import FOLDER", Short: "Take files that export wrote into a scope", Args: cobra.ExactArgs(1),
		Long: "Reads FOLDER and hands its files to the provider's native mutation \"import_files\". The scope should be empty. Files that the provider does not know are named.",
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := readFolder(args[0])
			if err != nil {
				return err
			}
			return a.withScope(cmd.Context(), &f, func(ctx context.Context, d *door) error { return a.importFiles(ctx, d, f.scope(), files) })
		}}
	f.add(cmd.Flags())
	return cmd
}

// withScope completes the scope and runs a verb at the slot.
func (a *app) withScope(ctx context.Context, f *scopeFlags, verb func(ctx context.Context, d *door) error) error {
	if err := f.complete(a); err != nil {
		return err
	}
	return a.withDoor(ctx, verb)
}

// filesOf asks for all pages of the query "files": an object of paths with their texts, and in trace.details.next where the next page begins.
func filesOf(ctx context.Context, d *door, scope abi.MemoryScope) (map[string]string, error) {
	files := map[string]string{}
	params := map[string]abi.Raw{}
	for {
		page, err := d.NativeQuery(ctx, &abi.NativeQuery{Scope: scope, Name: "files", Params: params})
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(page.Result, &files); err != nil {
			return nil, abi.NewError(abi.CodeBackend, "files: "+err.Error())
		}
		if page.Trace == nil || len(page.Trace.Details["next"]) == 0 {
			return files, nil
		}
		params["after"] = page.Trace.Details["next"]
	}
}

func writeFolder(dir string, files map[string]string) error {
	if found, err := os.ReadDir(dir); err == nil && len(found) > 0 {
		return usageError(dir+" is not empty", "name a folder that is not there")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return usageError(err.Error(), "")
	}
	root, err := os.OpenRoot(dir) // a path that leaves the folder, whoever wrote it, is refused
	if err != nil {
		return usageError(err.Error(), "")
	}
	defer func() { _ = root.Close() }()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if parent := filepath.Dir(filepath.FromSlash(path)); parent != "." {
			if err := root.MkdirAll(parent, 0o700); err != nil {
				return usageError(err.Error(), "")
			}
		}
		if err := root.WriteFile(filepath.FromSlash(path), []byte(files[path]), 0o600); err != nil {
			return usageError(err.Error(), "")
		}
	}
	return nil
}

// readFolder reads the files of a folder, without those whose names begin with a dot at the top (.git).
func readFolder(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && e.Name() == ".git" {
			return fs.SkipDir
		}
		if !e.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		return nil, usageError(err.Error(), "")
	}
	return files, nil
}

// importBatch is about how many bytes of files one call brings.
const importBatch = 2 << 20

func (a *app) importFiles(ctx context.Context, d *door, scope abi.MemoryScope, files map[string]string) error {
	batch, bytes, taken := map[string]string{}, 0, 0
	send := func(done bool) error {
		text, err := json.Marshal(batch)
		if err != nil {
			return err
		}
		r, err := d.NativeMutation(ctx, &abi.NativeMutation{Scope: scope, Name: "import_files", Reason: "import",
			Params: map[string]abi.Raw{"files": text, "done": abi.Raw(fmt.Sprint(done))}})
		if err != nil {
			return err
		}
		if r.Status == "skipped_read_only" {
			return abi.NewError(abi.CodeReadOnly, "the slot is read-only: nothing was taken in")
		}
		var skipped []string
		if r.Trace != nil && len(r.Trace.Details["skipped"]) > 0 {
			if err := json.Unmarshal(r.Trace.Details["skipped"], &skipped); err != nil {
				return abi.NewError(abi.CodeBackend, "import_files: "+err.Error())
			}
		}
		for _, path := range skipped {
			a.out.note("not taken in: %s", printable(path))
		}
		taken += len(batch) - len(skipped)
		batch, bytes = map[string]string{}, 0
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if bytes > 0 && bytes+len(files[path]) > importBatch {
			if err := send(false); err != nil {
				return err
			}
		}
		batch[path] = files[path]
		bytes += len(files[path])
	}
	if err := send(true); err != nil {
		return err
	}
	a.out.print("%s\n", count(taken, "file"))
	return nil
}

// ledgerCommit is a commit of the ledger as its file has it.
type ledgerCommit struct {
	ID, Branch, Message, Timestamp string
	Events                         []string
	ParentID                       string `json:"parent_id"`
	MergeParentID                  string `json:"merge_parent_id"`
	Metadata                       struct {
		CherryPickedFrom string `json:"cherry_picked_from"`
	}
}

// objectDirs are the folders of a ledger's objects, which a repository fans out.
var objectDirs = []string{"commits", "events"}

// fanOut puts events and commits into folders by the first two digits of their ids.
func fanOut(files map[string]string) map[string]string {
	out := make(map[string]string, len(files))
	for path, text := range files {
		if dir, name, ok := strings.Cut(path, "/"); ok && slices.Contains(objectDirs, dir) && len(name) > 2 {
			path = dir + "/" + name[:2] + "/" + name
		}
		out[path] = text
	}
	return out
}

// writeGit makes a repository of an exported ledger, fanned out: a git commit for each of its commits, with the files that had come until then.
func writeGit(dir string, files map[string]string) error {
	var listed struct {
		Branches []struct{ Name, Head string }
	}
	if err := json.Unmarshal([]byte(files["branches.json"]), &listed); err != nil {
		return abi.NewError(abi.CodeUnsupported, "--git: the provider's files are no ledger").WithHint("export without --git")
	}
	repository, err := git.PlainInit(dir, false)
	if err != nil {
		return err
	}
	w := &gitWriter{repository: repository, files: files, made: map[string]*gitCommit{}, waiting: map[string]int{}}
	for path, text := range files {
		if !strings.HasPrefix(path, "commits/") {
			continue
		}
		var k ledgerCommit
		if err := json.Unmarshal([]byte(text), &k); err != nil {
			return abi.NewError(abi.CodeBackend, path+": "+err.Error())
		}
		w.waiting[k.ParentID]++
		w.waiting[k.MergeParentID]++
	}
	for _, b := range listed.Branches {
		if b.Head == "" {
			continue
		}
		made, err := w.commit(b.Head)
		if err != nil {
			return err
		}
		if err := repository.Storer.SetReference(plumbing.NewHashReference(plumbing.NewBranchReferenceName(b.Name), made.hash)); err != nil {
			return err
		}
	}
	return repository.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.NewBranchReferenceName(strings.TrimSpace(files["HEAD"]))))
}

type gitWriter struct {
	repository *git.Repository
	files      map[string]string
	made       map[string]*gitCommit
	// waiting counts the children of a commit that are not written. Behind the last its folders are let go.
	waiting map[string]int
}

// gitCommit is a commit that is written, with its folders: what a child does not change it shares.
type gitCommit struct {
	hash plumbing.Hash
	dirs map[string]*gitDir
}

// gitDir is a folder of objects ("events"), and the folders in it by two digits.
type gitDir struct {
	hash plumbing.Hash
	fans map[string]*object.Tree
	// entries are the fans' own, in order.
	entries []object.TreeEntry
}

// commit writes a commit behind its parents: without recursion, since a ledger may be long.
func (w *gitWriter) commit(head string) (*gitCommit, error) {
	for open := []string{head}; len(open) > 0; {
		id := open[len(open)-1]
		if w.made[id] != nil {
			open = open[:len(open)-1]
			continue
		}
		var k ledgerCommit
		if err := json.Unmarshal([]byte(w.files[fanned("commits", id)]), &k); err != nil {
			return nil, abi.NewError(abi.CodeBackend, "commit "+id+": "+err.Error())
		}
		waiting := len(open)
		var parents []*gitCommit
		for _, parent := range []string{k.ParentID, k.MergeParentID} {
			if parent == "" {
				continue
			}
			if made := w.made[parent]; made != nil {
				parents = append(parents, made)
			} else {
				open = append(open, parent)
			}
		}
		if len(open) > waiting {
			continue
		}
		made, err := w.write(&k, parents)
		if err != nil {
			return nil, err
		}
		w.made[id] = made
		for _, parent := range []string{k.ParentID, k.MergeParentID} {
			if w.waiting[parent]--; parent != "" && w.waiting[parent] == 0 {
				w.made[parent].dirs = nil
			}
		}
	}
	return w.made[head], nil
}

func fanned(dir, id string) string { return dir + "/" + id[:min(2, len(id))] + "/" + id + ".json" }

// write writes one commit: the blobs that are new, the folders that they are in, and what stands above those.
func (w *gitWriter) write(k *ledgerCommit, parents []*gitCommit) (*gitCommit, error) {
	made := &gitCommit{dirs: map[string]*gitDir{}}
	fresh := map[string][]string{"commits": {k.ID}, "events": k.Events}
	if len(parents) == 2 { // what the merge took in by its other parent
		for _, dir := range objectDirs {
			fresh[dir] = append(fresh[dir], parents[1].lacking(dir, parents[0])...)
		}
	}
	root := new(object.Tree)
	for _, name := range objectDirs {
		before := new(gitDir)
		if len(parents) > 0 {
			before = parents[0].dirs[name]
		}
		dir, err := w.extend(name, before, fresh[name])
		if err != nil {
			return nil, err
		}
		made.dirs[name] = dir
		root.Entries = append(root.Entries, object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: dir.hash})
	}
	tree, err := w.store(root)
	if err != nil {
		return nil, err
	}
	at, err := time.Parse(time.RFC3339, k.Timestamp)
	if err != nil {
		return nil, err
	}
	var hashes []plumbing.Hash
	for _, p := range parents {
		hashes = append(hashes, p.hash)
	}
	by := object.Signature{Name: "memhost", Email: "memhost@localhost", When: at.UTC()}
	made.hash, err = w.store(&object.Commit{Author: by, Committer: by, Message: k.Message + "\n\nledger commit " + k.ID + "\n", TreeHash: tree, ParentHashes: hashes})
	return made, err
}

// lacking lists the ids that a commit's folder has and another's has not; fans that both share are not looked into.
func (c *gitCommit) lacking(dir string, other *gitCommit) (ids []string) {
	for fan, tree := range c.dirs[dir].fans {
		theirs := other.dirs[dir].fans[fan]
		if theirs == tree {
			continue
		}
		for _, e := range tree.Entries {
			if theirs == nil || !hasEntry(theirs.Entries, e.Name) {
				ids = append(ids, strings.TrimSuffix(e.Name, ".json"))
			}
		}
	}
	return ids
}

func byName(e object.TreeEntry, name string) int { return strings.Compare(e.Name, name) }

func hasEntry(list []object.TreeEntry, name string) bool {
	_, found := slices.BinarySearchFunc(list, name, byName)
	return found
}

// withEntry is a sorted list with an entry put in, or in place of the one of its name.
func withEntry(list []object.TreeEntry, e object.TreeEntry) []object.TreeEntry {
	at, found := slices.BinarySearchFunc(list, e.Name, byName)
	if found {
		list = slices.Clone(list)
		list[at] = e
		return list
	}
	return slices.Insert(slices.Clip(list), at, e)
}

// extend writes a folder with objects more.
func (w *gitWriter) extend(name string, before *gitDir, ids []string) (*gitDir, error) {
	changed := map[string]*object.Tree{}
	for _, id := range ids {
		fan := id[:min(2, len(id))]
		tree := changed[fan]
		if tree == nil {
			tree = new(object.Tree)
			if was := before.fans[fan]; was != nil {
				tree.Entries = slices.Clone(was.Entries)
			}
			changed[fan] = tree
		}
		if hasEntry(tree.Entries, id+".json") {
			continue
		}
		blob, err := w.blob(w.files[fanned(name, id)])
		if err != nil {
			return nil, err
		}
		tree.Entries = withEntry(tree.Entries, object.TreeEntry{Name: id + ".json", Mode: filemode.Regular, Hash: blob})
	}
	if len(changed) == 0 && before.fans != nil {
		return before, nil
	}
	dir := &gitDir{fans: maps.Clone(before.fans), entries: slices.Clone(before.entries)}
	if dir.fans == nil {
		dir.fans = map[string]*object.Tree{}
	}
	for _, fan := range slices.Sorted(maps.Keys(changed)) {
		hash, err := w.store(changed[fan])
		if err != nil {
			return nil, err
		}
		dir.fans[fan] = changed[fan]
		dir.entries = withEntry(dir.entries, object.TreeEntry{Name: fan, Mode: filemode.Dir, Hash: hash})
	}
	var err error
	dir.hash, err = w.store(&object.Tree{Entries: dir.entries})
	return dir, err
}

func (w *gitWriter) blob(text string) (plumbing.Hash, error) {
	blob := w.repository.Storer.NewEncodedObject()
	blob.SetType(plumbing.BlobObject)
	out, err := blob.Writer()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if _, err := out.Write([]byte(text)); err != nil {
		return plumbing.ZeroHash, err
	}
	return w.repository.Storer.SetEncodedObject(blob)
}

func (w *gitWriter) store(o interface {
	Encode(plumbing.EncodedObject) error
}) (plumbing.Hash, error) {
	encoded := w.repository.Storer.NewEncodedObject()
	if err := o.Encode(encoded); err != nil {
		return plumbing.ZeroHash, err
	}
	return w.repository.Storer.SetEncodedObject(encoded)
}
