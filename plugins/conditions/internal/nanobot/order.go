package nanobot

// place is an element's original index, and the number by which it is ordered.
type place struct {
	by int64
	at int
}

// ordered sorts a list by a number of each element, ascending and stable. Sorting places serves lists of all types with
// one function, and by merging: slices.SortFunc adds 3 KB to a module.
func ordered[T any](list []T, by func(T) int64) []T {
	places, sorted := make([]place, len(list)), make([]T, len(list))
	for i, x := range list {
		places[i] = place{by(x), i}
	}
	for i, p := range mergeSort(places) {
		sorted[i] = list[p.at]
	}
	return sorted
}

// mergeSort sorts places: runs of 1, 2, 4 and so on are merged in pairs.
func mergeSort(from []place) []place {
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
