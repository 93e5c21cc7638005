package score

import (
	"fmt"
	"slices"
	"sync"

	"github.com/memhost/memhost/eval/pack"
	"github.com/memhost/memhost/eval/stats"
)

// isolation looks for text in contexts that only another cluster can have given: canaries, and sequences of eight words
// that no event of the own cluster holds and an event of another does.
//
// It goes over the pack twice and keeps 8 bytes for each sequence of a context that the own cluster does not hold:
// first, cluster by cluster, it collects these; then it looks which of them other clusters hold. Only texts with such a
// sequence are read again, to say where.
type isolation struct {
	*timeline
	clusters   []string // in the pack's order
	number     map[string]int
	candidates []uint64 // sorted; sequences of contexts that are not the own cluster's
	mask       []uint64 // bits of the candidates, to pass over most sequences at once
	// owners are the clusters that hold a candidate or a planted sequence. suspicious: one of the candidates is among
	// them.
	owners     map[uint64][]int32
	suspicious bool
	plants     []plant
	planted    map[uint64]bool

	mu sync.Mutex // of all but clusters and number: clusters are gone through side by side
}

// plant is a text of another cluster that the detector must find.
type plant struct {
	cluster int // that it is planted in
	owner   int
	text    string // folded
	canary  bool
}

// suspect is a context that a probe was given.
type suspect struct {
	probe *probe
	text  *folded // inside the element
}

func newIsolation(t *timeline) *isolation {
	s := &isolation{timeline: t, number: map[string]int{}, owners: map[uint64][]int32{}, planted: map[uint64]bool{}}
	for _, p := range t.personas {
		if _, known := s.number[p.cluster]; !known {
			s.number[p.cluster] = len(s.clusters)
			s.clusters = append(s.clusters, p.cluster)
		}
	}
	return s
}

// members are the personas of a cluster.
func (s *isolation) members(cluster int) []*persona {
	var list []*persona
	for _, p := range s.personas {
		if s.number[p.cluster] == cluster {
			list = append(list, p)
		}
	}
	return list
}

// collect takes in the contexts of one cluster, and plants a text of another. own are the hashes of the cluster's
// sequences.
func (s *isolation) collect(cluster int, own map[uint64]struct{}, contexts func(yield func(suspect) bool)) error {
	var found []uint64
	for c := range contexts {
		grams(c.text.text, func(w word) {
			if _, known := own[w.hash]; !known {
				found = append(found, w.hash)
			}
		})
	}
	slices.Sort(found)
	s.mu.Lock()
	s.candidates = append(s.candidates, slices.Compact(found)...)
	s.mu.Unlock()
	return s.plant(cluster, own)
}

// maxPlants bounds the clusters that get a plant.
const maxPlants = 20

// plant takes the first text of the next clusters that holds a sequence of its own, and a canary of another cluster.
func (s *isolation) plant(cluster int, own map[uint64]struct{}) error {
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
	for _, p := range s.members(owner) {
		for e, err := range s.pack.Events(p.id) {
			if err != nil {
				return err
			}
			text, foreign := fold(eventText(e)).text, false
			for _, gram := range messageGrams(e) {
				if _, known := own[gram]; !known {
					s.planted[gram], foreign = true, true
				}
			}
			if foreign {
				s.plants = append(s.plants, plant{cluster, owner, text, false})
				return nil
			}
		}
	}
	return nil
}

// messageGrams are the sequences of an event's messages.
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

// match looks which candidates are in events, and whose.
func (s *isolation) match() error {
	slices.Sort(s.candidates)
	s.candidates = slices.Compact(s.candidates)
	s.mask = make([]uint64, 1<<(maskBits-6))
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
	err := together(todo)
	for _, owners := range s.owners {
		slices.Sort(owners)
	}
	s.candidates, s.mask = nil, nil
	return err
}

// matchPersona looks which candidates are in a persona's events.
func (s *isolation) matchPersona(p *persona) error {
	cluster := int32(s.number[p.cluster])
	for e, err := range s.pack.Events(p.id) {
		if err != nil {
			return err
		}
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

func (s *isolation) mark(h uint64) {
	bit := h >> (64 - maskBits)
	s.mask[bit/64] |= 1 << (bit % 64)
}

func (s *isolation) marked(h uint64) bool {
	bit := h >> (64 - maskBits)
	return s.mask[bit/64]>>(bit%64)&1 == 1
}

// foreign is the cluster that a sequence comes from, where the own one does not hold it.
func (s *isolation) foreign(gram uint64, own int) (owner int, found bool) {
	owners := s.owners[gram]
	if len(owners) == 0 || slices.Contains(owners, int32(own)) {
		return 0, false
	}
	return int(owners[0]), true
}

// leaks counts the foreign sequences of a context, with the first as an example.
func (s *isolation) leaks(c suspect) (n int, first Leak) {
	own := s.number[c.probe.persona.cluster]
	grams(c.text.text, func(w word) {
		owner, found := s.foreign(w.hash, own)
		if !found {
			return
		}
		if n++; n == 1 {
			first = Leak{ProbeID: c.probe.ProbeID, PersonaID: c.probe.persona.id, Owner: s.members(owner)[0].id,
				Kind: "sequence",
				Text: c.text.text[w.start:w.end]}
		}
	})
	return n, first
}

// control is what the detector makes of the plants.
func (s *isolation) control() LeakControl {
	c := LeakControl{Planted: len(s.plants), Detector: "not tested"}
	for _, p := range s.plants {
		found := false
		own := s.members(p.cluster)[0]
		if p.canary {
			m := &measuring{timeline: s.timeline, probe: &probe{persona: own}}
			text := fold("- " + p.text + ".")
			words(text.text, func(w word) { found = found || len(m.foreignCanary(nil, text, w)) > 0 })
		} else {
			grams(p.text, func(w word) {
				_, foreign := s.foreign(w.hash, p.cluster)
				found = found || foreign
			})
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

// verdict is the isolation of a column, from the canaries of its readings and the sequences in its contexts.
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
