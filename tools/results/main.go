// Command results makes docs/results.md: what memories retrieve of stored messages, on LoCoMo, with real servers.
//
//	make results                      everything, from nothing; an interrupted run continues
//	make results RESULTS='-only local'  some of the runs; the page shows those that are complete
//	make results-check                the page from the record, and the record from the kept run folders, offline
//
// Variables of the environment:
//
//	LOCOMO=FILE        the data set, instead of fetching it
//	HONCHO_SOURCE=DIR  sources of Honcho, which is in no package registry: adds the run honcho
//	MODEL_URL=URL      a language model, up to and including /v1, with its name in MODEL and its key in MODEL_KEY: adds
//	                   the runs model-..., whose agent's answers are judged. Each has a report of its own: the page is of
//	                   retrieved messages alone
//
// It works in bin/results: the data set and its pack, and a folder for each run, with the lab file, the server's data
// and the run that `memhost eval` made of it. What it publishes is docs/results.md, written from page.tmpl,
// docs/reference/results.md, from figures.tmpl, and docs/results/: the record (every figure with the digests of where it
// comes from) and the plots. No text of the data set is published.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "results:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("results", flag.ContinueOnError)
	root := flags.String("root", "..", "the repository")
	work := flags.String("work", "", "where runs are kept (default: bin/results, or bin/results-N with -conversations N)")
	only := flags.String("only", "", "runs to make, separated by commas; default: all of "+strings.Join(names(), ", "))
	conversations := flags.Int("conversations", 0, "try it out on the first N conversations: nothing is published")
	checking := flags.Bool("check", false, "recompute what is published, and compare")
	if err := flags.Parse(args); err != nil {
		return err
	}
	w := &workplace{root: *root, folder: *work, conversations: *conversations, began: time.Now()}
	if w.folder == "" {
		w.folder = filepath.Join(*root, "bin", "results")
		if w.conversations > 0 {
			w.folder += fmt.Sprintf("-%d", w.conversations)
		}
	}
	published := filepath.Join(*root, "docs")
	if *checking {
		return w.check(ctx, published)
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if err := w.make(ctx, chosen); err != nil {
		return err
	}
	if w.conversations > 0 {
		w.say("nothing is published of %d conversations; the runs are in %s", w.conversations, w.folder)
		return nil
	}
	if !slices.ContainsFunc(chosen, func(x experiment) bool { return !x.judged() }) {
		return nil // judged answers have reports of their own
	}
	r, err := w.gather()
	if err != nil {
		return err
	}
	return r.publish(published)
}

// workplace is the folder in which data and runs are kept.
type workplace struct {
	root, folder string
	// conversations limits the data set; 0: all of it.
	conversations int
	began         time.Time
}

func (w *workplace) path(parts ...string) string {
	return filepath.Join(append([]string{w.folder}, parts...)...)
}

// say reports progress, with the time since the start.
func (w *workplace) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6s  %s\n", time.Since(w.began).Round(time.Second), fmt.Sprintf(format, args...))
}

// exists reports whether a file is there.
func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
