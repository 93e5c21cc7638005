package cli

import (
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// writeGit makes a repository of an exported folder, whichever memory it is of.
func writeGit(dir string, files map[string]string) error {
	if _, is := files["branches.json"]; is {
		return writeLedger(dir, files)
	}
	return writeVersions(dir, files)
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
