package graphiti

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/internal/test/fakes/embed"
)

// episode, entity and fact are the nodes and edges of graphiti_core's model for Neo4j. A zero time is an absent
// property.
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

// forgetIn takes a fact's sentence out of the summaries of its ends.
func (g *graph) forgetIn(f *fact) {
	for _, uuid := range []string{f.source, f.target} {
		if n := g.entity(uuid); n != nil {
			n.summary = strings.ReplaceAll(n.summary, f.text, "")
		}
	}
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

// fulltextWords is where search_utils.py stops searching by words.
const (
	fulltextWords = 127
)

// tooManyClauses: Lucene's limit on the words that get past the first check because other blanks than spaces separate
// them.
func tooManyClauses(query string) bool {
	return len(strings.Split(query, " ")) < fulltextWords && len(strings.Fields(query)) > 1024
}

// search ranks a group's facts. An empty group means all of them.
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

// rank gives the places of the texts that resemble a query, the nearest first. Which of several is nearest is by shared
// words alone: the real one fuses keywords and vectors by reciprocal rank.
func rank(texts []string, query string, limit int) []int {
	if strings.TrimSpace(query) == "" || limit <= 0 {
		return nil
	}
	near := nearness(texts, query)
	var places []int
	for i := range texts {
		if near[i] > 0 {
			places = append(places, i)
		}
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(near[b], near[a]) })
	return places[:min(limit, len(places))]
}

// nearness is the cosine of each text to the query, from 0 to 1. A long query is not searched for by words, and then
// what is far counts 0.
func nearness(texts []string, query string) []float64 {
	want := embed.Text(query)
	near := make([]float64, len(texts))
	for i, t := range texts {
		near[i] = embed.Cosine(want, embed.Text(t))
		if near[i] <= 0.2 && len(strings.Split(query, " ")) >= fulltextWords {
			near[i] = 0
		}
	}
	return near
}
