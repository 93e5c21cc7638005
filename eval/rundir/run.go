// Package rundir is the folder of an evaluation's run, as the runner writes it and the other packages read it.
//
//	RUN/run.json                     Run: lab, pack, cells, and the heads of their journals once they are complete
//	RUN/cells/LABEL/REPLICATE/       manifest.json (sealed before the first event), trace.jsonl (package journal), data/
//	RUN/contexts/ab/<sha256>         each formatted context once, byte for byte
//	RUN/blobs/ab/<sha256>            raw answers, requests to models and their answers, once each
//
// It uses no host: scoring and reports read a run without any provider.
package rundir

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/lab"
	"github.com/memhost/memhost/eval/pack"
)

// Version is the version of run.json's format.
const Version = 1

// File is the name of the run's own file.
const File = "run.json"

// Run is run.json.
type Run struct {
	Run int `json:"run"` // Version
	// Program and Commit identify the memhost that started the run.
	Program string `json:"program"`
	Commit  string `json:"commit,omitempty"`
	// BegunAt is RFC 3339.
	BegunAt   string   `json:"begun_at"`
	Lab       *lab.Lab `json:"lab"`
	LabSHA256 string   `json:"lab_sha256"`
	// PackPath is where the pack was, Dir the base of relative paths in the lab file; both are absolute. They are not
	// part of Head.
	PackPath string        `json:"pack_path"`
	Dir      string        `json:"dir,omitempty"`
	Pack     pack.Manifest `json:"pack"`
	// Faults is the number of fatal problems of the pack, if it was run in spite of them.
	Faults     int     `json:"faults,omitempty"`
	Cells      []*Cell `json:"cells"`
	CompleteAt string  `json:"complete_at,omitempty"`
}

// Cell is one provider in one replicate.
type Cell struct {
	Label     string `json:"label"`
	Replicate int    `json:"replicate"` // from 1
	// RunID is the scope's run_id of every persona in the cell.
	RunID string `json:"run_id"`
	// State is waiting, running, complete or failed.
	State string `json:"state"`
	// Alone means that no other cell had a turn at the same time, and one persona ran at a time, from start to end: its
	// latencies can be compared.
	Alone bool `json:"alone"`
	// Head is the hash of the journal's last line, once the cell is complete.
	Head  string     `json:"head,omitempty"`
	Error *abi.Error `json:"error,omitempty"`
}

// The states of a cell.
const (
	Waiting  = "waiting"
	Running  = "running"
	Complete = "complete"
	Failed   = "failed"
)

// Folder is the cell's folder in the run's.
func (c *Cell) Folder(run string) string {
	return filepath.Join(run, "cells", c.Label, strconv.Itoa(c.Replicate))
}

// Open reads a run's folder.
//
// Errors: invalid_argument if it is not a run, or has another version.
func Open(folder string) (*Run, error) {
	r := new(Run)
	there, err := readJSON(filepath.Join(folder, File), r)
	switch {
	case err != nil:
		return nil, err
	case !there:
		return nil, abi.NewError(abi.CodeInvalidArgument,
			folder+" is not a run: it has no "+File).WithHint("`memhost eval run` makes one")
	case r.Run != Version:
		return nil, abi.NewError(abi.CodeInvalidArgument,
			fmt.Sprintf("%s is a run of version %d, this program reads version %d", folder, r.Run, Version))
	}
	return r, nil
}

// Save writes run.json atomically.
func (r *Run) Save(folder string) error { return writeJSON(filepath.Join(folder, File), r) }

// Head is one hash over the lab, the pack and every cell's head, in order. If it is stored elsewhere, it proves that
// the run is unchanged.
func (r *Run) Head() string {
	parts := []string{r.LabSHA256, r.Pack.ContentSHA256}
	for _, c := range r.Cells {
		parts = append(parts, fmt.Sprintf("%s/%d %s", c.Label, c.Replicate, c.Head))
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(parts, "\n"))))
}
