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

// fileVersion is a line of versions/log.jsonl: which files there were, by path, as the names of versions/blobs.
type fileVersion struct {
	SHA, Author, Message, Time string
	// Summary is what the model said of the version.
	Summary string
	Tree    map[string]string
}

// writeVersions makes a repository of an exported folder: a commit for each line of versions/log.jsonl, or one of all files where there is no such log.
func writeVersions(dir string, files map[string]string) error {
	versions, blobs, err := versionsOf(files)
	if err != nil {
		return err
	}
	repository, err := git.PlainInit(dir, false)
	if err != nil {
		return err
	}
	w := &versionWriter{gitObjects{repository.Storer}, blobs}
	var parents []plumbing.Hash
	for _, v := range versions {
		tree, err := w.folder(v.Tree)
		if err != nil {
			return err
		}
		at, err := time.Parse(time.RFC3339, v.Time)
		if err != nil {
			return abi.NewError(abi.CodeBackend, "versions/log.jsonl: "+err.Error())
		}
		by := object.Signature{Name: v.Author, Email: v.Author + "@localhost", When: at.UTC()}
		hash, err := w.store(&object.Commit{Author: by, Committer: by, Message: v.commitMessage(), TreeHash: tree,
			ParentHashes: parents})
		if err != nil {
			return err
		}
		parents = []plumbing.Hash{hash}
	}
	branch := plumbing.NewBranchReferenceName("main")
	if err := repository.Storer.SetReference(plumbing.NewHashReference(branch, parents[0])); err != nil {
		return err
	}
	return repository.Storer.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, branch))
}

// commitMessage is the version's message, with what the model said of it behind the subject.
func (v *fileVersion) commitMessage() string {
	subject, record, _ := strings.Cut(v.Message, "\n\n")
	parts := slices.DeleteFunc([]string{subject, strings.TrimSpace(v.Summary), strings.TrimRight(record, "\n")},
		func(part string) bool { return part == "" })
	return strings.Join(parts, "\n\n") + "\n"
}

func versionsOf(files map[string]string) (versions []fileVersion, blobs map[string]string, err error) {
	log, is := files["versions/log.jsonl"]
	if !is {
		all := fileVersion{Author: "memhost", Message: "export", Time: time.Now().UTC().Format(time.RFC3339), Tree: map[string]string{}}
		for path := range files {
			all.Tree[path] = path
		}
		return []fileVersion{all}, files, nil
	}
	blobs = map[string]string{}
	for path, text := range files {
		if name, is := strings.CutPrefix(path, "versions/blobs/"); is {
			blobs[name] = text
		}
	}
	for line := range strings.Lines(log) {
		var v fileVersion
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			return nil, nil, abi.NewError(abi.CodeBackend, "versions/log.jsonl: "+err.Error())
		}
		versions = append(versions, v)
	}
	return versions, blobs, nil
}

// versionWriter writes the objects of a repository. files are texts by name.
type versionWriter struct {
	gitObjects
	files map[string]string
}

// folder writes the tree of some files. paths are given with the names of their texts in w.files.
func (w *versionWriter) folder(paths map[string]string) (plumbing.Hash, error) {
	tree, inside := new(object.Tree), map[string]map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if dir, rest, is := strings.Cut(path, "/"); is {
			if inside[dir] == nil {
				inside[dir] = map[string]string{}
			}
			inside[dir][rest] = paths[path]
			continue
		}
		hash, err := w.blob(w.files[paths[path]])
		if err != nil {
			return plumbing.ZeroHash, err
		}
		tree.Entries = append(tree.Entries, object.TreeEntry{Name: path, Mode: filemode.Regular, Hash: hash})
	}
	for _, dir := range slices.Sorted(maps.Keys(inside)) {
		hash, err := w.folder(inside[dir])
		if err != nil {
			return plumbing.ZeroHash, err
		}
		tree.Entries = append(tree.Entries, object.TreeEntry{Name: dir, Mode: filemode.Dir, Hash: hash})
	}
	slices.SortFunc(tree.Entries, func(a, b object.TreeEntry) int { return strings.Compare(gitName(a), gitName(b)) })
	return w.store(tree)
}

// gitName is what git sorts the entries of a tree by.
func gitName(e object.TreeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
}
