package toolchain

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// cleanEnv is the environment for the go command and for TinyGo: without anything by
// which a developer's shell could change what is compiled, with the settings that
// say where modules come from.
func cleanEnv(env []string, add ...string) []string {
	keep := map[string]bool{
		"GOPATH": true, "GOMODCACHE": true, "GOPROXY": true, "GOSUMDB": true, "GONOSUMDB": true,
		"GOPRIVATE": true, "GONOPROXY": true, "GOINSECURE": true, "GOAUTH": true, "GOVCS": true,
		"GOENV": true, "GOCACHE": true, "GOTMPDIR": true, "GOTOOLCHAIN": true,
	}
	var out []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		shapes := strings.HasPrefix(name, "GO") || strings.HasPrefix(name, "CGO_") ||
			strings.HasPrefix(name, "TINYGO") || name == "WASMOPT"
		if !shapes || keep[name] {
			out = append(out, entry)
		}
	}
	out = append(out, "GOFLAGS=-mod=readonly -buildvcs=false", "GOWORK=off")
	return append(out, add...)
}

// goInstallation is the Go that the checkout is built with.
type goInstallation struct {
	Version string `json:"GOVERSION"` // "go1.26.8"
	Root    string `json:"GOROOT"`
	OS      string `json:"GOHOSTOS"`
	Arch    string `json:"GOHOSTARCH"`
}

// command is this very Go, whatever go.mod files say about toolchains elsewhere.
func (g goInstallation) command() string { return filepath.Join(g.Root, "bin", "go") }

func findGo(ctx context.Context, root string) (goInstallation, error) {
	var found goInstallation
	out, err := run(ctx, root, cleanEnv(os.Environ()), "go", "env", "-json", "GOVERSION", "GOROOT", "GOHOSTOS",
		"GOHOSTARCH")
	if err != nil {
		return found, err
	}
	if err := json.Unmarshal(out, &found); err != nil {
		return found, fmt.Errorf("toolchain: go env: %w", err)
	}
	return found, nil
}

// checkGo refuses a Go that the pinned TinyGo does not accept.
func checkGo(version, tinygo string) error {
	match := regexp.MustCompile(`\bgo1\.(\d+)`).FindStringSubmatch(version)
	if match == nil {
		return fmt.Errorf("toolchain: cannot tell the version of Go from %q, want go1.%d or older for TinyGo %s",
			version, newestGoMinor, tinygo)
	}
	minor, err := strconv.Atoi(match[1])
	if err != nil || minor > newestGoMinor {
		return fmt.Errorf("toolchain: this is %s, TinyGo %s accepts Go up to 1.%d: set GOTOOLCHAIN to a go1.%d release",
			version, tinygo, newestGoMinor, newestGoMinor)
	}
	return nil
}

// run starts a command and returns what it wrote to standard output.
//
// Errors: the command line with the last lines of its output.
func run(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		output := cmp.Or(stderr.String(), stdout.String())
		return stdout.Bytes(), fmt.Errorf("toolchain: %s: %w\n%s", strings.Join(append([]string{name}, args...), " "),
			err, lastLines(output, 30))
	}
	return stdout.Bytes(), nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > n {
		lines = append([]string{"..."}, lines[len(lines)-n:]...)
	}
	return strings.Join(lines, "\n")
}
