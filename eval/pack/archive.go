package pack

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/memhost/memhost/internal/base/wholefile"
)

// Archive is the file extension of a pack in one file.
const Archive = ".tar.zst"

// maxUnpacked bounds the unpacked size of an archive, in bytes.
const maxUnpacked = 16 << 30

var files = []string{ManifestFile, EventsFile, ProbesFile, ConditionsFile, PreferencesFile, PeopleFile}

// archive writes a folder's pack to one file; equal packs produce equal files.
func archive(folder, path string) error {
	err := wholefile.Stream(path, 0o600, func(out io.Writer) error {
		z, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return err
		}
		t := tar.NewWriter(z)
		for _, name := range files {
			if err := addFile(t, folder, name); err != nil {
				return err
			}
		}
		return errors.Join(t.Close(), z.Close())
	})
	if err != nil {
		return unreadable(err)
	}
	return nil
}

func addFile(t *tar.Writer, folder, name string) error {
	f, err := os.Open(filepath.Join(folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: info.Size(), ModTime: time.Unix(0, 0),
		Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}

// unpack extracts an archive's pack to a temporary folder. It only extracts the files of a pack, by name, so that no
// entry can be written elsewhere.
func unpack(path string) (folder string, err error) {
	in, err := os.Open(path)
	if err != nil {
		return "", unreadable(err)
	}
	defer in.Close()
	if folder, err = os.MkdirTemp("", "memhost-pack-*"); err != nil {
		return "", unreadable(err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(folder)
		}
	}()
	z, err := zstd.NewReader(in, zstd.WithDecoderMaxMemory(256<<20))
	if err != nil {
		return "", unreadable(err)
	}
	defer z.Close()
	t, left := tar.NewReader(z), int64(maxUnpacked)
	for {
		entry, err := t.Next()
		if errors.Is(err, io.EOF) {
			return folder, nil
		}
		if err != nil {
			return "", wrong("%s is not a pack: %v", path, err)
		}
		name := ""
		for _, known := range files {
			if entry.Name == known && entry.Typeflag == tar.TypeReg {
				name = known
			}
		}
		if name == "" {
			return "", wrong("%s is not a pack: it holds %q", path, entry.Name)
		}
		if left -= entry.Size; left < 0 {
			return "", wrong("%s unpacks to more than %d GiB", path, maxUnpacked>>30)
		}
		if err := takeFile(t, filepath.Join(folder, name)); err != nil {
			return "", unreadable(err)
		}
	}
}

func takeFile(from io.Reader, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
