package model

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/stats"
)

// GradeLabelsFile is the file with people's grades of conversations in a run's folder.
const GradeLabelsFile = "grade_labels.jsonl"

// gradeHead are the columns of a sheet of conversations. People fill in grade: 0 to MaxGrade.
var gradeHead = []string{"item", "conversation", "grade"}

// GradeSheet writes a blind sheet of at most most different conversations, with the same text that the judge sees. It
// returns how many there are.
//
// Errors: conflict if the run has none.
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
	return writeSheet(w, rows)
}

// TakeGradeLabels reads a completed sheet and stores its grades in the run's folder, replacing earlier ones of the same
// person. It returns how many rows have a grade, and how many have none.
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
	return takeSheet(sheet, filepath.Join(folder, GradeLabelsFile), gradeHead, known, "conversation",
		func(l GradeLabel) bool { return l.By == by }, func(item, filled string) (GradeLabel, error) {
			grade, err := strconv.Atoi(strings.TrimSpace(filled))
			if err != nil || grade < 0 || grade > MaxGrade {
				return GradeLabel{}, fmt.Errorf("grade: want 0 to %d or nothing, found %q", MaxGrade, filled)
			}
			return GradeLabel{item, by, grade}, nil
		})
}

// ReadGradeLabels reads people's grades, if there are any.
func ReadGradeLabels(folder string) ([]GradeLabel, error) {
	return readLines[GradeLabel](filepath.Join(folder, GradeLabelsFile))
}
