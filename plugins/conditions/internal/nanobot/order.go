package nanobot

// place is where an element stood, and the number by which it is ordered.
type place struct {
	by int64
	at int
}

// ordered is a list by a number of each element, the smallest in front; equal ones stay in order. One sort of places
// serves lists of all types, and merges: slices.SortFunc is 3 KB of a module.
func ordered[T any](list []T, by func(T) int64) []T {
	places, sorted := make([]place, len(list)), make([]T, len(list))
	for i, x := range list {
		places[i] = place{by(x), i}
	}
	for i, p := range merged(places) {
		sorted[i] = list[p.at]
	}
	return sorted
}

// merged sorts places: runs of 1, 2, 4 and so on are merged in pairs.
func merged(from []place) []place {
	to := make([]place, len(from))
	for run := 1; run < len(from); run *= 2 {
		for start := 0; start < len(from); start += 2 * run {
			middle, end := min(start+run, len(from)), min(start+2*run, len(from))
			a, b := start, middle
			for i := start; i < end; i++ {
				if a < middle && (b == end || from[a].by <= from[b].by) {
					to[i] = from[a]
					a++
				} else {
					to[i] = from[b]
					b++
				}
			}
		}
		from, to = to, from
	}
	return from
}
