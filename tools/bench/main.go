package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures according to the arguments, prints the table, and writes the requested files.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	short := flags.Bool("short", false, "measure next to nothing, in some seconds: it shows that everything runs")
	rounds := flags.Int("rounds", 12, "rounds of every row; fewer than 6 give no interval")
	only := flags.String("only", "", "measure only the tasks that match this regular expression, as ^echo or "+
		"backend/mem0 or memory")
	memory := flags.Int("memory", 20_000, "calls over which the memory of the process is watched; 0 for none")
	out := flags.String("out", "", "write the rounds to a file, as Go benchmark results: benchstat compares two of "+
		"them")
	docs := flags.String("docs", "", "write the tables and the plots of docs/performance.md and its reference into this folder")
	with := flags.String("with", "", "a folder with other programs' rows, pages and plots for -docs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o := Options{Rounds: *rounds, Short: *short, Memory: *memory, Progress: progress}
	if *short {
		o.Rounds, o.Memory = 1, 200
	}
	if *only != "" {
		expression, err := regexp.Compile(*only)
		if err != nil {
			return fmt.Errorf("-only: %w", err)
		}
		o.Only = expression
	}
	r, err := Run(ctx, o)
	if err != nil {
		return err
	}
	if err := r.Print(os.Stdout); err != nil {
		return err
	}
	if *out != "" {
		file, err := os.Create(*out)
		if err != nil {
			return err
		}
		if err := errors.Join(r.WriteBenchmarks(file), file.Close()); err != nil {
			return err
		}
	}
	if *docs != "" {
		return r.WriteDocs(*docs, *with)
	}
	return nil
}

func progress(what string, step, of int) { fmt.Fprintf(os.Stderr, "%d of %d  %s\n", step, of, what) }
