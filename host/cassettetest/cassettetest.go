// Package cassettetest tests a plugin with cassettes: the plugin gets the recorded requests, and must do what was
// recorded, byte for byte. It needs no backend.
//
//	var update = flag.Bool("update", false, "record the cassettes anew")
//
//	func TestCassettes(t *testing.T) {
//		mine := host.ProviderConfig{Name: "mine", Module: wasm}
//		cassettetest.Golden(t, *update, "testdata/tea.cassette", mine, func(s *host.Slot) {
//			_, err := s.RecordEvent(ctx, event)
//			...
//		})
//	}
//
// Replay replays a cassette that a slot has recorded (memhost run --cassette).
package cassettetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/memhost/memhost/host"
	"github.com/memhost/memhost/host/cassette"
	"github.com/memhost/memhost/host/extism"
)

// Replay replays a cassette against a module. The first difference fails the test, with its place, what was expected
// and what the module did.
func Replay(t testing.TB, file string, wasm []byte) *host.ReplayReport {
	t.Helper()
	report, err := host.Replay(context.Background(),
		host.ReplayOptions{Path: file, CacheDir: cache(t), Engines: []host.Engine{extism.Engine()},
			Module: func(cassette.Load) ([]byte, error) { return wasm, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if report.Difference != nil {
		t.Fatalf("%s, recorded with %s %s (sha256 %.12s), replayed with %s %s (sha256 %.12s)\n%s", file,
			report.Recorded.Name, report.Recorded.Version, report.Recorded.SHA256,
			report.Replayed.Name, report.Replayed.Version, report.Replayed.SHA256, report.Difference)
	}
	return report
}

// Golden replays a cassette that a script has recorded. With update it first runs the script again and replaces the
// cassette. Clock and randomness of a recording are fixed and durations omitted, so that an unchanged plugin records an
// unchanged file.
func Golden(t testing.TB, update bool, file string, config host.ProviderConfig, script func(s *host.Slot)) {
	t.Helper()
	if update {
		record(t, file, config, script)
	}
	Replay(t, file, config.Module)
}

// record runs the script against a recording slot.
func record(t testing.TB, file string, config host.ProviderConfig, script func(s *host.Slot)) {
	t.Helper()
	ctx := context.Background()
	fresh := filepath.Join(t.TempDir(), "cassette")
	h, err := host.New(ctx, host.Options{DataDir: t.TempDir(), CacheDir: cache(t), Durability: "process",
		Version: "test", Now: clock(), Engines: []host.Engine{extism.Engine()},
		Cassette: &host.CassetteOptions{Path: fresh, Seed: []byte("cassettetest"), Timeless: true}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.Open(ctx, config)
	if err == nil {
		script(s)
		err = s.Close(ctx)
	}
	if closed := h.Close(ctx); err == nil {
		err = closed
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(fresh)
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// clock returns a clock that advances by a second at each reading, from a fixed moment.
func clock() func() time.Time {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	}
}

// cache is where compiled modules are kept for all tests of a user: compiling takes longer than replaying.
func cache(t testing.TB) string {
	if dir, err := os.UserCacheDir(); err == nil {
		dir = filepath.Join(dir, "memhost", "modules")
		if os.MkdirAll(dir, 0o700) == nil {
			return dir
		}
	}
	return t.TempDir()
}
