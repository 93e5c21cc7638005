package model

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/stats"
	"github.com/memhost/memhost/internal/text/convert"
)

// GradeLabelsFile keeps people's grades of conversations in a run's folder.
const GradeLabelsFile = "grade_labels.jsonl"

// gradeHead are the columns of a sheet of conversations. grade is for the person: 0 to MaxGrade.
var gradeHead = []string{"item", "conversation", "grade"}

// GradeSheet writes a blind sheet of at most so many different conversations: people read what the judge reads. It returns
// how many there are.
//
// Errors: conflict where the run has none.
func GradeSheet(w io.Writer, folder string, r *rundir.Run, p *pack.Pack, most int) (int, error) {
	items, err := conversationsOf(folder, r, p)
	if err != nil {
		return 0, err
	}
	stats.Random(r.Lab.Seed, "grade sheet").Shuffle(len(items), func(a, b int) { items[a], items[b] = items[b], items[a] })
	rows, seen := [][]string{gradeHead}, map[string]bool{}
	for i := range items {
		g := &items[i]
		if g.Leaked || g.silent || seen[g.Text] || len(rows) > most {
			continue
		}
		seen[g.Text] = true
		rows = append(rows, []string{g.Text, guarded(g.text), ""})
	}
	if len(rows) == 1 {
		return 0, abi.NewError(abi.CodeConflict, "the run has no conversations to grade").
			WithHint("a subject in the lab file talks; docs/eval.md")
	}
	if err := csv.NewWriter(w).WriteAll(rows); err != nil {
		return 0, abi.WrapError(abi.CodeUnavailable, err.Error(), err)
	}
	return len(rows) - 1, nil
}

// TakeGradeLabels reads a filled sheet and keeps its grades in the run's folder, instead of what the same person said
// before. It returns how many rows had a grade, and how many had none.
//
// Errors: invalid_argument with the row for another run's conversation, and for a grade that is not 0 to MaxGrade.
func TakeGradeLabels(sheet io.Reader, folder string, r *rundir.Run, p *pack.Pack, by string) (taken, empty int, err error) {
	items, err := conversationsOf(folder, r, p)
	if err != nil {
		return 0, 0, err
	}
	known := map[string]bool{}
	for i := range items {
		known[items[i].Text] = true
	}
	rows, err := csv.NewReader(convert.UTF8(sheet)).ReadAll()
	if err != nil {
		return 0, 0, abi.NewError(abi.CodeInvalidArgument, "the sheet: "+err.Error())
	}
	if len(rows) == 0 || !slices.Equal(rows[0], gradeHead) {
		return 0, 0, abi.NewError(abi.CodeInvalidArgument, "the sheet: want the columns "+strings.Join(gradeHead, ", "))
	}
	kept, err := ReadGradeLabels(folder)
	if err != nil {
		return 0, 0, err
	}
	kept = slices.DeleteFunc(kept, func(l GradeLabel) bool { return l.By == by })
	for i, row := range rows[1:] {
		if !known[row[0]] {
			return 0, 0, abi.NewError(abi.CodeInvalidArgument,
				fmt.Sprintf("the sheet, row %d: %q is no conversation of this run", i+2, row[0]))
		}
		text := strings.TrimSpace(row[2])
		if text == "" {
			empty++
			continue
		}
		grade, err := strconv.Atoi(text)
		if err != nil || grade < 0 || grade > MaxGrade {
			return 0, 0, abi.NewError(abi.CodeInvalidArgument,
				fmt.Sprintf("the sheet, row %d: grade: want 0 to %d or nothing, found %q", i+2, MaxGrade, row[2]))
		}
		kept = append(kept, GradeLabel{row[0], by, grade})
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
	return taken, empty, rundir.WriteFile(filepath.Join(folder, GradeLabelsFile), text)
}

// ReadGradeLabels reads people's grades; none where there are none.
func ReadGradeLabels(folder string) ([]GradeLabel, error) {
	path := filepath.Join(folder, GradeLabelsFile)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, abi.WrapError(abi.CodeUnavailable, err.Error(), err)
	}
	defer f.Close()
	var list []GradeLabel
	d := json.NewDecoder(f)
	for {
		var l GradeLabel
		err := d.Decode(&l)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, fmt.Sprintf("%s, line %d: %v", path, len(list)+1, err))
		}
		list = append(list, l)
	}
}
