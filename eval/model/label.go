package model

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/rundir"
	"github.com/memhost/memhost/eval/stats"
)

// LabelsFile is the file with people's labels in a run's folder: one line for each answer and person.
const LabelsFile = "labels.jsonl"

// Labelled is one person's verdict on one answer. Equal answers to one probe are one text, whichever provider was used.
type Labelled struct {
	Text  string `json:"text"` // as in Judgement
	By    string `json:"by"`
	Right bool   `json:"right"`
}

// textID identifies an answer to a probe without revealing the provider.
func textID(probe, text string) string {
	sum := sha256.Sum256([]byte(probe + "\x00" + text))
	return hex.EncodeToString(sum[:8])
}

// sheetHead are the columns of a label sheet. People fill in right: yes or no.
var sheetHead = []string{"item", "question", "expected", "answer", "right"}

// Sheet writes a blind sheet of real answers, spread over providers: no column reveals the memory, budget or model. It
// returns how many answers it has.
//
// Errors: conflict if the run has no answers.
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
	rows := [][]string{sheetHead}
	for _, j := range chosen {
		rows = append(rows, []string{j.Text, guarded(j.question), guarded(j.expected), guarded(j.text), ""})
	}
	return writeSheet(w, rows)
}

// spread draws up to most different answers, taking turns among providers and budgets, and shuffles them.
func spread(items []judgeItem, most int, seed uint64) []judgeItem {
	random := stats.Random(seed, "label sheet")
	of := map[ratedGroup][]judgeItem{}
	var order []ratedGroup
	for _, j := range items {
		if j.Sort != SortAnswer || j.Error != nil {
			continue
		}
		key := ratedGroup{j.Label, j.Budget, ""}
		if of[key] == nil {
			order = append(order, key)
		}
		of[key] = append(of[key], j)
	}
	for _, key := range order {
		random.Shuffle(len(of[key]), func(a, b int) { of[key][a], of[key][b] = of[key][b], of[key][a] })
	}
	var chosen []judgeItem
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

// guarded keeps a spreadsheet from interpreting a text as a formula.
func guarded(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// TakeLabels reads a completed sheet and stores its labels in the run's folder, replacing earlier ones of the same
// person. It returns how many rows have a label, and how many have none.
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
	return takeSheet(sheet, filepath.Join(folder, LabelsFile), sheetHead, known, "answer",
		func(l Labelled) bool { return l.By == by }, func(item, filled string) (Labelled, error) {
			switch strings.ToLower(strings.TrimSpace(filled)) {
			case "yes", "y", "1", "true":
				return Labelled{item, by, true}, nil
			case "no", "n", "0", "false":
				return Labelled{item, by, false}, nil
			}
			return Labelled{}, fmt.Errorf("right: want yes, no or nothing, found %q", filled)
		})
}

// ReadLabels reads people's verdicts on a run's answers, if there are any.
func ReadLabels(folder string) ([]Labelled, error) {
	return readLines[Labelled](filepath.Join(folder, LabelsFile))
}
