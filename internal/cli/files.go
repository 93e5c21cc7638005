package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/wholefile"
	"github.com/memhost/memhost/internal/registry"
	"github.com/memhost/memhost/internal/state"
)

// MaxModuleFile is the largest module file that is read, in bytes; the host has its own, lower limit.
const MaxModuleFile = 64 << 20

// ReadFile reads a regular file of at most limit bytes.
func ReadFile(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, FileError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, abi.NewError(abi.CodeInvalidArgument, path+": is no regular file")
	}
	if info.Size() > limit {
		return nil, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("%s: has %d bytes, more than the %d that are read", path, info.Size(), limit))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, FileError(path, err)
	}
	return text, nil
}

// FileError explains what is wrong with a file that the command line names.
func FileError(path string, err error) error {
	var bare *fs.PathError
	reason := err.Error()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason = "does not exist"
	case errors.As(err, &bare):
		reason = bare.Err.Error()
	}
	return abi.WrapError(abi.CodeInvalidArgument, path+": "+reason, err)
}

// InFile adds the file's name to an error about its content.
func InFile(path string, err error) error {
	e := *abi.AsError(err)
	e.Message = path + ": " + e.Message
	return &e
}

// ReplaceFile writes a file atomically. It keeps the mode of the old file.
func ReplaceFile(path string, content []byte) error {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := folderExists(path); err != nil {
		return err
	}
	if err := wholefile.Write(path, content, mode); err != nil {
		return FileError(path, err)
	}
	return nil
}

func folderExists(path string) error {
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return FileError(filepath.Dir(path), err)
	}
	return nil
}

// Replaceable rejects a file that is there and is not of the kind that would replace it, such as "backup". ours is given
// the first 256 bytes of it. It also rejects a file whose folder does not exist.
func Replaceable(path, kind string, ours func(start []byte) bool) error {
	if about, err := os.Stat(path); err != nil || !about.Mode().IsRegular() {
		return folderExists(path) // writing reports what else is wrong with it
	}
	f, err := os.Open(path)
	if err != nil {
		return FileError(path, err)
	}
	defer func() { _ = f.Close() }()
	start := make([]byte, 256)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return FileError(path, err)
	}
	if n == 0 || ours(start[:n]) {
		return nil
	}
	return abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%s: exists, and is no %s; nothing was written", path, kind)).
		WithHint("name another file: no other kind of file is replaced")
}

// IsFile reports whether a plugin is a file, and not the name of a built-in module or a module in a registry.
func IsFile(plugin string) bool {
	return !registry.IsReference(plugin) && (strings.ContainsAny(plugin, `/\`) || strings.HasSuffix(plugin, ".wasm"))
}

// Exists reports whether there is a file or a folder at path.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// NeedSlot returns an error for a data folder that holds no slot, or nil.
func NeedSlot(dir string) error {
	file := filepath.Join(dir, state.DataFile)
	if Exists(file) {
		return nil
	}
	return UsageError("there is no slot in "+dir+": "+file+" is missing", "name the data folder: --data FOLDER")
}

// MaxManifestFile is the largest module manifest that is read, in bytes.
const MaxManifestFile = 4 << 20
