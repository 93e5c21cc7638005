// Command newest compares the backends' newest releases with those that memhost was checked against: it fetches each
// package with pip, and prints how its interface differs from the snapshot that is committed here: routes, fields of
// requests and signatures of what the providers and gateways use. Nothing of the packages is run.
//
//	go run ./newest                  the differences; exit code 1 if there are any
//	go run ./newest -update          and takes them into the snapshot, for docs/backends to be brought up to date
//	go run ./newest -kit             and runs kit and parity against the newest releases (over an hour)
//	go run ./newest -only graphiti   one backend
//
// Honcho's server is in no package registry: of it only the client is looked at, and tools/live honcho runs the kit.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// backend is a package in which a backend, or its client, is published.
type backend struct {
	name, project string
	// sources: the interface is in the source distribution, which has more than the wheel.
	sources bool
	// files are patterns of the files that have the interface, below the unpacked package.
	files []string
	// requirements are lists of internal/test/testenv/requirements in which the package is pinned, and live the
	// arguments of tools/live that test it.
	requirements, live []string
}

var backends = []backend{
	{name: "mem0", project: "mem0ai", files: []string{"mem0/memory/main.py", "mem0/client/main.py", "mem0/client/types.py"},
		requirements: []string{"mem0"}, live: []string{"mem0", "gateway-mem0"}},
	{name: "memos", project: "MemoryOS",
		files:        []string{"memos/api/product_models.py", "memos/api/routers/server_router.py"},
		requirements: []string{"memos"}, live: []string{"memos"}},
	{name: "graphiti", project: "graphiti-core", sources: true,
		files: []string{"graphiti_core/graphiti.py", "graphiti_core/nodes.py", "graphiti_core/edges.py",
			"graphiti_core/search/search_config.py", "graphiti_core/search/search_filters.py", "graphiti_core/utils/bulk_utils.py",
			"server/graph_service/dto/*.py", "server/graph_service/routers/*.py", "mcp_server/src/graphiti_mcp_server.py"},
		requirements: []string{"graphiti", "graphiti-gateway"}, live: []string{"graphiti", "gateway-graphiti"}},
	{name: "honcho", project: "honcho-ai", files: []string{"honcho/http/routes.py", "honcho/api_types.py"}},
}

//go:embed outline.py
var outline string

// limits are versions above which a package breaks a backend whatever the backend's own requirements say.
var limits = map[string]string{"neo4j": "neo4j<6"}

func main() {
	root := flag.String("C", "..", "the checkout")
	only := flag.String("only", "", "one backend: mem0, memos, graphiti or honcho")
	update := flag.Bool("update", false, "write the snapshot")
	kit := flag.Bool("kit", false, "run kit and parity against the newest releases")
	flag.Parse()
	changed, err := run(context.Background(), *root, *only, *update, *kit, os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "newest:", err)
		os.Exit(2)
	case changed && !*update:
		os.Exit(1)
	}
}

// run looks at the backends, and reports whether one has changed.
func run(ctx context.Context, root, only string, update, kit bool, out io.Writer) (changed bool, err error) {
	chosen := slices.DeleteFunc(slices.Clone(backends), func(b backend) bool { return only != "" && b.name != only })
	if len(chosen) == 0 {
		return false, fmt.Errorf("-only %s: no such backend", only)
	}
	dir, err := os.MkdirTemp("", "newest-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	newest := map[string]string{}
	for _, b := range chosen {
		now, err := b.interfaceOf(ctx, filepath.Join(dir, b.name))
		if err != nil {
			return changed, fmt.Errorf("%s: %w", b.name, err)
		}
		newest[b.project] = strings.Replace(first(now), " ", "==", 1)
		file := filepath.Join(root, "tools", "newest", "snapshot", b.name+".txt")
		before, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return changed, err
		}
		differences := compare(string(before), now)
		fmt.Fprintf(out, "%s: %s, checked against %s; %d differences\n", b.name, first(now), first(string(before)), len(differences))
		for _, line := range differences {
			fmt.Fprintln(out, "  "+line)
		}
		changed = changed || len(differences) > 0
		if update {
			if err := os.WriteFile(file, []byte(now), 0o644); err != nil {
				return changed, err
			}
		}
	}
	if !kit {
		return changed, nil
	}
	return changed, runKits(ctx, root, dir, chosen, newest, out)
}

