package testenv

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"sort"
	"time"
)

// differences adds a row for each field in which two JSON values differ.
func differences(table *[]string, query, at string, ours, theirs any) {
	switch a := ours.(type) {
	case map[string]any:
		b, ok := theirs.(map[string]any)
		if !ok {
			break
		}
		keys := map[string]bool{}
		for k := range a {
			keys[k] = true
		}
		for k := range b {
			keys[k] = true
		}
		for k := range keys {
			x, inA := a[k]
			y, inB := b[k]
			if inA != inB {
				*table = append(*table, fmt.Sprintf("%s | %s/%s | %s | %s", query, at, k, present(x, inA),
					present(y, inB)))
				continue
			}
			differences(table, query, at+"/"+k, x, y)
		}
		return
	case []any:
		b, ok := theirs.([]any)
		if !ok {
			break
		}
		if len(a) != len(b) {
			*table = append(*table, fmt.Sprintf("%s | %s | %d items | %d items", query, at, len(a), len(b)))
			return
		}
		for i := range a {
			differences(table, query, fmt.Sprintf("%s/%d", at, i), a[i], b[i])
		}
		return
	case float64:
		if b, ok := theirs.(float64); ok && sameNumber(a, b) {
			return
		}
	case string:
		if b, ok := theirs.(string); ok && sameInstant(a, b) {
			return
		}
	}
	if !reflect.DeepEqual(ours, theirs) {
		*table = append(*table, fmt.Sprintf("%s | %s | %s | %s", query, at, short(ours), short(theirs)))
	}
}

func present(v any, is bool) string {
	if !is {
		return "(absent)"
	}
	return short(v)
}

func short(v any) string {
	text, _ := json.Marshal(v)
	if len(text) > 120 {
		return string(text[:120]) + "…"
	}
	return string(text)
}

// sameInstant reports whether two texts are spellings of one time.
func sameInstant(a, b string) bool {
	if a == b {
		return true
	}
	x, err1 := time.Parse(time.RFC3339Nano, a)
	y, err2 := time.Parse(time.RFC3339Nano, b)
	return err1 == nil && err2 == nil && x.Equal(y)
}

// sameNumber: a score has the precision of a float32 at best, and its last bits differ between two calls of one
// backend: MemOS takes the store's (float32) or its own (float64), whichever comes first.
func sameNumber(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b)) }

// sameScore reports whether two rows have a score, and the same.
func sameScore(a, b any) bool {
	x, ok1 := a.(float64)
	y, ok2 := b.(float64)
	return ok1 && ok2 && sameNumber(x, y)
}

// settle orders runs of rows with equal scores by their text, at any depth. Which rows of the last run are in a list
// that a limit cut is not the same in two calls either: of a last run only the scores are left.
func settle(v any, score func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = settle(x, score)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = settle(x, score)
		}
		for start := 0; start < len(out); {
			end := start + 1
			for end < len(out) && score != nil && sameScore(score(out[start]), score(out[end])) {
				end++
			}
			run := out[start:end]
			sort.SliceStable(run, func(i, j int) bool { return identity(run[i]) < identity(run[j]) })
			if end == len(out) && len(run) > 1 {
				for i := range run {
					run[i] = map[string]any{"score": score(run[i])}
				}
			}
			start = end
		}
		return out
	}
	return v
}

// identity of a row: its id, or all of it.
func identity(row any) string {
	if item, ok := row.(map[string]any); ok {
		if id, ok := item["id"].(string); ok {
			return id
		}
	}
	text, _ := json.Marshal(row)
	return string(text)
}
