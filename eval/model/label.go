package model

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/stats"
	"github.com/memhost/memhost/internal/text/convert"
)

// LabelsFile keeps people's labels in a run's folder: a line for each answer and person.
const LabelsFile = "labels.jsonl"

// Labelled is one person's verdict on one answer. Equal answers to one probe are one text, whichever provider gave
// them.
type Labelled struct {
	Text  string `json:"text"` // as in Judgement
	By    string `json:"by"`
	Right bool   `json:"right"`
}

// textID names an answer to a probe without telling whose it is.
func textID(probe, text string) string {
	sum := sha256.Sum256([]byte(probe + "\x00" + text))
	return hex.EncodeToString(sum[:8])
}

// sheetHead are the columns of a label sheet. right is for the person: yes or no.
var sheetHead = []string{"item", "question", "expected", "answer", "right"}

// Sheet writes a blind sheet of real answers, spread over providers: no column tells which memory, budget or model is
// behind an answer. It returns how many answers it has.
//
// Errors: conflict where the run has no answers.
func Sheet(w io.Writer, folder string, r *rundir.Run, p *pack.Pack, most int) (int, error) {
	items, err := itemsOf(folder, r, p)
	if err != nil {
		return 0, err
	}
	chosen := spread(items, most, r.Lab.Seed)
	if len(chosen) == 0 {
		return 0, abi.NewError(abi.CodeConflict, "the run has no answers to label").
			WithHint("an agent in the lab file answers; docs/eval.md")
	}
	sheet := csv.NewWriter(w)
	rows := [][]string{sheetHead}
	for _, j := range chosen {
		rows = append(rows, []string{j.Text, guarded(j.question), guarded(j.expected), guarded(j.text), ""})
	}
	if err := sheet.WriteAll(rows); err != nil {
		return 0, abi.WrapError(abi.CodeUnavailable, err.Error(), err)
	}
	return len(chosen), nil
}

// spread draws at most so many different answers, in turn of each provider and budget, and mixes them.
func spread(items []judged, most int, seed uint64) []judged {
	random := stats.Random(seed, "label sheet")
	of := map[rated][]judged{}
	var order []rated
	for _, j := range items {
		if j.Sort != SortAnswer || j.Error != nil {
			continue
		}
		key := rated{j.Label, j.Budget, ""}
		if of[key] == nil {
			order = append(order, key)
		}
		of[key] = append(of[key], j)
	}
	for _, key := range order {
		random.Shuffle(len(of[key]), func(a, b int) { of[key][a], of[key][b] = of[key][b], of[key][a] })
	}
	var chosen []judged
	seen := map[string]bool{}
	for left := true; left && len(chosen) < most; {
		left = false
		for _, key := range order {
			if len(of[key]) == 0 || len(chosen) == most {
				continue
			}
			left = true
			j := of[key][0]
			of[key] = of[key][1:]
			if !seen[j.Text] {
				seen[j.Text] = true
				chosen = append(chosen, j)
			}
		}
	}
	random.Shuffle(len(chosen), func(a, b int) { chosen[a], chosen[b] = chosen[b], chosen[a] })
	return chosen
}

// guarded keeps a spreadsheet from taking a text for a formula.
func guarded(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// TakeLabels reads a filled sheet and keeps its labels in the run's folder, instead of what the same person said
// before. It returns how many rows had a label, and how many had no label.
//
// Errors: invalid_argument with the row for another sheet's item, and for a label that is neither yes nor no.
func TakeLabels(sheet io.Reader, folder string, r *rundir.Run, p *pack.Pack, by string) (labelled, empty int,
	err error) {
	items, err := itemsOf(folder, r, p)
	if err != nil {
		return 0, 0, err
	}
	known := map[string]bool{}
	for _, j := range items {
		known[j.Text] = j.Sort == SortAnswer && j.Error == nil || known[j.Text]
	}
	rows, err := csv.NewReader(convert.UTF8(sheet)).ReadAll()
	if err != nil {
		return 0, 0, abi.NewError(abi.CodeInvalidArgument, "the sheet: "+err.Error())
	}
	if len(rows) == 0 || !slices.Equal(rows[0], sheetHead) {
		return 0, 0, abi.NewError(abi.CodeInvalidArgument, "the sheet: want the columns "+strings.Join(sheetHead, ", "))
	}
	kept, err := ReadLabels(folder)
	if err != nil {
		return 0, 0, err
	}
	kept = slices.DeleteFunc(kept, func(l Labelled) bool { return l.By == by })
	for i, row := range rows[1:] {
		if !known[row[0]] {
			return 0, 0, abi.NewError(abi.CodeInvalidArgument,
				fmt.Sprintf("the sheet, row %d: %q is no answer of this run", i+2, row[0]))
		}
		switch strings.ToLower(strings.TrimSpace(row[4])) {
		case "yes", "y", "1", "true":
			kept = append(kept, Labelled{row[0], by, true})
		case "no", "n", "0", "false":
			kept = append(kept, Labelled{row[0], by, false})
		case "":
			empty++
			continue
		default:
			return 0, 0, abi.NewError(abi.CodeInvalidArgument,
				fmt.Sprintf("the sheet, row %d: right: want yes, no or nothing, found %q", i+2, row[4]))
		}
		labelled++
	}
	var text []byte
	for _, l := range kept {
		line, err := json.Marshal(l)
		if err != nil {
			return 0, 0, err
		}
		text = append(append(text, line...), '\n')
	}
	return labelled, empty, rundir.WriteFile(filepath.Join(folder, LabelsFile), text)
}

// ReadLabels reads people's verdicts on a run's answers; nothing where there are none.
func ReadLabels(folder string) ([]Labelled, error) {
	path := filepath.Join(folder, LabelsFile)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, abi.WrapError(abi.CodeUnavailable, err.Error(), err)
	}
	defer f.Close()
	var list []Labelled
	d := json.NewDecoder(f)
	for {
		var l Labelled
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