func first(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// interfaceOf fetches the newest release into a folder and returns "project version" and its outline.
func (b *backend) interfaceOf(ctx context.Context, dir string) (string, error) {
	fetched, unpacked := filepath.Join(dir, "fetched"), filepath.Join(dir, "unpacked")
	if err := errors.Join(os.MkdirAll(fetched, 0o755), os.MkdirAll(unpacked, 0o755)); err != nil {
		return "", err
	}
	form := "--only-binary"
	if b.sources {
		form = "--no-binary"
	}
	if _, err := output(ctx, nil, "python3", "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", form, b.project,
		"-d", fetched, b.project); err != nil {
		return "", err
	}
	archives, err := os.ReadDir(fetched)
	if err != nil || len(archives) != 1 {
		return "", errors.Join(fmt.Errorf("pip fetched %d archives of %s, want 1", len(archives), b.project), err)
	}
	archive := archives[0].Name()
	version := regexp.MustCompile(`^[^-]+-(\d[^-]*?)(-.*\.whl|\.tar\.gz)$`).FindStringSubmatch(archive)
	if version == nil {
		return "", fmt.Errorf("%s: no version in the name", archive)
	}
	if _, err := output(ctx, nil, "python3", "-c",
		"import shutil,sys; shutil.unpack_archive(sys.argv[1], sys.argv[2], 'zip' if sys.argv[1].endswith('.whl') else None)",
		filepath.Join(fetched, archive), unpacked); err != nil {
		return "", err
	}
	if b.sources {
		inner, err := filepath.Glob(filepath.Join(unpacked, "*"))
		if err != nil || len(inner) != 1 {
			return "", errors.Join(fmt.Errorf("%s: want one folder", archive), err)
		}
		unpacked = inner[0]
	}
	text, err := output(ctx, strings.NewReader(outline), "python3", append([]string{"-", unpacked}, b.files...)...)
	return b.project + " " + version[1] + "\n" + text, err
}

// compare returns the lines that only one of two outlines has, each with its file: - before, + now. Their first lines,
// the versions, are no difference.
func compare(before, now string) (differences []string) {
	old, present := entries(before), entries(now)
	for _, line := range old {
		if !slices.Contains(present, line) {
			differences = append(differences, "- "+line)
		}
	}
	for _, line := range present {
		if !slices.Contains(old, line) {
			differences = append(differences, "+ "+line)
		}
	}
	return differences
}

func entries(text string) (list []string) {
	file := ""
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		switch name, is := strings.CutPrefix(line, "# "); {
		case i == 0 || line == "":
		case is:
			file = name
		default:
			list = append(list, file+": "+line)
		}
	}
	return list
}

