// Package backup packs a folder into one file that can be checked for completeness.
//
// A backup is a tar archive compressed with gzip, so that tar -xzf unpacks it. Its last member, backup.json, is a
// Contents, which describes the members before it. Check detects a file that was truncated or changed.
package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// ContentsFile is the last member of a backup.
const ContentsFile = "backup.json"

// Format is the version of this backup format.
const Format = 1

// maxContents bounds backup.json, in bytes: some 100,000 files.
const maxContents = 16 << 20

// Contents is backup.json.
type Contents struct {
	Backup int    `json:"backup"` // Format
	At     string `json:"at"`     // when the backup was started, RFC 3339
	// Files are the members before it, in order.
	Files []File `json:"files"`
}

// File is one file of a backup.
type File struct {
	Name   string `json:"name"` // relative to the folder, with slashes
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // in hexadecimal
}

// Bytes is the total size of all files.
func (c *Contents) Bytes() (n int64) {
	for _, f := range c.Files {
		n += f.Bytes
	}
	return n
}

// Write packs files of a folder, which must not change while it runs. names are relative to the folder.
func Write(w io.Writer, dir string, names []string, at time.Time) error {
	packed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	members := tar.NewWriter(packed)
	at = at.UTC().Truncate(time.Second) // tar would round up, into the future
	contents := &Contents{Backup: Format, At: at.Format(time.RFC3339), Files: []File{}}
	for _, name := range names {
		file, err := addFile(members, dir, name, at)
		if err != nil {
			return err
		}
		contents.Files = append(contents.Files, file)
	}
	text, err := json.MarshalIndent(contents, "", "  ")
	if err != nil {
		return err
	}
	if err := addMember(members, ContentsFile, int64(len(text)), at, bytes.NewReader(text)); err != nil {
		return err
	}
	return errors.Join(members.Close(), packed.Close())
}

func addFile(members *tar.Writer, dir, name string, at time.Time) (File, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return File{}, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return File{}, err
	}
	sum := sha256.New()
	file := File{Name: filepath.ToSlash(name), Bytes: info.Size()}
	err = addMember(members, file.Name, file.Bytes, at, io.TeeReader(f, sum))
	file.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return file, err
}

func addMember(members *tar.Writer, name string, size int64, at time.Time, content io.Reader) error {
	if err := members.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: at}); err != nil {
		return err
	}
	n, err := io.Copy(members, content)
	if err == nil && n != size {
		return fmt.Errorf("%s has %d bytes, and had %d when it was opened", name, n, size)
	}
	return err
}

// Check reads a backup to its end.
//
// Errors: a sentence that says what is wrong.
func Check(r io.Reader) (*Contents, error) {
	packed, err := gzip.NewReader(r)
	if err != nil {
		return nil, notWhole(err)
	}
	members := tar.NewReader(packed)
	var found []File
	for {
		header, err := members.Next()
		if err != nil {
			return nil, notWhole(err)
		}
		if header.Name == ContentsFile {
			break
		}
		sum := sha256.New()
		n, err := io.Copy(sum, members)
		if err != nil {
			return nil, notWhole(err)
		}
		found = append(found, File{Name: header.Name, Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))})
	}
	text, err := io.ReadAll(io.LimitReader(members, maxContents))
	if err != nil {
		return nil, notWhole(err)
	}
	var contents Contents
	if err := json.Unmarshal(text, &contents); err != nil {
		return nil, fmt.Errorf("its %s cannot be read: %w", ContentsFile, err)
	}
	if contents.Backup != Format {
		return nil, fmt.Errorf("it is of form %d, and this version reads form %d", contents.Backup, Format)
	}
	if len(found) != len(contents.Files) {
		return nil, fmt.Errorf("it has %d files, and its %s lists %d", len(found), ContentsFile, len(contents.Files))
	}
	for i, want := range contents.Files {
		if found[i] != want {
			return nil, fmt.Errorf("its file %s is not what was backed up", want.Name)
		}
	}
	// What remains is the end of the tar archive and the checksum of gzip.
	if _, err := io.Copy(io.Discard, packed); err != nil {
		return nil, notWhole(err)
	}
	return &contents, nil
}

func notWhole(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early: it was cut off, or its making was interrupted")
	}
	return err
}
