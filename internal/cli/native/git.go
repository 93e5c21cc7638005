package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/memhost/memhost/abi"
)

// writeGit turns an exported folder into a repository. It also stages the files of the branch: without an index `git
// status` would show every file as deleted.
func writeGit(dir string, files map[string]string) error {
	repository, err := newRepository(filepath.Join(dir, ".git"))
	if err != nil {
		return err
	}
	write := writeVersions
	if _, is := files["branches.json"]; is {
		write = writeLedger
	}
	staged, err := write(repository, files)
	if err == nil && len(staged) > 0 {
		err = repository.writeIndex(staged)
	}
	return errors.Join(err, repository.close())
}

// gitHash is the name of an object.
type gitHash = plumbing.Hash

// gitRepository writes a repository: one compressed file for each object, and no packs.
type gitRepository struct {
	dir     string // .git
	storage *filesystem.Storage
}

// newRepository creates an empty repository. An existing one is an error.
func newRepository(dir string) (*gitRepository, error) {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return nil, err
	}
	err := errors.Join(os.Mkdir(filepath.Join(dir, "objects"), 0o777), os.MkdirAll(filepath.Join(dir, "refs", "heads"), 0o777),
		os.WriteFile(filepath.Join(dir, "config"), []byte("[core]\n\trepositoryformatversion = 0\n\tbare = false\n"), 0o666))
	if err != nil {
		return nil, err
	}
	return &gitRepository{dir, filesystem.NewStorage(osfs.New(dir, osfs.WithBoundOS()), cache.NewObjectLRUDefault())}, nil
}

// close removes the folder of packs, which go-git needs while it writes files.
func (g *gitRepository) close() error {
	err := os.Remove(filepath.Join(g.dir, "objects", "pack"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// write writes an object unless it exists.
func (g *gitRepository) write(o plumbing.EncodedObject) (gitHash, error) {
	if g.storage.HasEncodedObject(o.Hash()) == nil {
		return o.Hash(), nil
	}
	return g.storage.SetEncodedObject(o)
}

func (g *gitRepository) blob(text string) (gitHash, error) {
	o := g.storage.NewEncodedObject()
	o.SetType(plumbing.BlobObject)
	w, err := o.Writer()
	if err != nil {
		return gitHash{}, err
	}
	if _, err := w.Write([]byte(text)); err != nil {
		return gitHash{}, err
	}
	return g.write(o)
}

// gitFile and gitFolder are entries of a tree.
func gitFile(name string, hash gitHash) object.TreeEntry {
	return object.TreeEntry{Name: name, Mode: filemode.Regular, Hash: hash}
}

func gitFolder(name string, hash gitHash) object.TreeEntry {
	return object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: hash}
}

// tree writes a folder.
func (g *gitRepository) tree(entries []object.TreeEntry) (gitHash, error) {
	sort.Sort(object.TreeEntrySorter(entries))
	o := g.storage.NewEncodedObject()
	if err := (&object.Tree{Entries: entries}).Encode(o); err != nil {
		return gitHash{}, err
	}
	return g.write(o)
}

// gitName removes the characters that would end an author's name in a commit.
var gitName = strings.NewReplacer("<", "", ">", "", "\n", " ", "\x00", "")

// commit writes a commit of a tree by an author of this machine.
func (g *gitRepository) commit(
	tree gitHash, parents []gitHash, author string, at time.Time, message string,
) (gitHash, error) {
	author = gitName.Replace(author)
	by := object.Signature{Name: author, Email: author + "@localhost", When: at.UTC()}
	o := g.storage.NewEncodedObject()
	c := object.Commit{Author: by, Committer: by, Message: message, TreeHash: tree, ParentHashes: parents}
	if err := c.Encode(o); err != nil {
		return gitHash{}, err
	}
	return g.write(o)
}

// branch creates a branch that points to a commit.
func (g *gitRepository) branch(name string, hash gitHash) error {
	ref := plumbing.NewBranchReferenceName(name)
	if ref.Validate() != nil || !filepath.IsLocal(name) {
		return abi.NewError(abi.CodeBackend, fmt.Sprintf("branches.json: a branch cannot be named %s", name))
	}
	return g.storage.SetReference(plumbing.NewHashReference(ref, hash))
}

// head makes a branch the current one. The branch may have no commit.
func (g *gitRepository) head(branch string) error {
	return g.storage.SetReference(plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.NewBranchReferenceName(branch)))
}

// writeIndex stages files: blobs by path. Times and sizes are 0, so that Git compares the files themselves once.
func (g *gitRepository) writeIndex(staged map[string]gitHash) error {
	const version = 2
	all := &index.Index{Version: version}
	for name, hash := range staged {
		all.Entries = append(all.Entries, &index.Entry{Name: name, Hash: hash, Mode: filemode.Regular})
	}
	return g.storage.SetIndex(all)
}
