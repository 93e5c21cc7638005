// Package segments keeps the sealed part of a data folder's archive: one file for each run of entries, compressed and
// never written to again. A file's Info, which the caller keeps elsewhere (in the store), describes its content, so
// that a file that was truncated, edited, replaced or removed is detected.
//
// A file is one zstd frame. Unpacked it has one entry per line:
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

	"github.com/memhost/memhost/internal/base/wholefile"
)

// Info describes a segment. All sizes are in bytes.
type Info struct {
	// First and Last are the numbers of its first and last entry.
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Entries is the number of lines; TextBytes is their size, including line ends. Forgotten is how many of the lines
	// belong to forgotten events: they have no text.
	Entries   int64 `json:"entries"`
	Forgotten int64 `json:"forgotten,omitempty"`
	TextBytes int64 `json:"text_bytes"`
	// FileBytes is the size of the file, SHA256 its digest in hex.
	FileBytes int64  `json:"file_bytes"`
	SHA256    string `json:"sha256"`
	// Oldest and Newest are when its first and its last entry were archived, RFC 3339.
	Oldest string `json:"oldest"`
	Newest string `json:"newest"`
}

const extension = ".zst"

// Name is the segment's file name: the number of its first entry, so that names sort as entries do, and the start of
// its digest, so that a rewritten segment has another name.
func (i Info) Name() string { return fmt.Sprintf("%020d-%.12s%s", i.First, i.SHA256, extension) }

// Write packs text into a file of the folder, syncs it, and completes info with sizes and digest. It replaces a file of
// the same name, which was left by a crash.
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
	return info, wholefile.WriteDurable(filepath.Join(dir, info.Name()), packed, 0o600)
}

// Read unpacks a segment.
//
// Errors: a sentence that names the file and says what is wrong with it: missing, truncated, or changed.
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

// Missing returns the segments whose files are not in the folder.
func Missing(dir string, list []Info) (missing []Info) {
	for _, info := range list {
		if _, err := os.Stat(filepath.Join(dir, info.Name())); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, info)
		}
	}
	return missing
}

// Remove deletes a segment's file. A missing file is not an error.
func Remove(dir string, info Info) error { return remove(filepath.Join(dir, info.Name())) }

// RemoveStrays deletes the files in the folder that belong to no segment.
func RemoveStrays(dir string, known []Info) error {
	strays, err := Strays(dir, known)
	for _, path := range strays {
		err = errors.Join(err, remove(path))
	}
	return err
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Strays returns the files in the folder that belong to no segment. They were left by a crash.
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
