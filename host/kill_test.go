package host

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/testcache"
	"github.com/stretchr/testify/require"
)

// childEnv turns the test binary into a writer that gets killed: "FOLDER URL FROM TO CLOCK", where CLOCK is how many
// hours its clock is ahead.
const childEnv = "HOST_TEST_WRITER"

// writer records events in order, and prints each one when it is acknowledged.
func writer(work string) error {
	var dir, url string
	var from, to, hours int
	if _, err := fmt.Sscan(work, &dir, &url, &from, &to, &hours); err != nil {
		return err
	}
	ctx := context.Background()
	h, err := New(ctx, Options{DataDir: dir, CacheDir: os.Getenv("HOST_TEST_CACHE"), Now: func() time.Time {
		return time.Now().Add(time.Duration(hours) * time.Hour)
	}})
	if err != nil {
		return err
	}
	AddSlack(h)
	s, err := h.Open(ctx, ProviderConfig{Name: "probe", Module: ProbeModule,
		Block: abi.Raw(fmt.Sprintf(`{"url":%q}`, url))})
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		id := fmt.Sprintf("e%03d", i)
		r, err := s.RecordEvent(ctx, Event(id, "append turns "+id+"; deliver "+strings.Join(crashParts, " ")))
		if err != nil {
			return err
		}
		if r.Status != abi.StatusCommitted {
			return fmt.Errorf("event %s: %s %v", id, r.Status, r.Warnings)
		}
		fmt.Println("acknowledged", i)
	}
	return nil
}

// The same as TestCrashesLoseAndDoubleNothing with a separate process that is killed by the operating system, so that
// the test does not depend on the simulation.
func TestKilledProcessLosesAndDoublesNothing(t *testing.T) {
	const events, kills = 60, 25
	w := &world{clock: time.Now()}
	var child *exec.Cmd
	var mu sync.Mutex
	random, seen, killAt := rand.New(rand.NewPCG(7, 7)), 0, 0
	// step kills the writer at the chosen step, and reports whether the request is then lost, at random.
	step := func() (lost bool) {
		mu.Lock()
		defer mu.Unlock()
		seen++
		if seen != killAt {
			return false
		}
		_ = child.Process.Kill()
		return random.IntN(2) == 0
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/find" {
			w.ServeHTTP(rw, r)
			return
		}
		if step() {
			return // killed while sending, and the request never arrived
		}
		w.ServeHTTP(rw, r)
		_ = http.NewResponseController(rw).Flush()
		step() // killed after the answer: before or after the commit
	}))
	defer server.Close()
	dir := t.TempDir()
	next := 0
	for life := 0; next < events; life++ {
		require.Less(t, life, 2*kills+events, "the writer gets on")
		mu.Lock()
		seen, killAt = 0, 0
		if life < kills {
			killAt = 1 + random.IntN(12)
		}
		child = exec.Command(os.Args[0])
		var failure bytes.Buffer
		child.Env = append(os.Environ(), "HOST_TEST_CACHE="+testcache.Dir(),
			childEnv+"="+fmt.Sprint(dir, " ", server.URL, " ", next, " ", events, " ", life))
		child.Stderr = &failure
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		mu.Unlock()
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if n, ok := strings.CutPrefix(lines.Text(), "acknowledged "); ok {
				i, err := strconv.Atoi(n)
				require.NoError(t, err)
				next = i + 1
			}
		}
		if err := child.Wait(); err != nil {
			require.Contains(t, err.Error(), "killed", failure.String())
		}
	}
	w.verify(t, events, true, nil)
}
