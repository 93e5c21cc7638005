// Package wholefile writes files atomically: a reader sees either the old content or all of the new one, even if the
// process is killed. If the path is a symbolic link, the link stays and its target is replaced. Anything that is not a
// regular file, such as /dev/null or a pipe, is written to directly.
package wholefile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces or creates a file, with the given mode. Its folder must exist. After a power loss the last content may
// be lost; WriteDurable prevents that.
func Write(path string, content []byte, mode fs.FileMode) error {
	return replace(path, mode, false, bytesOf(content))
}

// WriteDurable is Write, but the content is on disk when it returns.
func WriteDurable(path string, content []byte, mode fs.FileMode) error {
	if err := replace(path, mode, true, bytesOf(content)); err != nil {
		return err
	}
	// Syncing the folder makes the new name durable. Systems that cannot sync a folder do not need it.
	if folder, err := os.Open(filepath.Dir(path)); err == nil {
		_ = folder.Sync()
		_ = folder.Close()
	}
	return nil
}

// Stream is Write for content that is not held in memory. If fill fails, the file is unchanged.
func Stream(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	return replace(path, mode, false, fill)
}

// StreamDurable is Stream, but the content is on disk when it returns.
func StreamDurable(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	return replace(path, mode, true, fill)
}

func bytesOf(content []byte) func(io.Writer) error {
	return func(w io.Writer) error { _, err := w.Write(content); return err }
}

// replace writes a temporary file in the same folder, NAME.*.tmp, and renames it.
func replace(path string, mode fs.FileMode, durable bool, fill func(io.Writer) error) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(fill(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Chmod(f.Name(), mode)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
