package cli

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
)

// writeGit makes a repository of an exported folder. What its branch has is staged as well: without an index
// `git status` would call every file deleted.
func writeGit(dir string, files map[string]string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	repository := &gitRepository{root, zlib.NewWriter(nil)}
	if err := repository.begin(); err != nil {
		return err
	}
	write := writeVersions
	if _, is := files["branches.json"]; is {
		write = writeLedger
	}
	staged, err := write(repository, files)
	if err != nil || len(staged) == 0 {
		return err
	}
	return repository.writeIndex(staged)
}

// gitHash is the name of an object: the SHA-1 of its kind, length and content.
type gitHash [sha1.Size]byte

// gitEntry is a line of a tree: a file, or a folder with a tree of its own.
type gitEntry struct {
	name   string
	folder bool
	hash   gitHash
}

// gitRepository writes the folder .git below root: one compressed file for each object, and no packs. It needs so
// little of Git that a library would weigh more: with one, the program has SSH and OpenPGP in it.
// Format: https://git-scm.com/docs/gitformat-index and "Git Internals" of the Git book.
type gitRepository struct {
	root   *os.Root
	packer *zlib.Writer // for one object after the other
}

// begin makes an empty repository. One that is there already is an error.
func (g *gitRepository) begin() error {
	if err := g.root.Mkdir(".git", 0o777); err != nil {
		return err
	}
	return errors.Join(g.root.Mkdir(".git/objects", 0o777), g.root.MkdirAll(".git/refs/heads", 0o777),
		g.write(".git/config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"))
}

func (g *gitRepository) write(name, text string) error {
	if err := g.root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	return g.root.WriteFile(name, []byte(text), 0o666)
}

// object writes an object of a kind ("blob", "tree" or "commit"), unless it is there.
func (g *gitRepository) object(kind, content string) (gitHash, error) {
	plain := fmt.Appendf(nil, "%s %d\x00%s", kind, len(content), content)
	hash := gitHash(sha1.Sum(plain))
	name := hex.EncodeToString(hash[:])
	file := ".git/objects/" + name[:2] + "/" + name[2:]
	if _, err := g.root.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return hash, err
	}
	var packed bytes.Buffer
	g.packer.Reset(&packed)
	_, err := g.packer.Write(plain)
	if err := errors.Join(err, g.packer.Close()); err != nil {
		return hash, err
	}
	return hash, g.write(file, packed.String())
}

func (g *gitRepository) blob(text string) (gitHash, error) { return g.object("blob", text) }

// tree writes a folder. Git sorts a folder's name as if a slash followed it.
func (g *gitRepository) tree(entries []gitEntry) (gitHash, error) {
	key := func(e gitEntry) string {
		if e.folder {
			return e.name + "/"
		}
		return e.name
	}
	var b strings.Builder
	for _, e := range slices.SortedFunc(slices.Values(entries), func(x, y gitEntry) int {
		return strings.Compare(key(x), key(y))
	}) {
		mode := "100644"
		if e.folder {
			mode = "40000"
		}
		b.WriteString(mode + " " + e.name + "\x00" + string(e.hash[:]))
	}
	return g.object("tree", b.String())
}

// gitName takes out of an author's name what would end it in a commit.
var gitName = strings.NewReplacer("<", "", ">", "", "\n", " ", "\x00", "")

// commit writes a commit of a tree by an author of this machine.
func (g *gitRepository) commit(tree gitHash, parents []gitHash, author string, at time.Time, message string) (gitHash,
	error) {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %x\n", tree)
	for _, parent := range parents {
		fmt.Fprintf(&b, "parent %x\n", parent)
	}
	author = gitName.Replace(author)
	by := fmt.Sprintf("%s <%s@localhost> %d +0000", author, author, at.Unix())
	fmt.Fprintf(&b, "author %s\ncommitter %s\n\n%s", by, by, message)
	return g.object("commit", b.String())
}

// branch makes a branch that ends at a commit.
func (g *gitRepository) branch(name string, hash gitHash) error {
	if !filepath.IsLocal(name) {
		return abi.NewError(abi.CodeBackend, "branches.json: a branch cannot be named "+name)
	}
	return g.write(".git/refs/heads/"+name, fmt.Sprintf("%x\n", hash))
}

// head makes a branch the current one. A branch without a commit may be.
func (g *gitRepository) head(branch string) error {
	return g.write(".git/HEAD", "ref: refs/heads/"+branch+"\n")
}

// writeIndex stages files: blobs by path. Times and sizes are 0, so that Git compares the files themselves once.
func (g *gitRepository) writeIndex(staged map[string]gitHash) error {
	index := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x02"), uint32(len(staged)))
	for _, name := range slices.Sorted(maps.Keys(staged)) {
		hash := staged[name]
		entry := make([]byte, 40, 80+len(name))
		binary.BigEndian.PutUint32(entry[24:], 0o100644) // behind two times of 8 bytes, device and inode
		entry = append(entry, hash[:]...)
		entry = binary.BigEndian.AppendUint16(entry, uint16(min(len(name), 0xfff)))
		entry = append(entry, name...)
		entry = append(entry, make([]byte, 8-len(entry)%8)...) // ends with 1 to 8 zero bytes
		index = append(index, entry...)
	}
	sum := sha1.Sum(index)
	return g.write(".git/index", string(index)+string(sum[:]))
}
