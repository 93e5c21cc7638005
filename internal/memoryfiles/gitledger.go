package memoryfiles

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/memhost/memhost/abi"
)

// ledgerCommit is a commit of the ledger as in its file.
type ledgerCommit struct {
	ID, Branch, Message, Timestamp string
	Events                         []string
	ParentID                       string `json:"parent_id"`
	MergeParentID                  string `json:"merge_parent_id"`
	Metadata                       struct {
		CherryPickedFrom string `json:"cherry_picked_from"`
	}
}

// objectDirs are the folders of a ledger's objects, which are fanned out in a repository.
var objectDirs = []string{"commits", "events"}

// FanOut moves events and commits into folders named by the first two digits of their ids.
func FanOut(files map[string]string) map[string]string {
	out := make(map[string]string, len(files))
	for path, text := range files {
		if dir, name, ok := strings.Cut(path, "/"); ok && slices.Contains(objectDirs, dir) && len(name) > 2 {
			path = dir + "/" + name[:2] + "/" + name
		}
		out[path] = text
	}
	return out
}

// writeLedger writes an exported ledger, fanned out, with one Git commit for each of its commits. Each has the files
// that existed at that commit. It returns the files of the current branch.
func writeLedger(g *gitRepository, files map[string]string) (map[string]gitHash, error) {
	var listed struct {
		Branches []struct{ Name, Head string }
	}
	if err := json.Unmarshal([]byte(files["branches.json"]), &listed); err != nil {
		return nil, abi.NewError(abi.CodeBackend, "branches.json: "+err.Error())
	}
	w := &ledgerWriter{gitRepository: g, files: files, made: map[string]*gitCommit{}, waiting: map[string]int{}}
	for path, text := range files {
		if !strings.HasPrefix(path, "commits/") {
			continue
		}
		var k ledgerCommit
		if err := json.Unmarshal([]byte(text), &k); err != nil {
			return nil, abi.NewError(abi.CodeBackend, path+": "+err.Error())
		}
		w.waiting[k.ParentID]++
		w.waiting[k.MergeParentID]++
	}
	current, staged := strings.TrimSpace(files["HEAD"]), map[string]gitHash{}
	for _, b := range listed.Branches {
		if b.Head == "" {
			continue
		}
		if b.Name == current {
			w.waiting[b.Head]++ // its folders are staged below
		}
		made, err := w.commit(b.Head)
		if err != nil {
			return nil, err
		}
		if err := g.branch(b.Name, made.hash); err != nil {
			return nil, err
		}
		if b.Name == current {
			made.stage(staged)
		}
	}
	return staged, g.head(current)
}

type ledgerWriter struct {
	*gitRepository
	files map[string]string
	made  map[string]*gitCommit
	// waiting counts the children of a commit that are not written yet. After the last one its folders are dropped.
	waiting map[string]int
}

// gitCommit is a written commit with its folders. It shares unchanged folders with its parent.
type gitCommit struct {
	hash gitHash
	dirs map[string]*gitDir
}

// gitDir is a folder of objects ("events") with its two-digit subfolders.
type gitDir struct {
	hash gitHash
	fans map[string]*gitFan
}

// gitFan is a subfolder: files by name.
type gitFan struct {
	hash  gitHash
	files map[string]gitHash
}

// stage adds the files of a commit to staged, by path.
func (c *gitCommit) stage(staged map[string]gitHash) {
	for dir, objects := range c.dirs {
		for name, fan := range objects.fans {
			for file, hash := range fan.files {
				staged[dir+"/"+name+"/"+file] = hash
			}
		}
	}
}

