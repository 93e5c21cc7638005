// Command plain looks for phrases that readers stumble over in comments and Markdown, on the lines that changed.
//
//	go -C tools run ./plain            lines changed since origin/main, or in the last commit and the working tree
//	go -C tools run ./plain -base REV  since another revision
//	go -C tools run ./plain -all       on every line of the tree, with a count
//
// It is a reminder and not a judge: a synonym that reads no better is no help. Rewrite the sentence.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// phrases are regular expressions, and what most writers would say instead.
var phrases = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{word(`(is|are|was|were|be|been) told`), "is reported, gets an error, receives"},
	{word(`tells? of`), "reports, says"},
	{word(`(is|are|was|were|be) let`), "may, is allowed to"},
	{word(`comes? to (a|the|an|more|less|nothing)`), "amounts to, becomes, is"},
	{word(`goes on`), "continues, keeps"},
	{word(`stands (so|at|in|there)`), "is"},
	{word(`(nobody|somebody|whoever)`), "name the caller, the user, the operator"},
	{word(`where there (is|are) none`), "if there is none, without"},
	{word(`what (is|was) no(ne)?`), "if it is not"},
	{word(`all the same`), "still, anyway"},
	{word(`meanwhile`), "while it waits, in that time"},
	{word(`put aside`), "kept, renamed, dropped: say which"},
	{word(`for good`), "permanently"},
	{word(`mend(s|ed|ing)?`), "fix, repair"},
	{word(`a damage`), "damage"},
	{word(`(the|at|its|a) begin`), "start"},
	{word(`beside (a|an|the|it|them|each|other)`), "next to, alongside, besides"},
	{word(`in spite of which`), "split the sentence"},
	{word(`(is|are) had`), "name who has it"},
}

func word(s string) *regexp.Regexp { return regexp.MustCompile(`(?i)\b` + s + `\b`) }

func main() {
	root := flag.String("C", "..", "the repository")
	base := flag.String("base", "", "check lines changed since this revision")
	all := flag.Bool("all", false, "check every line")
	flag.Parse()
	found, err := check(*root, *base, *all)
	if err != nil {
		fmt.Fprintln(os.Stderr, "plain:", err)
		os.Exit(2)
	}
	for _, f := range found {
		fmt.Println(f)
	}
	if len(found) > 0 {
		fmt.Printf("%d lines to read again\n", len(found))
		os.Exit(1)
	}
}

// check returns a message for each phrase found in the tree at root: on every line, or on those changed since base.
func check(root, base string, all bool) ([]string, error) {
	var changed map[string]map[int]bool
	if !all {
		if base == "" {
			base = defaultBase(root)
		}
		// Staged, unstaged and committed changes alike; new files that git does not know yet are left out.
		diff, err := git(root, "diff", "-U0", "--no-color", "--no-ext-diff", "--diff-filter=AMR", base)
		if err != nil {
			return nil, err
		}
		changed = changedLines(diff)
	}
	list, err := git(root, "ls-files", "*.go", "*.md")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, name := range strings.Fields(list) {
		lines := changed[name]
		if !all && lines == nil || strings.Contains(name, "/testdata/") || strings.HasSuffix(name, "_gen.go") ||
			strings.HasPrefix(name, "tools/plain/") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		texts, err := prose(name, content)
		if err != nil {
			return nil, err
		}
		for number, text := range texts {
			if !all && !lines[number+1] {
				continue
			}
			for _, p := range phrases {
				if hit := p.pattern.FindString(text); hit != "" {
					found = append(found, fmt.Sprintf("%s:%d: %q: %s", name, number+1, hit, p.instead))
				}
			}
		}
	}
	return found, nil
}

// defaultBase is where the branch left origin/main, or without such changes the commit before the last one.
func defaultBase(root string) string {
	head, _ := git(root, "rev-parse", "HEAD")
	if base, err := git(root, "merge-base", "HEAD", "origin/main"); err == nil && base != head {
		return strings.TrimSpace(base)
	}
	return "HEAD~1"
}

// prose has, for each line of a file, what it says to a reader: all of a Markdown page but its code, and the comments of
// a Go file.
func prose(name string, content []byte) ([]string, error) {
	lines := strings.Split(string(content), "\n")
	texts := make([]string, len(lines))
	if strings.HasSuffix(name, ".md") {
		code := false
		for i, line := range lines {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			} else if !code {
				texts[i] = inlineCode.ReplaceAllString(line, "``")
			}
		}
		return texts, nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, group := range file.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:") {
				continue
			}
			first := set.Position(c.Pos()).Line - 1
			for i, line := range strings.Split(c.Text, "\n") {
				texts[first+i] += line
			}
		}
	}
	return texts, nil
}

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	hunk       = regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)
)

// changedLines are the numbers of the added lines in a unified diff without context, by file.
func changedLines(diff string) map[string]map[int]bool {
	changed := map[string]map[int]bool{}
	name := ""
	for line := range strings.Lines(diff) {
		if to, ok := strings.CutPrefix(line, "+++ b/"); ok {
			name = strings.TrimSpace(to)
			changed[name] = map[int]bool{}
		} else if m := hunk.FindStringSubmatch(line); m != nil {
			first, _ := strconv.Atoi(m[1])
			count := 1
			if m[2] != "" {
				count, _ = strconv.Atoi(m[2])
			}
			for i := range count {
				changed[name][first+i] = true
			}
		}
	}
	return changed
}

func git(root string, args ...string) (string, error) {
	c := exec.Command("git", append([]string{"-C", root}, args...)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
