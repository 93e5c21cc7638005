package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// inside runs `go test -bench BenchmarkInside/NAME` of package host once, to measure internals. The test binary is
// built once for all rounds. The result lines are BenchmarkInside/NAME.
func (e *env) inside(ctx context.Context, name string) (sample, error) {
	folder, err := filepath.Abs("host")
	if err != nil {
		return sample{}, err
	}
	program, err := keep(e, "inside", func() (string, error) {
		file := filepath.Join(e.dir, "host.test")
		out, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", file, folder).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("the benchmarks of package host: %w\n%s", err, out)
		}
		return file, err
	})
	if err != nil {
		return sample{}, err
	}
	each := "100ms"
	if e.short {
		each = "1x"
	}
	pattern := "^BenchmarkInside$/^" + strings.ReplaceAll(name, "/", "$/^") + "$"
	cmd := exec.CommandContext(ctx, program, "-test.run=^$", "-test.benchmem", "-test.benchtime="+each,
		"-test.bench="+pattern)
	cmd.Dir, cmd.Stderr = folder, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	for lines := benchfmt.NewReader(bytes.NewReader(out), name); lines.Scan(); {
		if r, ok := lines.Result().(*benchfmt.Result); ok {
			ns, _ := r.Value("sec/op")
			allocs, _ := r.Value("allocs/op")
			size, _ := r.Value("B/op")
			return sample{ns * 1e9, allocs, size}, nil
		}
	}
	return sample{}, fmt.Errorf("%s: package host has no such benchmark\n%s", name, out)
}
