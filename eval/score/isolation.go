package score

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/stats"
)

// isolation searches contexts for text that can only come from another cluster: canaries, and passages. A passage is a
// run of sequences of eight words within one line that occur in events of another cluster, but, regardless of layout,
// in none of the own cluster. It only counts if it cannot be a coincidence: see proves.
//
// It reads the pack twice, and keeps 8 bytes for each sequence of a context that does not occur in the own cluster.
// First it collects these, cluster by cluster; then it finds out which of them occur in other clusters. Only texts with
// such a sequence are read again, to locate it.
type isolation struct {
	*timeline
	clusters   []string // in the pack's order
	number     map[string]int
	candidates []uint64 // sorted; sequences in contexts that do not occur in the own cluster
	mask       []uint64 // bits of the candidates, to skip most sequences quickly
	// owners has the clusters in which a candidate or a planted sequence occurs. suspicious means that one of them is a
	// candidate.
	owners map[uint64][]int32
	// foreignGrams has, by cluster, the words of contexts and plants that do not occur in the cluster's events;
	// speakers has the clusters in which such a word occurs.
	foreignGrams []map[uint64]bool
	speakers     map[uint64][]int32
	suspicious   bool
	plants       []plant
	planted      map[uint64]bool

	mu sync.Mutex // guards everything except clusters and number: clusters are processed concurrently
}

// plant is a text from another cluster that the detector must find.
type plant struct {
	cluster int // the cluster in which it is planted
	owner   int
	text    string // folded: a canary, or one line of a message
	canary  bool
}

// suspectContext is a context that was retrieved for a probe.
type suspectContext struct {
	probe *probe
	lines []string // inside the element, folded
}

func newIsolation(t *timeline) *isolation {
	s := &isolation{timeline: t, number: map[string]int{}, owners: map[uint64][]int32{}, speakers: map[uint64][]int32{}, planted: map[uint64]bool{}}
	for _, p := range t.personas {
		if _, known := s.number[p.cluster]; !known {
			s.number[p.cluster] = len(s.clusters)
			s.clusters = append(s.clusters, p.cluster)
			s.foreignGrams = append(s.foreignGrams, map[uint64]bool{})
		}
	}
	return s
}

// members returns the personas of a cluster.
func (s *isolation) members(cluster int) []*persona {
	var list []*persona
	for _, p := range s.personas {
		if s.number[p.cluster] == cluster {
			list = append(list, p)
		}
	}
	return list
}

// ownText has the content of a cluster's own events: the hashes of their sequences and of their words.
type ownText struct{ grams, words map[uint64]struct{} }

// add adds an event. Formatters put the speaker's name or role before a message, and messages of one event on one line,
// so sequences across these joints also count as the cluster's own.
func (o *ownText) add(e *pack.Event) {
	var before string // the last words of the previous message
	for i := range e.Messages {
		m := &e.Messages[i]
		if m.Content == nil {
			continue
		}
		text := fold(*m.Content).text
		grams(text, func(w word) { o.grams[w.hash] = struct{}{} })
		o.addWords(text)
		head, tail := ends(text)
		for _, speaker := range []string{"", m.Name, string(m.Role)} {
			speaker = fold(speaker).text
			o.addWords(speaker)
			grams(before+" "+speaker+" "+head, func(w word) { o.grams[w.hash] = struct{}{} })
		}
		before = tail
	}
}

func (o *ownText) addWords(text string) {
	words(text, func(w word) { o.words[w.hash] = struct{}{} })
}

// ends returns the first and last words of a folded text, each one fewer than a sequence has.
func ends(text string) (head, tail string) {
	var all []word
	words(text, func(w word) { all = append(all, w) })
	if len(all) < gramWords {
		return text, text
	}
	return text[:all[gramWords-2].end], text[all[len(all)-gramWords+1].start:]
}

// collect processes the contexts of one cluster, and plants a text from another.
func (s *isolation) collect(cluster int, own *ownText, contexts func(yield func(suspectContext) bool)) error {
	var found []uint64
	for c := range contexts {
		for _, line := range c.lines {
			grams(line, func(w word) {
				if _, known := own.grams[w.hash]; !known {
					found = append(found, w.hash)
				}
			})
			s.noteStrange(cluster, own, line)
		}
	}
	slices.Sort(found)
	s.mu.Lock()
	s.candidates = append(s.candidates, slices.Compact(found)...)
	s.mu.Unlock()
	return s.plant(cluster, own)
}

// noteStrange records the words of a text that do not occur in the cluster's events. Only one goroutine collects for a
// cluster.
func (s *isolation) noteStrange(cluster int, own *ownText, text string) {
	words(text, func(w word) {
		if _, known := own.words[w.hash]; !known {
			s.foreignGrams[cluster][w.hash] = true
		}
	})
}

