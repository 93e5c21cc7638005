// Command benchdocs writes what a run of `memhost bench host --out FILE` found into the documentation: the table of docs/performance.md between its markers, and
// data and plots beside it. The prose around the markers is kept by hand.
//
//	go run ./internal/bench/cmd/benchdocs FILE
//
// It is a program of its own so that the plotting library is no part of memhost.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/memhost/memhost/internal/bench"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: benchdocs FILE, in the checkout's folder")
		os.Exit(2)
	}
	if err := run(os.Args[1], "docs"); err != nil {
		fmt.Fprintln(os.Stderr, "benchdocs:", err)
		os.Exit(1)
	}
}

// run reads a result and writes all files below a docs folder.
func run(file, docs string) error {
	r, err := bench.Read(file)
	if err != nil {
		return err
	}
	if r.Short {
		return fmt.Errorf("%s: is of a short run, whose figures say nothing", file)
	}
	page := filepath.Join(docs, "performance.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	data := filepath.Join(docs, "performance")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}
	if text, err = between(text, table(r)); err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	if err := os.WriteFile(page, text, 0o644); err != nil {
		return err
	}
	for name, rows := range map[string][][]string{"figures.csv": figures(r), "memory.csv": memory(r)} {
		if err := writeCSV(filepath.Join(data, name), rows); err != nil {
			return err
		}
	}
	return plots(r, data)
}
