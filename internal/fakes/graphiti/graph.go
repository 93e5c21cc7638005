package graphiti

import (
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/memhost/memhost/internal/fakes/embed"
)

// episode, entity and fact are the nodes and edges of graphiti_core's model for Neo4j. A zero time is an absent property.
type episode struct {
	uuid, name, group, source, about, content string
	createdAt, validAt                        time.Time
	// naive: valid_at is a LOCAL DATETIME, which compares with no zoned one.
	naive bool
	// facts are asserted or closed by it: entity_edges.
	facts []string
}

type entity struct {
	uuid, group, name, summary string
	// label is a custom type's, beside Entity.
	label     string
	createdAt time.Time
}

type fact struct {
	uuid, group, relation, text, source, target             string
	validAt, invalidAt, createdAt, expiredAt, referenceTime time.Time
	episodes                                                []string
}

type graph struct {
	episodes []*episode
	entities []*entity
	facts    []*fact
	sagas    []*entity
	// communities are made by build_communities alone.
	communities []*entity
}

func (g *graph) episode(uuid string) *episode {
	for _, e := range g.episodes {
		if e.uuid == uuid {
			return e
		}
	}
	return nil
}

func (g *graph) fact(uuid string) *fact {
	for _, f := range g.facts {
		if f.uuid == uuid {
			return f
		}
	}
	return nil
}

func (g *graph) entity(uuid string) *entity {
	for _, n := range g.entities {
		if n.uuid == uuid {
			return n
		}
	}
	return nil
}

// dropFact removes one fact; entity_edges that name it stay.
func (g *graph) dropFact(uuid string) bool {
	n := len(g.facts)
	g.facts = slices.DeleteFunc(g.facts, func(f *fact) bool { return f.uuid == uuid })
	return len(g.facts) < n
}

func (g *graph) dropEpisode(uuid string) bool {
	n := len(g.episodes)
	g.episodes = slices.DeleteFunc(g.episodes, func(e *episode) bool { return e.uuid == uuid })
	return len(g.episodes) < n
}

// clear removes a group's facts, entities and episodes; sagas stay.
func (g *graph) clear(group string) {
	g.facts = slices.DeleteFunc(g.facts, func(f *fact) bool { return f.group == group })
	g.entities = slices.DeleteFunc(g.entities, func(n *entity) bool { return n.group == group })
	g.episodes = slices.DeleteFunc(g.episodes, func(e *episode) bool { return e.group == group })
}

// Bounds of a search (search_utils.py): from 127 words on the fulltext half is left out; cosine below the floor does not count.
const (
	fulltextWords = 127
	cosineFloor   = 0.2
)

// tooManyClauses: Lucene's limit on the words that get past the first check because other blanks than spaces separate them.
func tooManyClauses(query string) bool {
	return len(strings.Split(query, " ")) < fulltextWords && len(strings.Fields(query)) > 1024
}

// search ranks a group's facts by shared words and by cosine, fused by reciprocal rank. An empty group means all of them.
func (g *graph) search(group, query string, limit int) []*fact {
	var list []*fact
	for _, f := range g.facts {
		if group == "" || f.group == group {
			list = append(list, f)
		}
	}
	texts := make([]string, len(list))
	for i, f := range list {
		texts[i] = f.relation + " " + f.text
	}
	found := make([]*fact, 0, limit)
	for _, i := range rank(texts, query, limit) {
		found = append(found, list[i])
	}
	return found
}

// rank gives the places of the texts that a query finds, best first.
func rank(texts []string, query string, limit int) []int {
	if strings.TrimSpace(query) == "" || limit <= 0 {
		return nil
	}
	keyword, near := legs(texts, query)
	fused := fuse(limit, keyword, near)
	return best(fused, limit)
}

// legs are the two halves of a hybrid search: keywords, left out from 127 words on, and cosine above the floor.
func legs(texts []string, query string) (keyword, near []float64) {
	asked := embed.Words(query)
	want := embed.Text(query)
	seen := map[string]int{}
	words := make([][]string, len(texts))
	for i, t := range texts {
		words[i] = embed.Words(t)
		slices.Sort(words[i])
		for _, w := range slices.Compact(slices.Clone(words[i])) {
			seen[w]++
		}
	}
	keyword, near = make([]float64, len(texts)), make([]float64, len(texts))
	for i := range texts {
		if len(strings.Split(query, " ")) < fulltextWords {
			for _, w := range asked {
				if _, has := slices.BinarySearch(words[i], w); has {
					keyword[i] += math.Log(1 + float64(len(texts))/float64(seen[w]))
				}
			}
		}
		if c := embed.Cosine(want, embed.Text(texts[i])); c > cosineFloor {
			near[i] = c
		}
	}
	return keyword, near
}

// fuse adds the reciprocal ranks of some orders.
func fuse(limit int, legs ...[]float64) []float64 {
	fused := make([]float64, len(legs[0]))
	for _, scores := range legs {
		for place, i := range best(scores, 2*limit) {
			fused[i] += 1 / float64(place+1)
		}
	}
	return fused
}

// best gives the places of the highest scores above 0, highest first.
func best(scores []float64, limit int) []int {
	var places []int
	for i, s := range scores {
		if s > 0 {
			places = append(places, i)
		}
	}
	sort.SliceStable(places, func(a, b int) bool { return scores[places[a]] > scores[places[b]] })
	return places[:min(limit, len(places))]
}
