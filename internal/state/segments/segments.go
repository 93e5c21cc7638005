// Package segments keeps the sealed part of a data folder's archive: one file for each run of entries, compressed and
// never written to again. What a file must look like is in its Info, which the caller keeps elsewhere (in the store),
// so that a file that was cut off, edited, replaced or removed is detected.
//
// A file is one zstd frame. Unpacked it has an entry on each line, as its Info counts them:
//
//	$ zstdcat 00000000000000000001-5891b5b522d5.zst
//	{"seq":1,"at":"2026-03-02T08:00:01Z","provider":"mem0","event":{"event_id":"e-1", ...}}
package segments

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Info is what a segment must be. All sizes are in bytes.
type Info struct {
	// First and Last are the numbers of its first and last entry.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Entries is the number of lines; TextBytes is their size with the line ends.
	Entries   int64 `json:"entries"`
	TextBytes int64 `json:"text_bytes"`
	// FileBytes is the size of the file, SHA256 (hex) its digest.
	FileBytes int64  `json:"file_bytes"`
	SHA256    string `json:"sha256"`
	// Oldest and Newest are when its first and its last entry were archived, RFC 3339.
	Oldest string `json:"oldest"`
	Newest string `json:"newest"`
}

const extension = ".zst"

// Name is the segment's file name: the number of its first entry, so that names sort as entries do, and the beginning
// of its digest, so that a segment that is written again has another name.
func (i Info) Name() string { return fmt.Sprintf("%020d-%.12s%s", i.First, i.SHA256, extension) }

// Write packs text into a file of the folder, synced, and completes info with sizes and digest. A file of the same name
// is replaced: it was left behind by a crash.
func Write(dir string, info Info, text []byte) (Info, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return info, err
	}
	packed := encoder.EncodeAll(text, nil)
	sum := sha256.Sum256(packed)
	info.Entries, info.TextBytes = int64(bytes.Count(text, []byte("\n"))), int64(len(text))
	info.FileBytes, info.SHA256 = int64(len(packed)), hex.EncodeToString(sum[:])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return info, err
	}
	return info, replace(dir, info.Name(), packed)
}

// replace writes a temporary file, syncs and renames it.
func replace(dir, name string, content []byte) error {
	f, err := os.CreateTemp(dir, name+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	return syncFolder(dir)
}

// syncFolder makes a rename survive a power loss, where the system can do that.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync() // Windows refuses it
	return d.Close()
}

// Read unpacks a segment.
//
// Errors: what is wrong with the file, in a sentence that names it: absent, cut off, or not what was sealed.
func Read(dir string, info Info) ([]byte, error) {
	path := filepath.Join(dir, info.Name())
	packed, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("archive segment %s is gone", info.Name())
	}
	if err != nil {
		return nil, err
	}
	if int64(len(packed)) != info.FileBytes {
		return nil, fmt.Errorf("archive segment %s has %d bytes, %d were sealed", info.Name(), len(packed), info.FileBytes)
	}
	if sum := sha256.Sum256(packed); hex.EncodeToString(sum[:]) != info.SHA256 {
		return nil, fmt.Errorf("archive segment %s was changed after it was sealed: its digest is another", info.Name())
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxMemory(uint64(info.TextBytes)+1<<10))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	text, err := decoder.DecodeAll(packed, make([]byte, 0, info.TextBytes))
	if err != nil || int64(len(text)) != info.TextBytes {
		return nil, fmt.Errorf("archive segment %s does not unpack to the %d bytes that were sealed", info.Name(),
			info.TextBytes)
	}
	return text, nil
}

// Remove deletes a segment's file; that it is already gone is not an error.
func Remove(dir string, info Info) error {
	err := os.Remove(filepath.Join(dir, info.Name()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Strays are the files of the folder that belong to none of the segments: a crash left them behind.
func Strays(dir string, known []Info) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := map[string]bool{}
	for _, info := range known {
		names[info.Name()] = true
	}
	var strays []string
	for _, e := range entries {
		ours := strings.HasSuffix(e.Name(), extension) || strings.HasSuffix(e.Name(), ".tmp")
		if ours && !names[e.Name()] {
			strays = append(strays, filepath.Join(dir, e.Name()))
		}
	}
	return strays, nil
}
