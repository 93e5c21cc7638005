package model

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/internal/text/convert"
)

// takeSheet reads a completed sheet, and stores its content in a file of the run, replacing what the same person
// entered before. head are its columns: the first identifies an item, which must be in known, and the last is what
// people fill in. what names the kind of item in errors. read converts a row to a line. It returns how many rows were
// filled in, and how many were empty.
//
// Errors: invalid_argument with the row for an unknown item, and for what read rejects.
func takeSheet[L any](sheet io.Reader, path string, head []string, known map[string]bool, what string,
	ofPerson func(L) bool, read func(item, filled string) (L, error)) (taken, empty int, err error) {
	rows, err := csv.NewReader(convert.UTF8(sheet)).ReadAll()
	if err != nil {
		return 0, 0, abi.NewError(abi.CodeInvalidArgument, "the sheet: "+err.Error())
	}
	if len(rows) == 0 || !slices.Equal(rows[0], head) {
		return 0, 0, abi.NewError(abi.CodeInvalidArgument, "the sheet: want the columns "+strings.Join(head, ", "))
	}
	kept, err := readLines[L](path)
	if err != nil {
		return 0, 0, err
	}
	kept = slices.DeleteFunc(kept, ofPerson)
	for i, row := range rows[1:] {
		refuse := func(why string) (int, int, error) {
			return 0, 0, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("the sheet, row %d: %s", i+2, why))
		}
		item, filled := row[0], row[len(row)-1]
		if !known[item] {
			return refuse(fmt.Sprintf("%q is no %s of this run", item, what))
		}
		if strings.TrimSpace(filled) == "" {
			empty++
			continue
		}
		line, err := read(item, filled)
		if err != nil {
			return refuse(err.Error())
		}
		kept = append(kept, line)
		taken++
	}
	var text []byte
	for _, l := range kept {
		line, err := json.Marshal(l)
		if err != nil {
			return 0, 0, err
		}
		text = append(append(text, line...), '\n')
	}
	return taken, empty, rundir.WriteFile(path, text)
}

// writeSheet writes a sheet and returns its number of rows, not counting the head.
func writeSheet(w io.Writer, rows [][]string) (int, error) {
	if err := csv.NewWriter(w).WriteAll(rows); err != nil {
		return 0, abi.WrapError(abi.CodeUnavailable, err.Error(), err)
	}
	return len(rows) - 1, nil
}
