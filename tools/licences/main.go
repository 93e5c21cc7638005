// Command licences writes docs/reference/licences.md, or a software bill of materials: every Go module that the
// program contains, with its licence. It fails on a module whose files state no licence that it knows, or one that
// would impose conditions on the program.
//
//	go run ./licences -C .. -out docs/reference/licences.md
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// sentences are phrases that occur in only one licence, in lower case and with single spaces. Licences under which the
// program may not be distributed in this way have no name.
var sentences = []struct{ text, name string }{
	{"gnu general public license version", ""},
	{"gnu affero general public license version", ""},
	{"gnu lesser general public license version", ""},
	{"business source license", ""},
	{"server side public license", ""},
	{"apache license version 2.0, january 2004", "Apache-2.0"},
	{"licensed under the apache license, version 2.0", "Apache-2.0"},
	{"mozilla public license version 2.0", "MPL-2.0"},
	{"mozilla public license, version 2.0", "MPL-2.0"},
	{"permission is hereby granted, free of charge, to any person obtaining a copy", "MIT"},
	{"permission to use, copy, modify, and/or distribute this software for any purpose", "ISC"},
	{"permission to use, copy, modify, and distribute this software for any purpose", "ISC"},
	{"this is free and unencumbered software released into the public domain", "Unlicense"},
	{"redistribution and use in source and binary forms", "BSD"},
}

const head = `# Licences of what the program contains

You get: every Go module in ` + "`memhost`" + `, with the licence that its files state. Go's standard library is BSD-3-Clause; Preact, in the
slot's page, is MIT.
` + "`go -C tools run ./licences -C ..`" + ` writes this page. [dependencies.md](dependencies.md) says why the modules are there.

| module | version | licence |
|---|---|---|
`

func main() {
	root := flag.String("C", ".", "the checkout")
	out := flag.String("out", "docs/reference/licences.md", "the page, from the checkout")
	cyclonedx := flag.String("cyclonedx", "", "write a CycloneDX list of parts to this file of the checkout, and no page")
	flag.Parse()
	text, to := report, *out
	if *cyclonedx != "" {
		text, to = partsList, *cyclonedx
	}
	page, err := text(*root)
	if err == nil {
		err = os.WriteFile(filepath.Join(*root, to), page, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// part is a module that the program contains.
type part struct {
	path, version string
	licences      []string
}

// parts are sorted by path.
func parts(root string) ([]part, error) {
	list := exec.Command("go", "list", "-C", root, "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", "./cmd/memhost")
	list.Stderr = os.Stderr
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64") // for the same page on every machine
	text, err := list.Output()
	if err != nil {
		return nil, err
	}
	var all []part
	for _, line := range slices.Compact(slices.Sorted(strings.SplitSeq(strings.TrimSpace(string(text)), "\n"))) {
		fields := strings.Split(line, "\t")
		if len(fields) != 3 {
			continue // a package of the standard library
		}
		found, err := licences(fields[2])
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", fields[0], fields[1], err)
		}
		all = append(all, part{fields[0], fields[1], found})
	}
	return all, nil
}

// report returns the page.
func report(root string) ([]byte, error) {
	all, err := parts(root)
	if err != nil {
		return nil, err
	}
	page := bytes.NewBufferString(head)
	for _, p := range all {
		fmt.Fprintf(page, "| `%s` | %s | %s |\n", p.path, p.version, strings.Join(p.licences, ", "))
	}
	return page.Bytes(), nil
}

// partsList is a software bill of materials in CycloneDX 1.5. It has no time and no serial number, so that the same
// program always has the same list.
func partsList(root string) ([]byte, error) {
	all, err := parts(root)
	if err != nil {
		return nil, err
	}
	type object = map[string]any
	var components []object
	for _, p := range all {
		var named []object
		for _, id := range p.licences {
			named = append(named, object{"license": object{"id": id}})
		}
		purl := "pkg:golang/" + p.path + "@" + p.version
		components = append(components, object{"type": "library", "bom-ref": purl, "name": p.path, "version": p.version,
			"purl": purl, "licenses": named})
	}
	text, err := json.MarshalIndent(object{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata": object{"component": object{"type": "application", "name": "memhost",
			"purl": "pkg:golang/github.com/memhost/memhost", "licenses": []object{{"license": object{"id": "Apache-2.0"}}}}},
		"components": components}, "", "  ")
	return append(text, '\n'), err
}

// licences returns the licences that the files in a module's folder state, each once.
func licences(dir string) ([]string, error) {
	var found []string
	for _, pattern := range []string{"LICEN[CS]E*", "COPYING*", "[Ll]icen[cs]e*", "UNLICENSE*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // a folder
			}
			names, err := stated(string(text))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
			}
			found = append(found, names...)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) == 0 {
		return nil, errors.New("its files state no licence that is known here")
	}
	return found, nil
}

// stated returns the licences stated in a text.
func stated(text string) (names []string, err error) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, s := range sentences {
		switch {
		case !strings.Contains(text, s.text):
		case s.name == "":
			return nil, fmt.Errorf("states the %s", strings.TrimSuffix(s.text, " version"))
		case s.name != "BSD":
			names = append(names, s.name)
		case strings.Contains(text, "neither the name"):
			names = append(names, "BSD-3-Clause")
		default:
			names = append(names, "BSD-2-Clause")
		}
	}
	return names, nil
}
