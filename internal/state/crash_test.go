package state

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/memhost/memhost/internal/test/brief"
)

// helperEnv turns the test binary into one of the helper processes below.
const helperEnv = "MEMHOST_STATE_HELPER"

func TestMain(m *testing.M) {
	name, args, _ := strings.Cut(os.Getenv(helperEnv), " ")
	switch name {
	case "":
		os.Exit(m.Run())
	case "commit":
		commitForEver(args)
	case "compact":
		compactForEver(args)
	case "own":
		ownFolder(args)
	default:
		if err := runPlatformHelper(name, args); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

// helper starts this binary as a helper. The test ends it.
func helper(t *testing.T, call string) (*exec.Cmd, *bufio.Scanner) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+call)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	in, err := cmd.StdinPipe() // stays open while the helper is needed
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = in.Close(); _ = cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

const crashWriters = 3

// commitForEver commits from several goroutines. Batch n of writer w appends n to its log, and puts n into its counter
// and its record; acknowledged batches are printed as "w n".
func commitForEver(args string) {
	durability, dir, _ := strings.Cut(args, " ")
	s, err := Open(dir, Options{Durability: Durability(durability)})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var wg sync.WaitGroup
	for w := range crashWriters {
		wg.Go(func() {
			sp := space(byte(w))
			n, err := s.LastSeq(context.Background(), sp, "log")
			for err == nil {
				n++
				text := []byte(strconv.FormatInt(n, 10))
				var b Batch
				b.Append(sp, "log", text)
				b.Put(sp, "counter", text, AnyVersion)
				// of changing size, so that pages move
				b.PutRecord("ledger", sp[:], append(text, make([]byte, n%3000)...))
				if n%50 == 0 {
					b.DeletePrefix(sp, "big")
				}
				b.Put(sp, "big"+string(text), make([]byte, 500), AnyVersion)
				var res CommitResult
				if res, err = s.Commit(context.Background(), &b); err == nil && res.Seqs[0] != n {
					err = fmt.Errorf("batch %d got sequence number %d", n, res.Seqs[0])
				}
				if err == nil {
					fmt.Println(w, n)
				}
			}
			fmt.Println(err)
		})
	}
	wg.Wait()
}

// TestAcknowledgedBatchesSurviveKill: a process that commits is killed at random moments, 50 times. Afterwards every
// acknowledged batch is there, complete and without gaps.
func TestAcknowledgedBatchesSurviveKill(t *testing.T) {
	for _, durability := range []Durability{DurabilityPower, DurabilityProcess} {
		t.Run(string(durability), func(t *testing.T) {
			rounds := 25
			if brief.Tests() {
				rounds = 8
			}
			dir := t.TempDir()
			var there [crashWriters]int64
			for range rounds {
				acknowledged := killOne(t, durability, dir)
				there = checkAfterKill(t, dir, there, acknowledged)
			}
			t.Logf("%d batches of each writer survived %d kills", there, rounds)
		})
	}
}

// killOne kills a helper after a random number of acknowledgements, and returns the last one of each writer.
func killOne(t *testing.T, durability Durability, dir string) (acknowledged [crashWriters]int64) {
	cmd, out := helper(t, fmt.Sprintf("commit %s %s", durability, dir))
	for left := rand.IntN(60); out.Scan(); left-- {
		var w int
		var n int64
		_, err := fmt.Sscan(out.Text(), &w, &n)
		require.NoError(t, err, "the helper says %q", out.Text())
		acknowledged[w] = n
		if left <= 0 {
			_ = cmd.Process.Kill() // read the rest: what it had already printed counts
		}
	}
	require.Error(t, cmd.Wait(), "killed")
	return acknowledged
}

// checkAfterKill returns the last batch of each writer. before is what was there when the helper started.
func checkAfterKill(t *testing.T, dir string, before, acknowledged [crashWriters]int64) (there [crashWriters]int64) {
	s, err := Open(dir, Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	for w := range there {
		least := max(before[w], acknowledged[w])
		sp := space(byte(w))
		last := int64(0)
		for more := true; more; {
			es, err := s.ReadLog(ctx, sp, LogQuery{Log: "log", From: last + 1})
			require.NoError(t, err)
			for _, e := range es.Items {
				last++
				require.Equal(t, last, e.Seq)
				require.Equal(t, strconv.FormatInt(last, 10), string(e.Data))
			}
			more = es.More
		}
		require.GreaterOrEqual(t, last, least, "acknowledged batches are there")
		require.LessOrEqual(t, last, least+1, "and at most the one that was under way")
		v, err := s.Get(ctx, sp, "counter")
		require.NoError(t, err)
		r, err := s.Record(ctx, "ledger", sp[:])
		require.NoError(t, err)
		if last > 0 {
			require.Equal(t, strconv.FormatInt(last, 10), string(v.Data), "each batch is whole")
			require.Equal(t, v.Data, r[:len(v.Data)])
			require.Len(t, r, len(v.Data)+int(last%3000))
		}
		counts, err := s.Count(ctx, sp, "")
		require.NoError(t, err)
		used, err := s.Usage(ctx, sp)
		require.NoError(t, err)
		require.Equal(t, counts.Bytes, used)
		there[w] = last
	}
	return there
}

// ownFolder owns a folder until its standard input ends.
func ownFolder(dir string) {
	s, err := Open(dir, Options{})
	if err == nil {
		err = WriteSlot(dir, SlotInfo{Address: "127.0.0.1:7077", PID: os.Getpid(), TokenRequired: true})
	}
	fmt.Println("ready", err)
	if err == nil {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		_ = s.Close()
	}
}
