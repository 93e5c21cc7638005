package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// The data set. It is never committed: its licence is not ours, and a memory could learn its questions.
const (
	dataURL = "https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json"
	// dataSHA256 is the file with 1,986 questions. Forks with corrected annotations are other data: their figures are
	// not comparable with these.
	dataSHA256 = "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4"
	// dataVariable names a file that is already on this machine.
	dataVariable = "LOCOMO"
	dataBytes    = 16 << 20 // at most; it has 2.8 MB
)

// data puts the data set into the workplace, once: from LOCOMO, or from where it is published.
//
// Errors: what cannot be fetched, and a file of another digest, with what to do.
func (w *workplace) data(ctx context.Context, url, digest string) (string, error) {
	file := w.path("locomo10.json")
	text, err := os.ReadFile(file)
	switch {
	case err == nil:
	case !errors.Is(err, os.ErrNotExist):
		return "", err
	case os.Getenv(dataVariable) != "":
		w.say("copy LoCoMo from %s", os.Getenv(dataVariable))
		text, err = os.ReadFile(os.Getenv(dataVariable))
	default:
		w.say("fetch LoCoMo from %s", url)
		if text, err = fetch(ctx, url); err != nil {
			err = fmt.Errorf("%w; put locomo10.json somewhere by hand, and name it: %s=FILE make results", err,
				dataVariable)
		}
	}
	if err != nil {
		return "", err
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(text)); got != digest {
		return "", fmt.Errorf("the data set has the SHA-256 %s, want %s: it is another version, whose figures are not "+
			"comparable", got, digest)
	}
	return file, os.WriteFile(file, text, 0o644)
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", url, answer.Status)
	}
	return io.ReadAll(io.LimitReader(answer.Body, dataBytes))
}

// pack makes the pack of the data set, once.
func (w *workplace) pack(ctx context.Context, file string) error {
	folder := w.path("locomo.pack")
	if there, err := exists(filepath.Join(folder, "pack.json")); there || err != nil {
		return err
	}
	if w.conversations > 0 {
		var err error
		if file, err = w.first(file); err != nil {
			return err
		}
	}
	return w.memhost(ctx, "eval", "pack", "build", "locomo", file, "-o", folder)
}

// first writes the first conversations of the data set into a file of their own.
func (w *workplace) first(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var samples []json.RawMessage
	if err := json.Unmarshal(text, &samples); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	samples = samples[:min(w.conversations, len(samples))]
	text, err = json.Marshal(samples)
	if err != nil {
		return "", err
	}
	part := w.path("part.json")
	return part, os.WriteFile(part, bytes.TrimSpace(text), 0o644)
}
