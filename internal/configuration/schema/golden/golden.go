// Package golden reads and writes the text files that hold a test's inputs beside its results, in the form of txtar:
// free text, then sections that begin with a line "-- name --".
//
// It is for tests only. txtar itself would bring golang.org/x/tools for thirty lines.
package golden

import (
	"bytes"
	"os"
	"strings"
)

// Section is one named part of a File. Data ends in a newline, unless it is empty.
type Section struct {
	Name string
	Data string
}

// File is a golden file: a comment and sections in order; a name may recur.
type File struct {
	Comment  string
	Sections []Section
}

// Read reads the file at path.
func Read(path string) (*File, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := new(File)
	into := &f.Comment
	for line := range bytes.Lines(raw) {
		text := strings.TrimSuffix(string(line), "\n")
		if name, ok := strings.CutPrefix(text, "-- "); ok && strings.HasSuffix(name, " --") {
			f.Sections = append(f.Sections, Section{Name: strings.TrimSuffix(name, " --")})
			into = &f.Sections[len(f.Sections)-1].Data
			continue
		}
		*into += text + "\n"
	}
	return f, nil
}

// Write writes f to path.
func (f *File) Write(path string) error { return os.WriteFile(path, []byte(f.String()), 0o644) }

// String is the file's text.
func (f *File) String() string {
	var b strings.Builder
	b.WriteString(f.Comment)
	for _, s := range f.Sections {
		b.WriteString("-- " + s.Name + " --\n" + s.Data)
		if s.Data != "" && !strings.HasSuffix(s.Data, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
