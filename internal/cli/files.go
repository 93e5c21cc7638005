package cli

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/spf13/cobra"

	"github.com/memhost/memhost/abi"
)

const exportHelp = `Writes a scope's memory as files that a person can read, by the provider's native query "files". FOLDER must be empty or not there.
With --git FOLDER becomes a repository. Its commits and branches are the ledger's (ledger_memory; events and commits then stand in folders by the first two digits
of their ids, so that a commit need not write the names of all), or the versions of what Dream edits (layered_memory); of a memory without versions it has one commit.`

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

const importHelp = `Reads FOLDER and hands its files to the provider's native mutation "import_files": what export wrote, or, for rolling_summary and layered_memory, a workspace
of Nanobot (its sessions as sessions/*.jsonl in it). The scope should be empty. Files that the provider does not take are named, .git among them.`

func (a *app) importCommand() *cobra.Command {
	var f scopeFlags
	cmd := &cobra.Command{Use: "import FOLDER", Short: "Take a folder of memory files into a scope", Args: cobra.ExactArgs(1),
		Long: importHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, left, err := readFolder(args[0])
			if err != nil {
				return err
			}
			for _, path := range left {
				a.out.note("not taken in: %s", printable(path))
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

// filesOf asks for all pages of the query "files": an object of paths with their texts, and in trace.details.next where the next page begins. A path that
// comes again goes on there.
func filesOf(ctx context.Context, d *door, scope abi.MemoryScope) (map[string]string, error) {
	files := map[string]string{}
	params := map[string]abi.Raw{}
	for {
		page, err := d.NativeQuery(ctx, &abi.NativeQuery{Scope: scope, Name: "files", Params: params})
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

// readFolder reads the files of a folder. left are those that cannot be taken: a repository, and what is no regular file.
func readFolder(dir string) (files map[string]string, left []string, err error) {
	files = map[string]string{}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch {
		case e.IsDir() && e.Name() == ".git":
			left = append(left, filepath.ToSlash(name))
			return fs.SkipDir
		case e.IsDir():
			return nil
		case !e.Type().IsRegular():
			left = append(left, filepath.ToSlash(name))
			return nil
		}
		text, err := os.ReadFile(path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		return nil, nil, usageError(err.Error(), "")
	}
	return files, left, nil
}

// importBatch is about how many bytes of files one call brings.
const importBatch = 2 << 20

// importer hands files to import_files, in as many calls as it takes.
type importer struct {
	send    func(params map[string]abi.Raw) (*abi.MutationReceipt, error)
	batch   map[string]string
	bytes   int
	goesOn  bool // the batch's first file goes on where the last call ended
	skipped []string
}

func (a *app) importFiles(ctx context.Context, d *door, scope abi.MemoryScope, files map[string]string) error {
	i := &importer{batch: map[string]string{}, send: func(params map[string]abi.Raw) (*abi.MutationReceipt, error) {
		return d.NativeMutation(ctx, &abi.NativeMutation{Scope: scope, Name: "import_files", Reason: "import", Params: params})
	}}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		text := files[path]
		if !utf8.ValidString(text) {
			text = strings.ToValidUTF8(text, "\uFFFD")
			a.out.note("not UTF-8, what cannot be read became U+FFFD: %s", printable(path))
		}
		if err := i.add(path, text); err != nil {
			return err
		}
	}
	if err := i.flush(true); err != nil {
		return err
	}
	for _, path := range i.skipped {
		a.out.note("not taken in: %s", printable(path))
	}
	a.out.print("%s\n", count(len(files)-len(i.skipped), "file"))
	return nil
}

// add puts a file into the batch, and sends what is full. A file that is larger than a batch is sent in parts, cut between characters.
func (i *importer) add(path, text string) error {
	if i.bytes > 0 && i.bytes+len(text) > importBatch {
		if err := i.flush(false); err != nil {
			return err
		}
	}
	for goesOn := false; ; goesOn = true {
		end := min(len(text), importBatch)
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		i.batch[path], i.bytes, i.goesOn = text[:end], i.bytes+end, i.goesOn || goesOn
		if text = text[end:]; text == "" {
			return nil
		}
		if err := i.flush(false); err != nil {
			return err
		}
	}
}

func (i *importer) flush(done bool) error {
	text, err := json.Marshal(i.batch)
	if err != nil {
		return err
	}
	params := map[string]abi.Raw{"files": text, "done": abi.Raw(strconv.FormatBool(done))}
	if i.goesOn {
		params["continues"] = abi.Raw("true")
	}
	r, err := i.send(params)
	if err != nil {
		return err
	}
	if r.Status == "skipped_read_only" {
		return abi.NewError(abi.CodeReadOnly, "the slot is read-only: nothing was taken in")
	}
	if r.Trace != nil && len(r.Trace.Details["skipped"]) > 0 {
		var skipped []string
		if err := json.Unmarshal(r.Trace.Details["skipped"], &skipped); err != nil {
			return abi.NewError(abi.CodeBackend, "import_files: "+err.Error())
		}
		for _, path := range skipped {
			if !slices.Contains(i.skipped, path) {
				i.skipped = append(i.skipped, path)
			}
		}
	}
	i.batch, i.bytes, i.goesOn = map[string]string{}, 0, false
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
	if _, is := files["branches.json"]; !is {
		return writeVersions(dir, files)
	}
	var listed struct {
		Branches []struct{ Name, Head string }
	}
	if err := json.Unmarshal([]byte(files["branches.json"]), &listed); err != nil {
		return abi.NewError(abi.CodeBackend, "branches.json: "+err.Error())
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
