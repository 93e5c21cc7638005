package memoryfiles

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/memhost/memhost/abi"
)

// fileVersion is a line of versions/log.jsonl: the files of that version, by path, with their names in versions/blobs.
type fileVersion struct {
	SHA, Author, Message, Time string
	// Summary is the model's description of the version.
	Summary string
	Tree    map[string]string
}

// writeVersions writes a commit for each line of versions/log.jsonl, or one commit of all files without such a log. It
// returns the files of the last commit.
func writeVersions(g *gitRepository, files map[string]string) (map[string]gitHash, error) {
	versions, blobs, err := versionsOf(files)
	if err != nil {
		return nil, err
	}
	var parents []gitHash
	var written map[string]gitHash
	for _, v := range versions {
		at, err := time.Parse(time.RFC3339, v.Time)
		if err != nil {
			return nil, abi.NewError(abi.CodeBackend, versionLog+": "+err.Error())
		}
		written = make(map[string]gitHash, len(v.Tree))
		for path, name := range v.Tree {
			if written[path], err = g.blob(blobs[name]); err != nil {
				return nil, err
			}
		}
		tree, err := g.folder(written)
		if err != nil {
			return nil, err
		}
		hash, err := g.commit(tree, parents, v.Author, at, v.commitMessage())
		if err != nil {
			return nil, err
		}
		parents = []gitHash{hash}
	}
	return written, errors.Join(g.branch(mainBranch, parents[0]), g.head(mainBranch))
}

// commitMessage is the version's message as the subject, followed by the model's summary.
func (v *fileVersion) commitMessage() string {
	subject, record, _ := strings.Cut(v.Message, "\n\n")
	parts := slices.DeleteFunc([]string{subject, strings.TrimSpace(v.Summary), strings.TrimRight(record, "\n")},
		func(part string) bool { return part == "" })
	return strings.Join(parts, "\n\n") + "\n"
}

// hasHistory reports whether files bring versions or commits along.
func hasHistory(files map[string]string) bool {
	_, versions := files[versionLog]
	_, commits := files["branches.json"]
	return versions || commits
}

// versionLog is the file that lists the versions.
const versionLog = "versions/log.jsonl"

func versionsOf(files map[string]string) (versions []fileVersion, blobs map[string]string, err error) {
	log, is := files[versionLog]
	if !is {
		all := fileVersion{Author: "memhost", Message: "export", Time: time.Now().UTC().Format(time.RFC3339),
			Tree: map[string]string{}}
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
			return nil, nil, abi.NewError(abi.CodeBackend, versionLog+": "+err.Error())
		}
		versions = append(versions, v)
	}
	if len(versions) == 0 {
		return nil, nil, abi.NewError(abi.CodeBackend, versionLog+": it names no version")
	}
	return versions, blobs, nil
}

// folder writes the tree of some files and the trees below it.
func (g *gitRepository) folder(files map[string]gitHash) (gitHash, error) {
	var entries []object.TreeEntry
	inside := map[string]map[string]gitHash{}
	for path, hash := range files {
		dir, rest, is := strings.Cut(path, "/")
		if !is {
			entries = append(entries, gitFile(path, hash))
			continue
		}
		if inside[dir] == nil {
			inside[dir] = map[string]gitHash{}
		}
		inside[dir][rest] = hash
	}
	for dir, below := range inside {
		hash, err := g.folder(below)
		if err != nil {
			return gitHash{}, err
		}
		entries = append(entries, gitFolder(dir, hash))
	}
	return g.tree(entries)
}