// commit writes a commit after its parents. It does not recurse, because a ledger may be long.
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
		if known, is := w.known[id]; is {
			if made, err := w.load(known); err == nil {
				w.made[id] = made
				continue
			}
			delete(w.known, id) // its objects were removed
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
		made, err := w.writeCommit(&k, parents)
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

// writeCommit writes one commit: new blobs, the folders that hold them, and the tree above those.
func (w *ledgerWriter) writeCommit(k *ledgerCommit, parents []*gitCommit) (*gitCommit, error) {
	made := &gitCommit{dirs: map[string]*gitDir{}}
	fresh := map[string][]string{"commits": {k.ID}, "events": k.Events}
	if len(parents) == 2 { // what the merge brought in from its other parent
		for _, dir := range objectDirs {
			fresh[dir] = append(fresh[dir], parents[1].lacking(dir, parents[0])...)
		}
	}
	var root []object.TreeEntry
	var hashes []gitHash
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
		root = append(root, gitFolder(name, dir.hash))
	}
	for _, p := range parents {
		hashes = append(hashes, p.hash)
	}
	tree, err := w.tree(root)
	if err != nil {
		return nil, err
	}
	at, err := time.Parse(time.RFC3339, k.Timestamp)
	if err != nil {
		return nil, err
	}
	made.hash, err = w.gitRepository.commit(tree, hashes, "memhost", at, k.Message+"\n\n"+ledgerID+k.ID+"\n")
	return made, err
}

// ledgerID precedes the id of a ledger's commit on the last line of a message.
const ledgerID = "ledger commit "

// recognize notes which commit of a ledger an earlier update wrote as hash, if it is one.
func (g *gitRepository) recognize(hash gitHash) {
	c, err := object.GetCommit(g.storage, hash)
	if err != nil {
		return
	}
	last := c.Message[strings.LastIndex(strings.TrimSuffix(c.Message, "\n"), "\n")+1:]
	if id, is := strings.CutPrefix(strings.TrimSuffix(last, "\n"), ledgerID); is {
		g.known[id] = hash
	}
}

// load reads a commit with its folders.
func (g *gitRepository) load(hash gitHash) (*gitCommit, error) {
	c, err := object.GetCommit(g.storage, hash)
	if err != nil {
		return nil, err
	}
	root, err := object.GetTree(g.storage, c.TreeHash)
	if err != nil {
		return nil, err
	}
	made := &gitCommit{hash: hash, dirs: map[string]*gitDir{}}
	for _, entry := range root.Entries {
		tree, err := object.GetTree(g.storage, entry.Hash)
		if err != nil {
			return nil, err
		}
		dir := &gitDir{hash: entry.Hash, fans: map[string]*gitFan{}}
		for _, part := range tree.Entries {
			files, err := object.GetTree(g.storage, part.Hash)
			if err != nil {
				return nil, err
			}
			fan := &gitFan{hash: part.Hash, files: map[string]gitHash{}}
			for _, file := range files.Entries {
				fan.files[file.Name] = file.Hash
			}
			dir.fans[part.Name] = fan
		}
		made.dirs[entry.Name] = dir
	}
	return made, nil
}

// lacking lists the ids that a commit's folder has and that of another commit lacks. A subfolder that both share is
// skipped.
func (c *gitCommit) lacking(dir string, other *gitCommit) (ids []string) {
	for name, fan := range c.dirs[dir].fans {
		theirs := other.dirs[dir].fans[name]
		if theirs != nil && theirs.hash == fan.hash {
			continue
		}
		for file := range fan.files {
			if theirs == nil || theirs.files[file] == (gitHash{}) {
				ids = append(ids, strings.TrimSuffix(file, ".json"))
			}
		}
	}
	return ids
}

// extend writes a folder with additional objects.
func (w *ledgerWriter) extend(name string, before *gitDir, ids []string) (*gitDir, error) {
	changed := map[string]*gitFan{}
	for _, id := range ids {
		blob, err := w.blob(w.files[fanned(name, id)])
		if err != nil {
			return nil, err
		}
		part := id[:min(2, len(id))]
		if changed[part] == nil {
			changed[part] = &gitFan{files: map[string]gitHash{}}
			if was := before.fans[part]; was != nil {
				changed[part].files = maps.Clone(was.files)
			}
		}
		changed[part].files[id+".json"] = blob
	}
	if len(changed) == 0 && before.fans != nil {
		return before, nil
	}
	dir := &gitDir{fans: map[string]*gitFan{}}
	maps.Copy(dir.fans, before.fans)
	for part, fan := range changed {
		var err error
		if fan.hash, err = w.folder(fan.files); err != nil {
			return nil, err
		}
		dir.fans[part] = fan
	}
	var entries []object.TreeEntry
	for part, fan := range dir.fans {
		entries = append(entries, gitFolder(part, fan.hash))
	}
	var err error
	dir.hash, err = w.tree(entries)
	return dir, err
}