// runKits resolves each list of requirements with the newest release of the backend, pinned in newest, and the newest
// versions of the rest that go with it, and prints what is newer than the pins. Then it runs tools/live with them. All are
// run, whatever the first of them says; the last lines have each one's verdict and time.
func runKits(ctx context.Context, root, dir string, chosen []backend, newest map[string]string, out io.Writer) error {
	lists := filepath.Join(dir, "requirements")
	if err := os.MkdirAll(lists, 0o755); err != nil {
		return err
	}
	var failed error
	var verdicts []string
	for _, b := range chosen {
		for _, name := range b.requirements {
			pins, err := os.ReadFile(filepath.Join(root, "internal", "test", "testenv", "requirements", name+".txt"))
			if err != nil {
				return err
			}
			resolved, err := resolve(ctx, projects(string(pins), newest))
			if err != nil {
				return fmt.Errorf("requirements of %s: %w", name, err)
			}
			if err := os.WriteFile(filepath.Join(lists, name+".txt"), []byte(resolved), 0o644); err != nil {
				return err
			}
			fmt.Fprintf(out, "%s: newest against pinned: %s\n", name, strings.Join(moved(string(pins), resolved), ", "))
		}
		for _, test := range b.live {
			fmt.Fprintln(out, "tools/live", test)
			began, verdict := time.Now(), "passed"
			cmd := exec.CommandContext(ctx, "tools/live", test)
			cmd.Dir, cmd.Env = root, append(os.Environ(), "LIVE_REQUIREMENTS="+lists)
			cmd.Stdout, cmd.Stderr = out, os.Stderr
			if err := cmd.Run(); err != nil {
				verdict = "FAILED"
				failed = errors.Join(failed, fmt.Errorf("tools/live %s: %w", test, err))
			}
			verdicts = append(verdicts, fmt.Sprintf("tools/live %s with %s: %s, %s", test, newest[b.project], verdict,
				time.Since(began).Round(time.Second)))
		}
	}
	for _, verdict := range verdicts {
		fmt.Fprintln(out, verdict)
	}
	return failed
}

// moved says how a list of resolved versions differs from the pins, in the order of the list: a maintainer looks there
// first when a backend that has not changed fails.
func moved(pins, resolved string) (list []string) {
	before := map[string]string{}
	for line := range strings.Lines(pins) {
		if project, version, pinned := strings.Cut(strings.TrimSpace(line), "=="); pinned && !strings.HasPrefix(project, "#") {
			before[normal(project)] = version
		}
	}
	for line := range strings.Lines(resolved) {
		project, version, _ := strings.Cut(strings.TrimSpace(line), "==")
		switch was := before[normal(project)]; was {
		case version:
		case "":
			list = append(list, fmt.Sprintf("%s %s (new)", project, version))
		default:
			list = append(list, fmt.Sprintf("%s %s -> %s", project, was, version))
		}
		delete(before, normal(project))
	}
	for _, project := range slices.Sorted(maps.Keys(before)) {
		list = append(list, project+" (gone)")
	}
	if len(list) == 0 {
		return []string{"no difference"}
	}
	return list
}

// normal is a project's name as package registries compare it.
func normal(project string) string { return strings.ReplaceAll(strings.ToLower(project), "_", "-") }

// projects are the packages of a list of pins without their versions, but for the ones that newest pins. Without
// that, pip takes an old backend that asks for little, to have the newest of all else.
func projects(pins string, newest map[string]string) (list []string) {
	for line := range strings.Lines(pins) {
		project, _, pinned := strings.Cut(strings.TrimSpace(line), "==")
		switch limit := limits[project]; {
		case !pinned || strings.HasPrefix(project, "#"):
		case newest[project] != "":
			list = append(list, newest[project])
		case limit != "":
			list = append(list, limit)
		default:
			list = append(list, project)
		}
	}
	return list
}

// resolve returns the newest versions of packages that go together, with what they need, as pins.
func resolve(ctx context.Context, projects []string) (string, error) {
	report, err := output(ctx, nil, "python3", append([]string{"-m", "pip", "install", "-q", "--disable-pip-version-check", "--dry-run",
		"--ignore-installed", "--report", "-"}, projects...)...)
	if err != nil {
		return "", err
	}
	return output(ctx, strings.NewReader(report), "python3", "-c", "import json,sys\n"+
		"for one in json.load(sys.stdin)['install']: print(one['metadata']['name'] + '==' + one['metadata']['version'])")
}

// output is what a program writes; the error has what it said.
func output(ctx context.Context, in io.Reader, program string, args ...string) (string, error) {
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args[:min(3, len(args))], " "), err, said.String())
	}
	return out.String(), nil
}
