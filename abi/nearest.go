package abi

import (
	"strings"

	"github.com/memhost/memhost/abi/wirejson"
)

// Nearest returns the word of known that is most like word, or "" if none is near. A near word is at most two edits
// away, or a third of word's length if that is more, but never more than half of the longer word. Of several equally
// near words it returns one that begins with word (memos before mem0 for memo), else the first. If there is none, it
// returns the first word of which one is a prefix of the other, such as user and user_id.
func Nearest(word string, known []string) string {
	best, limit := "", max(2, len(word)/3)
	for _, k := range known {
		d := distance(word, k, limit)
		if d > limit || 2*d > max(len(word), len(k)) {
			continue
		}
		completes := strings.HasPrefix(k, word) && !strings.HasPrefix(best, word)
		if best == "" || d < limit || completes {
			best, limit = k, d
		}
	}
	const telling = 4 // length of the common prefix
	for i := 0; best == "" && i < len(known); i++ {
		n := min(len(word), len(known[i]))
		if n >= telling && word[:n] == known[i][:n] {
			best = known[i]
		}
	}
	return best
}

// Suggest returns the end of a message about an unknown word: ", did you mean \"role\"?" if a word of known is near,
// otherwise all of them: ", want one of role, content". It returns "" if known is empty.
func Suggest(word string, known []string) string {
	if near := didYouMean(word, known); near != "" || len(known) == 0 {
		return near
	}
	return ", want one of " + strings.Join(known, ", ")
}

func didYouMean(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return ", did you mean " + wirejson.Quote(near) + "?"
	}
	return ""
}

// distance returns the number of bytes to insert, delete, replace or swap with their neighbour to turn a into b,
// ignoring case. Any number above limit stands for a larger distance.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			d := last[j-1]
			if lower(a[i-1]) != lower(b[j-1]) {
				d = min(d, last[j], row[j-1]) + 1
			} else {
				d = min(d, last[j]+1, row[j-1]+1)
			}
			if i > 1 && j > 1 && lower(a[i-1]) == lower(b[j-2]) && lower(a[i-2]) == lower(b[j-1]) {
				d = min(d, before[j-2]+1)
			}
			row[j] = d
			least = min(least, d)
		}
		if least > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
