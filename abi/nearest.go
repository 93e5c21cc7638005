package abi

// Nearest returns the word of known that is most like word: at most two edits away, or a third of its length where that
// is more, and never more than half of it; else the first of which one begins with the other, as user and user_id. It
// returns "" when there is none; of several equally near the first.
func Nearest(word string, known []string) string {
	best, limit := "", max(2, len(word)/3)
	for _, k := range known {
		if d := distance(word, k, limit); d <= limit && 2*d <= max(len(word), len(k)) {
			best, limit = k, d-1
		}
	}
	const telling = 4 // bytes that two words share
	for i := 0; best == "" && i < len(known); i++ {
		n := min(len(word), len(known[i]))
		if n >= telling && word[:n] == known[i][:n] {
			best = known[i]
		}
	}
	return best
}

// distance is the number of bytes to insert, delete, replace or swap with their neighbour to make a into b, in either
// case of letters; more than limit stands for any larger number.
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
