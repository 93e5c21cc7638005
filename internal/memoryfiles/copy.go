package memoryfiles

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/wholefile"
)

// recordName is the record of a copy, in its repository.
const recordName = "memhost.json"

// record is what the last update wrote, by which the next one recognizes what a person edited.
type record struct {
	Provider string          `json:"provider"`
	Scope    abi.MemoryScope `json:"scope"`
	// Files has the digests of each file: one, or two while an update is writing.
	Files map[string][]string `json:"files"`
	// Branches are the branches of the repository.
	Branches map[string]string `json:"branches"`
}

// folder is the copy of one scope.
type folder struct {
	dir  string
	root *os.Root
	record
	// edited lists the files that keep what a person edited.
	edited []string
}

// openFolder opens a copy, and creates its folder if make is set. A missing folder is fs.ErrNotExist.
func openFolder(dir string, make bool) (*folder, error) {
	if make {
		if err := os.MkdirAll(filepath.Join(dir, gitFolderName), 0o700); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{dir: dir, root: root}
	text, err := root.ReadFile(filepath.Join(gitFolderName, recordName))
	if err == nil {
		err = json.Unmarshal(text, &f.record)
	}
	if err != nil { // without a record every file counts as edited, unless it is up to date
		f.record = record{}
	}
	if f.Files == nil {
		f.Files = map[string][]string{}
	}
	if f.Branches == nil {
		f.Branches = map[string]string{}
	}
	return f, nil
}

func (f *folder) close() { _ = f.root.Close() }

func (f *folder) writeRecord() error {
	text, err := json.Marshal(&f.record)
	if err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(f.dir, gitFolderName, recordName), text, 0o600)
}

func digest[T string | []byte](text T) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// update brings the copy up to date. Before anything is written the record has the digests of old and new files, so that
// an update that is interrupted does not make its own files look edited.
func (f *folder) update(files map[string]string, at time.Time) error {
	before := f.Files
	both, changed := maps.Clone(before), []string(nil)
	for path, text := range files {
		if sum := digest(text); !slices.Contains(before[path], sum) {
			both[path] = append(slices.Clone(before[path]), sum)
			changed = append(changed, path)
		}
	}
	for path := range before {
		if _, is := files[path]; !is {
			changed = append(changed, path)
		}
	}
	f.Files = both
	if len(changed) > 0 {
		if err := f.writeRecord(); err != nil {
			return err
		}
	}
	for path := range before {
		if _, is := files[path]; !is {
			if err := f.remove(path); err != nil {
				return err
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := f.place(path, files[path]); err != nil {
			return err
		}
	}
	kept, err := updateGit(f.dir, files, f.Branches, subject(changed), at)
	if err != nil {
		return err
	}
	for _, branch := range kept {
		f.edited = append(f.edited, f.dir+" (branch "+branch+")")
	}
	f.Files = make(map[string][]string, len(files))
	for path, text := range files {
		f.Files[path] = []string{digest(text)}
	}
	return f.writeRecord()
}

// subject is the message of a commit that memhost makes.
func subject(changed []string) string {
	switch len(changed) {
	case 0:
		return "Update"
	case 1:
		return "Update " + strings.ReplaceAll(changed[0], "\n", " ")
	}
	return fmt.Sprintf("Update %d files", len(changed))
}

// place writes a file unless it has that text. What a person wrote there is kept in a second file.
func (f *folder) place(path, text string) error {
	name := filepath.FromSlash(path)
	found, err := f.root.ReadFile(name)
	switch {
	case err == nil && bytes.Equal(found, []byte(text)):
		return nil
	case err == nil:
		if err := f.keepEdit(path, found); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := makeParent(f.root, path); err != nil {
		return err
	}
	part := name + ".memhost-part"
	if err := f.root.WriteFile(part, []byte(text), 0o600); err != nil {
		return err
	}
	return f.root.Rename(part, name)
}

// remove removes a file that the memory does not have any more, and folders that are empty then.
func (f *folder) remove(path string) error {
	name := filepath.FromSlash(path)
	found, err := f.root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = f.keepEdit(path, found)
	}
	if err == nil {
		err = f.root.Remove(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	for dir := filepath.Dir(name); err == nil && dir != "."; dir = filepath.Dir(dir) {
		if f.root.Remove(dir) != nil { // not empty
			break
		}
	}
	return err
}

// editedSuffix ends the name of a file that keeps what a person edited.
const editedSuffix = ".edited"

// keepEdit renames a file that has another text than the last update wrote.
func (f *folder) keepEdit(path string, found []byte) error {
	if slices.Contains(f.Files[path], digest(found)) {
		return nil
	}
	name := filepath.FromSlash(path)
	to := name + editedSuffix
	for n := 2; ; n++ {
		if _, err := f.root.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
		to = fmt.Sprintf("%s%s-%d", name, editedSuffix, n)
	}
	if err := f.root.Rename(name, to); err != nil {
		return err
	}
	f.edited = append(f.edited, filepath.Join(f.dir, to))
	return nil
}

// clear removes the copy but for what a person has edited or added.
func (f *folder) clear() error {
	for path := range f.Files {
		if err := f.remove(path); err != nil {
			return err
		}
	}
	return f.root.RemoveAll(gitFolderName)
}
