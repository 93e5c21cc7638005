package nanobot

import (
	"cmp"
	"slices"
)

// place is where an element stood, and the number by which it is ordered.
type place struct {
	by int64
	at int
}

// ordered is a list by a number of each element, the smallest in front; equal ones stay in order. One sort of places
// serves lists of all types: a stable sort for each type is 3 KB of a module.
func ordered[T any](list []T, by func(T) int64) []T {
	places, sorted := make([]place, len(list)), make([]T, len(list))
	for i, x := range list {
		places[i] = place{by(x), i}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.by, b.by), cmp.Compare(a.at, b.at)) })
	for i, p := range places {
		sorted[i] = list[p.at]
	}
	return sorted
}