// Limits of coincidence. Two people occasionally use the same stock phrase of eight words ("it was so good to see you
// last week"), but hardly ever one of ten, or one of eight with a word that no other person in the pack uses.
const (
	passageWords        = 10
	passageContentWords = 3
)

// long reports whether a passage has too many words to be a coincidence.
func long(passage string) bool {
	n := 0
	words(passage, func(word) { n++ })
	return n >= passageWords && len(contentWords(passage)) >= passageContentWords
}

// proves reports whether a passage in a cluster's contexts, which occurs in an owner's events, proves a leak: it is
// long, or has a word that only occurs in the owner's events.
func (s *isolation) proves(cluster, owner int, passage string) bool {
	if long(passage) {
		return true
	}
	return slices.ContainsFunc(contentWords(passage), func(w uint64) bool {
		by := s.speakers[w]
		return s.foreignGrams[cluster][w] && len(by) == 1 && int(by[0]) == owner
	})
}

// passages calls each for every run of sequences in a folded line for which foreign is true, with the text of the run
// and the number of its sequences.
func passages(line string, foreign func(gram uint64) bool, each func(passage string, sequences int)) {
	start, end, n := 0, 0, 0
	finish := func() {
		if n > 0 {
			each(line[start:end], n)
		}
		n = 0
	}
	grams(line, func(w word) {
		if !foreign(w.hash) {
			finish()
			return
		}
		if n == 0 {
			start = w.start
		}
		end = w.end
		n++
	})
	finish()
}

// maxPlants is how many clusters get a plant.
const maxPlants = 20

// plant plants the first line of the next cluster that proves a leak, and a canary of that cluster.
func (s *isolation) plant(cluster int, own *ownText) error {
	if cluster >= maxPlants || len(s.clusters) < 2 {
		return nil
	}
	owner := (cluster + 1) % len(s.clusters)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range s.canaries {
		for _, c := range list {
			if s.number[c.owner.cluster] == owner {
				s.plants = append(s.plants, plant{cluster, owner, c.text, true})
			}
		}
	}
	foreign := func(gram uint64) bool { _, known := own.grams[gram]; return !known }
	for _, p := range s.members(owner) {
		for e, err := range s.pack.Events(p.id) {
			if err != nil {
				return err
			}
			for i := range e.Messages {
				if e.Messages[i].Content == nil {
					continue
				}
				for _, line := range foldedLines(*e.Messages[i].Content) {
					s.noteStrange(cluster, own, line)
					proves := false
					passages(line, foreign, func(passage string, _ int) {
						proves = proves || long(passage)
					})
					if proves {
						s.plants = append(s.plants, plant{cluster, owner, line, false})
						grams(line, func(w word) { s.planted[w.hash] = true })
						return nil
					}
				}
			}
		}
	}
	return nil
}

// foldedLines returns the folded lines of a text.
func foldedLines(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if line := fold(line).text; line != "" {
			list = append(list, line)
		}
	}
	return list
}

// messageGrams returns the sequences in an event's messages.
func messageGrams(e *pack.Event) []uint64 {
	var list []uint64
	for i := range e.Messages {
		if text := e.Messages[i].Content; text != nil {
			grams(fold(*text).text, func(w word) { list = append(list, w.hash) })
		}
	}
	return list
}

// maskBits is the size of the mask, as a power of two.
const maskBits = 26

// match finds out which candidates occur in events, and in whose.
func (s *isolation) match() error {
	slices.Sort(s.candidates)
	s.candidates = slices.Compact(s.candidates)
	s.mask = make([]uint64, 1<<(maskBits-6))
	for _, list := range s.foreignGrams {
		for w := range list {
			s.speakers[w] = nil
		}
	}
	for _, h := range s.candidates {
		s.mark(h)
	}
	for h := range s.planted {
		s.mark(h)
	}
	var todo []func() error
	for _, p := range s.personas {
		todo = append(todo, func() error { return s.matchPersona(p) })
	}
	err := runTogether(todo)
	for _, owners := range s.owners {
		slices.Sort(owners)
	}
	s.candidates, s.mask = nil, nil
	return err
}

// matchPersona finds out which candidates occur in a persona's events.
func (s *isolation) matchPersona(p *persona) error {
	cluster := int32(s.number[p.cluster])
	for e, err := range s.pack.Events(p.id) {
		if err != nil {
			return err
		}
		s.noteSpeaker(cluster, e)
		for _, gram := range messageGrams(e) {
			if !s.marked(gram) {
				continue
			}
			_, candidate := slices.BinarySearch(s.candidates, gram)
			s.mu.Lock()
			s.suspicious = s.suspicious || candidate
			if (candidate || s.planted[gram]) && !slices.Contains(s.owners[gram], cluster) {
				s.owners[gram] = append(s.owners[gram], cluster)
			}
			s.mu.Unlock()
		}
	}
	return nil
}

