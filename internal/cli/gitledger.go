package cli

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/memhost/memhost/abi"
)

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

// writeLedger makes a repository of an exported ledger, fanned out: a git commit for each of its commits, with the
// files that had come until then.
func writeLedger(dir string, files map[string]string) error {
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
	w := &ledgerWriter{gitObjects: gitObjects{repository.Storer}, files: files, made: map[string]*gitCommit{},
		waiting: map[string]int{}}
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
		if err := repository.Storer.SetReference(plumbing.NewHashReference(plumbing.NewBranchReferenceName(b.Name),
			made.hash)); err != nil {
			return err
		}
	}
	return repository.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD,
		plumbing.NewBranchReferenceName(strings.TrimSpace(files["HEAD"]))))
}

type ledgerWriter struct {
	gitObjects
	files map[string]string
	made  map[string]*gitCommit
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
func (w *ledgerWriter) commit(head string) (*gitCommit, error) {
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
func (w *ledgerWriter) write(k *ledgerCommit, parents []*gitCommit) (*gitCommit, error) {
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
	made.hash, err = w.store(&object.Commit{Author: by, Committer: by, Message: k.Message + "\n\nledger commit " +
		k.ID + "\n", TreeHash: tree, ParentHashes: hashes})
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
func (w *ledgerWriter) extend(name string, before *gitDir, ids []string) (*gitDir, error) {
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
