package main

import (
	"slices"
	"strings"
)

// search holds the parameters of memory_search; at least one of the first four is set.
type search struct {
	query, subject, scope, topic string
	sessionID                    string
	includeForgotten             bool
	limit                        int64
	// parts: a word of the query also matches words that contain it or share its beginning.
	parts bool
	// maxExamined is the maximum number of entries examined, newest first; 0 means all.
	maxExamined int64
}

// hit is an entry with its score, 0 if there was no query: the share of the query's words that match, where a partial
// match counts half, plus 1 if the object contains the query.
type hit struct {
	*entry
	score share
}

// search reads every entry of a view and returns the best.
func (l *ledger) search(v *view, s *search) []hit {
	words := wordsOf(s.query)
	var hits []hit
	parts := []string{itemPart}
	if s.includeForgotten {
		parts = append(parts, forgottenPart)
	}
	looked := int64(0)
	for _, part := range parts {
		for item := range l.Values(v.prefix + part) {
			if looked++; s.maxExamined > 0 && looked > s.maxExamined {
				break
			}
			e := l.unpack(item.Key, item.Value)
			if !s.fits(e) || !l.mayShow(e) || e.active() && !l.visible(e, s.sessionID) {
				continue
			}
			found := hit{e, s.score(e, words)}
			if s.query != "" && found.score == 0 {
				continue
			}
			at := 0
			for at < len(hits) && before(hits[at], found) {
				at++
			}
			hits = slices.Insert(hits, at, found)
			hits = hits[:min(s.limit, int64(len(hits)))]
		}
	}
	return hits
}

// before orders hits by score, then most recently changed first, then by id.
func before(a, b hit) bool {
	switch {
	case a.score != b.score:
		return a.score > b.score
	case a.UpdatedAt != b.UpdatedAt:
		return a.UpdatedAt > b.UpdatedAt
	}
	return a.EventID < b.EventID
}

func (s *search) fits(e *entry) bool {
	return (s.subject == "" || fold(s.subject) == fold(e.Subject)) && (s.scope == "" || s.scope == e.Scope) &&
		(s.topic == "" || s.topic == e.Topic || strings.HasPrefix(e.Topic, s.topic+"/"))
}

func (s *search) score(e *entry, words []string) share {
	if len(words) == 0 {
		return 0
	}
	text := map[string]bool{}
	for _, field := range []string{e.Subject, e.Predicate, e.Object, e.Topic, e.Evidence} {
		for _, w := range wordsOf(field) {
			text[w] = true
		}
	}
	found := 0 // in halves
	for _, w := range words {
		switch {
		case text[w]:
			found += 2
		case s.parts && hasKin(text, w):
			found++
		}
	}
	score := share(500 * found / len(words))
	if strings.Contains(lower(e.Object), lower(strings.TrimSpace(s.query))) {
		score += 1000
	}
	return score
}

// hasKin reports whether a text contains a word that is kin to a word.
func hasKin(text map[string]bool, word string) bool {
	for w := range text {
		if kin(w, word) {
			return true
		}
	}
	return false
}

// kin reports whether one word begins with the other (three bytes or more), whether one is a part of the other (four or
// more, or one Chinese character), or whether they share a beginning of at least five bytes and half of the longer one:
// "preferences" and "prefers" are kin to "preference", "the" is not to "other".
func kin(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	inside := len(a) >= 4 || len(a) == 3 && a[0] >= 0x80
	if len(a) >= 3 && strings.HasPrefix(b, a) || inside && strings.Contains(b, a) {
		return true
	}
	same := 0
	for same < len(a) && a[same] == b[same] {
		same++
	}
	return same >= 5 && 2*same >= len(b)
}

// wordsOf returns the distinct runs of letters and digits in lower case; for Chinese, Japanese and Korean, which do not
// separate words, each pair of characters.
func wordsOf(text string) []string {
	var words []string
	add := func(w string) {
		if w != "" && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	var run []rune
	end := func() {
		if len(run) == 0 {
			return
		}
		if !isCJK(run[0]) || len(run) == 1 {
			add(string(run))
		} else {
			for i := range len(run) - 1 {
				add(string(run[i : i+2]))
			}
		}
		run = run[:0]
	}
	for _, r := range lower(text) {
		if !isWord(r) {
			end()
			continue
		}
		if len(run) > 0 && isCJK(run[0]) != isCJK(r) {
			end()
		}
		run = append(run, r)
	}
	end()
	return words
}

func isCJK(r rune) bool {
	return r >= 0x3040 && r <= 0x30FF || r >= 0x3400 && r <= 0x9FFF || r >= 0xAC00 && r <= 0xD7AF || r >= 0xF900 &&
		r <= 0xFAFF || r >= 0x20000 && r <= 0x3FFFF
}

// isWord reports whether a character belongs to a word. The tables of package unicode are large in a guest, so beyond
// Latin-1 it only excludes the blocks of punctuation and symbols.
func isWord(r rune) bool {
	switch {
	case r < 0x80:
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	case r < 0xC0:
		return r == 0xAA || r == 0xB5 || r == 0xBA
	case r == 0xD7 || r == 0xF7:
		return false
	case r >= 0x2000 && r <= 0x2BFF || r >= 0x2E00 && r <= 0x2E7F || r >= 0x3000 && r <= 0x3004 || r >= 0x3008 &&
		r <= 0x3020 || r == 0x30FB:
		return false
	case r >= 0xFE30 && r <= 0xFE6F || r >= 0xFF00 && r <= 0xFF0F || r >= 0xFF1A && r <= 0xFF20 || r >= 0xFF3B &&
		r <= 0xFF40 || r >= 0xFF5B && r <= 0xFF65:
		return false
	case r >= 0xE000 && r <= 0xF8FF || r >= 0x1F000 && r <= 0x1FAFF:
		return false
	}
	return true
}

// lower lower-cases Latin, Greek and Cyrillic letters; other scripts are compared as they are.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z', r >= 0xC0 && r <= 0xDE && r != 0xD7, r >= 0x391 && r <= 0x3A9, r >= 0x410 &&
			r <= 0x42F:
			return r + 32
		case r >= 0x400 && r <= 0x40F:
			return r + 80
		case r >= 0x100 && r <= 0x137 || r >= 0x14A && r <= 0x177:
			return r | 1
		case r >= 0x139 && r <= 0x148 || r >= 0x179 && r <= 0x17E:
			return r + r&1
		}
		return r
	}, s)
}
