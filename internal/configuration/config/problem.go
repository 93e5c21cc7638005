package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/configuration/schema"
)

// The kinds of Origin.
const (
	KindDefault = "default"
	KindFile    = "file"
	KindEnv     = "env"
	KindFlag    = "flag"
)

// configFlag is the flag that names the configuration file.
const configFlag = "config"

// Origin is where a value came from.
type Origin struct {
	// Kind is KindDefault, KindFile, KindEnv or KindFlag.
	Kind string
	// Name is the file, the variable, or the flag without its dashes; "" for a default.
	Name string
	// Line is the line in a file, from 1; 0 if unknown.
	Line int
}

// String is default, file memhost.yaml:3, env MEMHOST_LOG__LEVEL or flag --listen.
func (o Origin) String() string {
	switch o.Kind {
	case KindFile:
		return "file " + o.place()
	case KindEnv:
		return "env " + o.Name
	case KindFlag:
		return "flag " + o.place()
	}
	return KindDefault
}

// place is the beginning of a line about a mistake.
func (o Origin) place() string {
	switch o.Kind {
	case KindFile:
		if o.Line > 0 {
			return o.Name + ":" + strconv.Itoa(o.Line)
		}
		return o.Name
	case KindEnv:
		return o.Name
	case KindFlag:
		if _, own := FlagKeys()[o.Name]; own || o.Name == configFlag {
			return "--" + o.Name
		}
		return "--set " + o.Name
	}
	return "configuration"
}

// maxProblems is the most mistakes that one error lists.
const maxProblems = 20

// problems collects mistakes, so that one run reports all of them.
type problems struct {
	list []problem
	// tree is the value that the paths lead into: it distinguishes a list's index from a key.
	tree any
}

type problem struct {
	origin Origin
	text   string
}

func (p *problems) add(o Origin, path []string, format string, args ...any) {
	line := o.place() + ": "
	// --set names the path already.
	if at := schema.Path(path, p.tree); at != "" && (o.Kind != KindFlag || at != o.Name) {
		line += at + ": "
	}
	p.list = append(p.list, problem{o, line + fmt.Sprintf(format, args...)})
}

// err combines all problems into one error: those of the configuration file from top to bottom, then those of included
// files, of the environment and of the flags.
func (p *problems) err(file string) error {
	if len(p.list) == 0 {
		return nil
	}
	rank := func(o Origin) int {
		switch {
		case o.Kind == KindFile && o.Name == file:
			return 0
		case o.Kind == KindFile:
			return 1
		case o.Kind == KindEnv:
			return 2
		}
		return 3
	}
	slices.SortStableFunc(p.list, func(a, b problem) int {
		if r := cmp.Compare(rank(a.origin), rank(b.origin)); r != 0 || rank(a.origin) != 0 {
			return r
		}
		return cmp.Compare(a.origin.Line, b.origin.Line)
	})
	var lines []string
	for i, problem := range p.list {
		if i == maxProblems {
			lines = append(lines, fmt.Sprintf("... and %d more", len(p.list)-i))
			break
		}
		lines = append(lines, problem.text)
	}
	return abi.NewError(abi.CodeInvalidArgument, strings.Join(lines, "\n"))
}