// noteSpeaker records that a cluster's event has words that another cluster's contexts show but its events don't have.
func (s *isolation) noteSpeaker(cluster int32, e *pack.Event) {
	list := contentWords(eventText(e))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range list {
		if by, asked := s.speakers[w]; asked && !slices.Contains(by, cluster) {
			s.speakers[w] = append(by, cluster)
		}
	}
}

func (s *isolation) mark(h uint64) {
	bit := h >> (64 - maskBits)
	s.mask[bit/64] |= 1 << (bit % 64)
}

func (s *isolation) marked(h uint64) bool {
	bit := h >> (64 - maskBits)
	return s.mask[bit/64]>>(bit%64)&1 == 1
}

// foreign returns the cluster that a sequence comes from, if it does not occur in the own one.
func (s *isolation) foreign(gram uint64, own int) (owner int, found bool) {
	owners := s.owners[gram]
	if len(owners) == 0 || slices.Contains(owners, int32(own)) {
		return 0, false
	}
	return int(owners[0]), true
}

// leaks counts the sequences in a context's foreign passages, with the first passage as an example.
func (s *isolation) leaks(c suspectContext) (n int, first Leak) {
	own := s.number[c.probe.persona.cluster]
	for _, line := range c.lines {
		s.foreignPassages(own, line, func(passage string, owner, sequences int) {
			if n == 0 {
				first = Leak{ProbeID: c.probe.ProbeID, PersonaID: c.probe.persona.id, Owner: s.members(owner)[0].id,
					Kind: "sequence", Text: passage}
			}
			n += sequences
		})
	}
	return n, first
}

// foreignPassages calls each for every passage of a folded line that proves a leak, with its owner.
func (s *isolation) foreignPassages(own int, line string, each func(passage string, owner, sequences int)) {
	owner, known := 0, false
	foreign := func(gram uint64) bool {
		from, found := s.foreign(gram, own)
		if found && !known {
			owner, known = from, true
		}
		return found
	}
	passages(line, foreign, func(passage string, sequences int) {
		if s.proves(own, owner, passage) {
			each(passage, owner, sequences)
		}
		known = false
	})
}

// control reports whether the detector finds the plants.
func (s *isolation) control() LeakControl {
	c := LeakControl{Planted: len(s.plants), Detector: "not tested"}
	for _, p := range s.plants {
		found := false
		own := s.members(p.cluster)[0]
		if p.canary {
			m := &measurement{timeline: s.timeline, probe: &probe{persona: own}}
			text := fold("- " + p.text + ".")
			words(text.text, func(w word) { found = found || len(m.foreignCanary(nil, text, w)) > 0 })
		} else {
			s.foreignPassages(p.cluster, p.text, func(string, int, int) { found = true })
		}
		c.Found += int(yes(found))
	}
	switch {
	case c.Planted == 0:
	case c.Found == c.Planted:
		c.Detector = "works"
	default:
		c.Detector = "broken"
	}
	return c
}

// verdict is the isolation of a column, based on the canaries in its readings and the sequences in its contexts.
func (s *isolation) verdict(c *column, sequences []Leak, count int) Isolation {
	v := Isolation{Finds: []Leak{}}
	switch {
	case c.reference != nil:
		v.Reason = "it has no memory: it was computed from the pack"
		return v
	case len(s.clusters) < 2:
		v.Reason = "the pack has one cluster only: there is nothing foreign"
		return v
	}
	searched, leaking := map[string]bool{}, map[string]bool{}
	for _, cell := range c.cells {
		for _, readings := range cell.readings {
			for number, r := range readings {
				if r == nil || r.err != "" {
					continue
				}
				p := s.probes[number]
				searched[p.persona.cluster] = true
				for _, found := range r.canaries {
					v.Canaries++
					leaking[p.persona.cluster] = true
					v.Finds = append(v.Finds, Leak{p.ProbeID, p.persona.id, found.owner.id, "canary", found.text})
				}
			}
		}
	}
	for _, l := range sequences {
		leaking[s.byID[l.PersonaID].cluster] = true
		v.Finds = append(v.Finds, l)
	}
	v.Sequences = count
	v.Clusters, v.Leaking = len(searched), len(leaking)
	if v.Clusters == 0 {
		v.Reason = "nothing was retrieved"
		return v
	}
	v.Measured = true
	if v.Leaking == 0 {
		bound := stats.ZeroOfN(v.Clusters)
		v.Bound = &bound
	}
	slices.SortFunc(v.Finds, func(a, b Leak) int { return compareNames(fmt.Sprint(a), fmt.Sprint(b)) })
	v.Finds = slices.Compact(v.Finds)
	v.Finds = v.Finds[:min(len(v.Finds), maxExamples)]
	return v
}
