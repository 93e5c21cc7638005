package rundir

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/base/wholefile"
)

// Store stores texts by hash in a folder of a run.
type Store string

// Contexts is the store of a run's formatted contexts.
func Contexts(run string) Store { return Store(filepath.Join(run, "contexts")) }

// Blobs is the store of a run's raw answers, and of requests to models and their answers.
func Blobs(run string) Store { return Store(filepath.Join(run, "blobs")) }

// Put stores a text and returns its SHA-256 in hexadecimal.
func (s Store) Put(text []byte) (string, error) {
	name := fmt.Sprintf("%x", sha256.Sum256(text))
	path := filepath.Join(string(s), name[:2], name)
	if _, err := os.Stat(path); err == nil {
		return name, nil
	}
	if err := WriteFile(path, text); err != nil {
		return "", err
	}
	return name, nil
}

// Text reads a text by its SHA-256; an empty hash returns an empty text.
func (s Store) Text(sha256 string) ([]byte, error) {
	if len(sha256) < 2 {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(string(s), sha256[:2], filepath.Base(sha256)))
	if err != nil {
		return nil, unusable(err)
	}
	return text, nil
}

// WriteFile writes a file atomically, and creates its folder if necessary.
func WriteFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return unusable(err)
	}
	if err := wholefile.Write(path, text, 0o600); err != nil {
		return unusable(err)
	}
	return nil
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(path, append(text, '\n'))
}

// readJSON decodes a file into v. It returns false if the file does not exist.
func readJSON(path string, v any) (bool, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, unusable(err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return false, abi.NewError(abi.CodeInvalidArgument, path+": "+err.Error())
	}
	return true, nil
}

func unusable(err error) error { return abi.WrapError(abi.CodeUnavailable, err.Error(), err) }
