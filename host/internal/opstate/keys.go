package opstate

import (
	"slices"
	"strings"
)

// overlay has the values that an operation has written, by key and in order. Keys are in sorted runs, each at least
// twice as long as the next. So adding a key, or finding those with a prefix, costs few comparisons, however much the
// operation has written.
type overlay struct {
	values map[string]overlayValue
	// runs may contain deleted keys, and a deleted key twice if it was written again.
	runs [][]string
	puts int64
}

// overlayValue is a value written by the operation.
type overlayValue struct {
	data    []byte
	version int64
	at      int // index of its put in the batch
}

// set writes a value, whose put has an index in the batch, and returns the value's version.
func (o *overlay) set(key string, data []byte, at int) int64 {
	if o.values == nil {
		o.values = map[string]overlayValue{}
	}
	if _, known := o.values[key]; !known {
		o.runs = append(o.runs, []string{key})
	}
	o.puts++
	o.values[key] = overlayValue{data, provisional + o.puts, at}
	for n := len(o.runs); n > 1 && len(o.runs[n-2]) < 2*len(o.runs[n-1]); n-- {
		o.runs[n-2] = o.merged(o.runs[n-2], o.runs[n-1])
		o.runs = o.runs[:n-1]
	}
	return provisional + o.puts
}

// merged merges two runs, without deleted keys.
func (o *overlay) merged(a, b []string) []string {
	run := make([]string, 0, len(a)+len(b))
	for len(a)+len(b) > 0 {
		from := &a
		if len(a) == 0 || len(b) > 0 && b[0] < a[0] {
			from = &b
		}
		key := (*from)[0]
		*from = (*from)[1:]
		if _, there := o.values[key]; there && (len(run) == 0 || run[len(run)-1] != key) {
			run = append(run, key)
		}
	}
	return run
}

// keysUnder lists the first limit keys that start with prefix and come after a key, in order; 0 means all.
func (o *overlay) keysUnder(prefix, after string, limit int) []string {
	var found []string
	for _, run := range o.runs {
		at, _ := slices.BinarySearch(run, max(prefix, after))
		for taken := 0; at < len(run) && strings.HasPrefix(run[at], prefix) && (limit == 0 || taken < limit); at++ {
			if _, there := o.values[run[at]]; there && run[at] > after {
				found = append(found, run[at])
				taken++
			}
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if limit > 0 && len(found) > limit {
		found = found[:limit]
	}
	return found
}

// prefixes is a sorted set of prefixes, none of which is a prefix of another.
type prefixes []string

// cover reports whether name starts with one of them. Only the last prefix that does not sort after the name is a
// candidate, since whatever sorts between a prefix and a name with that prefix has the prefix, too.
func (p prefixes) cover(name string) bool {
	at, found := slices.BinarySearch(p, name)
	return found || at > 0 && strings.HasPrefix(name, p[at-1])
}

// within returns the range of those that start with prefix.
func (p prefixes) within(prefix string) (first, end int) {
	first, _ = slices.BinarySearch(p, prefix)
	for end = first; end < len(p) && strings.HasPrefix(p[end], prefix); end++ {
	}
	return first, end
}
