package cli

import (
	"errors"
	"io"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// writeGit makes a repository of an exported folder, whichever memory it is of.
func writeGit(dir string, files map[string]string) error {
	write := writeVersions
	if _, is := files["branches.json"]; is {
		write = writeLedger
	}
	if err := write(dir, files); err != nil {
		return err
	}
	return writeIndex(dir)
}

// writeIndex stages what the current branch has: without an index `git status` would call every file deleted.
func writeIndex(dir string) error {
	repository, err := git.PlainOpen(dir)
	if err != nil {
		return err
	}
	head, err := repository.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return nil // a branch without a commit
	}
	if err != nil {
		return err
	}
	commit, err := repository.CommitObject(head.Hash())
	if err != nil {
		return err
	}
	tree, err := commit.Tree()
	if err != nil {
		return err
	}
	staged := &index.Index{Version: 2}
	walker := object.NewTreeWalker(tree, true, nil)
	defer walker.Close()
	for {
		path, entry, err := walker.Next()
		if errors.Is(err, io.EOF) {
			return repository.Storer.SetIndex(staged)
		}
		if err != nil {
			return err
		}
		if entry.Mode.IsFile() {
			staged.Entries = append(staged.Entries, &index.Entry{Name: path, Hash: entry.Hash, Mode: entry.Mode})
		}
	}
}

// gitObjects writes objects of a repository.
type gitObjects struct{ storer storer.EncodedObjectStorer }

func (g gitObjects) blob(text string) (plumbing.Hash, error) {
	blob := g.storer.NewEncodedObject()
	blob.SetType(plumbing.BlobObject)
	out, err := blob.Writer()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if _, err := out.Write([]byte(text)); err != nil {
		return plumbing.ZeroHash, err
	}
	return g.storer.SetEncodedObject(blob)
}

// store writes a tree or a commit.
func (g gitObjects) store(o interface {
	Encode(plumbing.EncodedObject) error
}) (plumbing.Hash, error) {
	encoded := g.storer.NewEncodedObject()
	if err := o.Encode(encoded); err != nil {
		return plumbing.ZeroHash, err
	}
	return g.storer.SetEncodedObject(encoded)
}
