package memoryfiles

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

// WriteGit turns an exported folder into a repository. It also stages the files of the branch: without an index `git
// status` would show every file as deleted.
func WriteGit(dir string, files map[string]string) error {
	repository, err := newRepository(filepath.Join(dir, gitFolderName))
	if err != nil {
		return err
	}
	staged, err := writerOf(files)(repository, files)
	if err == nil && len(staged) > 0 {
		err = repository.writeIndex(staged)
	}
	return errors.Join(err, repository.close())
}

// gitFolderName is the folder of a repository in a folder of files.
const gitFolderName = ".git"

// writerOf returns what writes the history that files have.
func writerOf(files map[string]string) func(*gitRepository, map[string]string) (map[string]gitHash, error) {
	if _, is := files["branches.json"]; is {
		return writeLedger
	}
	return writeVersions
}

// updateGit brings the repository of a folder up to date with files, and creates it if there is none. Files with a
// history of their own have the commits of that history, which have the same names each time. Other files get a commit on
// top of the last one, with the given message, unless nothing has changed.
//
// ours has the branches as the last update left them, and is changed to what this one leaves. A branch that somebody has
// moved since is kept under another name; kept lists those names.
func updateGit(dir string, files map[string]string, ours map[string]string, message string, at time.Time) (kept []string, err error) {
	g, err := openRepository(filepath.Join(dir, gitFolderName))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	before, err := g.branches()
	if err != nil {
		return nil, err
	}
	for name, hash := range before {
		if hash.String() == ours[name] {
			g.recognize(hash)
		}
	}
	write := writerOf(files)
	if !hasHistory(files) {
		write = func(g *gitRepository, files map[string]string) (map[string]gitHash, error) {
			return g.snapshot(files, message, at)
		}
	}
	staged, err := write(g, files)
	if err != nil {
		return nil, err
	}
	if len(staged) > 0 {
		if err := g.writeIndex(staged); err != nil {
			return nil, err
		}
	}
	after, err := g.branches()
	if err != nil {
		return nil, err
	}
	for name, hash := range after {
		was, is := before[name]
		switch {
		case is && was == hash:
		case is && hasHistory(files) && was.String() != ours[name]:
			aside := "by-hand-" + was.String()[:12]
			if err := g.branch(aside, was); err != nil {
				return nil, err
			}
			kept = append(kept, aside)
			fallthrough
		default:
			ours[name] = hash.String()
		}
	}
	return kept, nil
}

// snapshot commits files on top of the branch main, unless it has them. It returns them for the index.
func (g *gitRepository) snapshot(files map[string]string, message string, at time.Time) (map[string]gitHash, error) {
	written := make(map[string]gitHash, len(files))
	for path, text := range files {
		var err error
		if written[path], err = g.blob(text); err != nil {
			return nil, err
		}
	}
	tree, err := g.folder(written)
	if err != nil {
		return nil, err
	}
	branches, err := g.branches()
	if err != nil {
		return nil, err
	}
	var parents []gitHash
	if last, is := branches[mainBranch]; is {
		c, err := object.GetCommit(g.storage, last)
		if err != nil {
			return nil, err
		}
		if c.TreeHash == tree {
			return written, nil
		}
		parents = []gitHash{last}
	}
	hash, err := g.commit(tree, parents, "memhost", at, message+"\n")
	if err != nil {
		return nil, err
	}
	return written, errors.Join(g.branch(mainBranch, hash), g.head(mainBranch))
}

// mainBranch is the branch of files without branches of their own.
const mainBranch = "main"

// gitHash is the name of an object.
type gitHash = plumbing.Hash

// gitRepository writes a repository: one compressed file for each object, and no packs.
type gitRepository struct {
	dir     string // .git
	storage *filesystem.Storage
	// known has commits of a ledger, by its ids, that an earlier update wrote, with all before them.
	known map[string]gitHash
}

// newRepository creates an empty repository. An existing one is an error.
func newRepository(dir string) (*gitRepository, error) {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return nil, err
	}
	return openRepository(dir)
}

// openRepository opens a repository in an existing folder, and adds what is missing to make it one.
func openRepository(dir string) (*gitRepository, error) {
	err := errors.Join(os.MkdirAll(filepath.Join(dir, "objects"), 0o777), os.MkdirAll(filepath.Join(dir, "refs", "heads"), 0o777))
	config := filepath.Join(dir, "config")
	if _, missing := os.Stat(config); errors.Is(missing, fs.ErrNotExist) {
		err = errors.Join(err, os.WriteFile(config, []byte("[core]\n\trepositoryformatversion = 0\n\tbare = false\n"), 0o666))
	}
	if err != nil {
		return nil, err
	}
	return &gitRepository{dir: dir, known: map[string]gitHash{}, storage: filesystem.NewStorage(osfs.New(dir, osfs.WithBoundOS()), cache.NewObjectLRUDefault())}, nil
}

// close removes the folder of packs, which go-git needs while it writes files, unless Git has put packs there.
func (g *gitRepository) close() error {
	packs := filepath.Join(g.dir, "objects", "pack")
	if found, err := os.ReadDir(packs); errors.Is(err, fs.ErrNotExist) || len(found) > 0 {
		return nil
	}
	return os.Remove(packs)
}

// branches returns the branches with their commits.
func (g *gitRepository) branches() (map[string]gitHash, error) {
	refs, err := g.storage.IterReferences()
	if err != nil {
		return nil, err
	}
	found := map[string]gitHash{}
	return found, refs.ForEach(func(r *plumbing.Reference) error {
		if r.Name().IsBranch() && r.Type() == plumbing.HashReference {
			found[r.Name().Short()] = r.Hash()
		}
		return nil
	})
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
