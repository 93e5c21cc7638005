package graphiti

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/bolt"
)

// Serve lets a database answer the Bolt statements of a manifest over this graph. It knows them by their routes' names,
// not by their Cypher: what the text does is shown against a real Neo4j.
//
// Errors: the manifest cannot be read, or has a Bolt route that is not of the menu.
func (s *Server) Serve(b *bolt.Server, manifest []byte) error {
	var m abi.ModuleManifest
	if err := abi.Unmarshal(manifest, &m); err != nil {
		return err
	}
	for _, route := range m.Routes {
		if route.Statement == "" {
			continue
		}
		if _, known := menu[route.Name]; !known {
			return fmt.Errorf("fakes/graphiti: no answer for route %s", route.Name)
		}
		b.Handle(route.Statement, bolt.Statement{Writes: route.Class != abi.ClassRead,
			Answer: func(_ context.Context, q bolt.Query) bolt.Answer {
				columns, rows, up := s.Query(route.Name, q.Params)
				return bolt.Answer{Columns: columns, Rows: rows, Drop: !up}
			}})
	}
	return nil
}

// Query answers a route of the menu; integers are int64. up is false while the database is down.
func (s *Server) Query(route string, values map[string]any) (columns []string, rows [][]any, up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work()
	if s.down {
		return nil, nil, false
	}
	names, rows := menu[route](s, params(values))
	return strings.Fields(names), rows, true
}

// params are a statement's, by name.
type params map[string]any

func (p params) text(name string) string    { t, _ := p[name].(string); return t }
func (p params) whole(name string) int64    { n, _ := p[name].(int64); return n }
func (p params) gid() string                { return p.text("gid") }
func (p params) limit(rows [][]any) [][]any { return rows[:min(int(p.whole("limit")), len(rows))] }

func (p params) texts(name string) []string {
	list, _ := p[name].([]any)
	var found []string
	for _, v := range list {
		t, _ := v.(string)
		found = append(found, t)
	}
	return found
}

// ms returns a time in Unix ms, or null for the zero time.
func ms(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

func anys(list []string) []any {
	found := []any{}
	for _, t := range list {
		found = append(found, t)
	}
	return found
}

func optional(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// named returns the name of the entity with this UUID.
func (s *Server) named(uuid string) string {
	if n := s.graph.entity(uuid); n != nil {
		return n.name
	}
	return ""
}

// factsOf returns a group's facts: those with the given uuids, or all if none are given.
func (s *Server) factsOf(p params, uuids []string) []*fact {
	var found []*fact
	for _, f := range s.graph.facts {
		if f.group == p.gid() && (uuids == nil || slices.Contains(uuids, f.uuid)) {
			found = append(found, f)
		}
	}
	return found
}

// episodeOf is a group's episode.
func (s *Server) episodeOf(p params, uuid string) *episode {
	if e := s.graph.episode(uuid); e != nil && e.group == p.gid() {
		return e
	}
	return nil
}

// byColumns sorts rows by the values of some columns.
func byColumns(rows [][]any, columns ...int) [][]any {
	slices.SortStableFunc(rows, func(a, b []any) int {
		for _, c := range columns {
			if o := cmp.Compare(fmt.Sprintf("%020v", a[c]), fmt.Sprintf("%020v", b[c])); o != 0 {
				return o
			}
		}
		return 0
	})
	return rows
}

// menu answers a route: its columns, separated by blanks, and its rows.
var menu = map[string]func(*Server, params) (string, [][]any){
	"bolt_alive": func(*Server, params) (string, [][]any) { return "ok", [][]any{{int64(1)}} },
	"bolt_episodes_named": func(s *Server, p params) (string, [][]any) {
		var rows [][]any
		for _, name := range p.texts("names") {
			uuids, started := []any{}, any(nil)
			for _, e := range s.graph.episodes {
				if e.group == p.gid() && e.name == name {
					uuids, started = append(uuids, e.uuid), ms(e.createdAt)
				}
			}
			rows = append(rows, []any{name, int64(len(uuids)), uuids, started})
		}
		return "want copies uuids started_ms", rows
	},
	"bolt_ingest": func(s *Server, _ params) (string, [][]any) {
		newest := time.Time{}
		for _, e := range s.graph.episodes {
			if e.createdAt.After(newest) {
				newest = e.createdAt
			}
		}
		return "total newest_ms", [][]any{{int64(len(s.graph.episodes)), ms(newest)}}
	},
	"bolt_fact_events": func(s *Server, p params) (string, [][]any) {
		var rows [][]any
		for _, f := range s.factsOf(p, p.texts("facts")) {
			for _, uuid := range f.episodes {
				if e := s.episodeOf(p, uuid); e != nil {
					rows = append(rows, []any{f.uuid, e.name, uuid, e.about, ms(e.validAt)})
				}
			}
		}
		return "fact name episode about event_ms", byColumns(rows, 0, 4, 1)
	},
	"bolt_facts": func(s *Server, p params) (string, [][]any) {
		var rows [][]any
		for _, f := range s.factsOf(p, p.texts("facts")) {
			rows = append(rows, []any{f.uuid, f.text, s.named(f.source), f.relation, s.named(f.target), ms(f.validAt),
				ms(f.invalidAt), ms(f.createdAt), ms(f.expiredAt), anys(f.episodes)})
		}
		return "fact text subject relation object valid_ms invalid_ms created_ms expired_ms episodes",
			byColumns(rows, 0)
	},
	"bolt_facts_between": func(s *Server, p params) (string, [][]any) {
		var rows [][]any
		for _, f := range s.factsOf(p, nil) {
			if at := f.validAt; !at.IsZero() && at.UnixMilli() >= p.whole("lo") && at.UnixMilli() < p.whole("hi") {
				events := []any{}
				for _, uuid := range f.episodes {
					if e := s.episodeOf(p, uuid); e != nil {
						events = append(events, e.name)
					}
				}
				rows = append(rows, []any{f.uuid, f.text, s.named(f.source), f.relation, s.named(f.target),
					ms(f.validAt), ms(f.invalidAt), ms(f.createdAt), ms(f.expiredAt), anys(f.episodes), events})
			}
		}
		rows = byColumns(rows, 5, 0)
		return "fact text subject relation object valid_ms invalid_ms created_ms expired_ms episodes events",
			p.limit(rows[min(int(p.whole("skip")), len(rows)):])
	},
	"bolt_sources": func(s *Server, p params) (string, [][]any) {
		var rows [][]any
		for _, f := range s.factsOf(p, p.texts("facts")) {
			if len(f.episodes) == 0 {
				rows = append(rows, []any{f.uuid, nil, true, nil, nil, nil, nil})
			}
			for _, uuid := range f.episodes {
				if e := s.episodeOf(p, uuid); e != nil {
					rows = append(rows, []any{f.uuid, uuid, false, e.name, e.about, ms(e.validAt), e.content})
				} else {
					rows = append(rows, []any{f.uuid, uuid, true, nil, nil, nil, nil})
				}
			}
		}
		return "fact episode dangling name about event_ms text", rows
	},
	"bolt_contexts": func(s *Server, p params) (string, [][]any) {
		var rows [][]any
		for _, f := range s.factsOf(p, p.texts("facts")) {
			var abouts []string
			for _, uuid := range f.episodes {
				if e := s.episodeOf(p, uuid); e != nil && !slices.Contains(abouts, e.about) {
					abouts = append(abouts, e.about)
				}
			}
			rows = append(rows, []any{f.uuid, anys(abouts)})
		}
		return "fact abouts", rows
	},
	"bolt_invalidated": func(s *Server, p params) (string, [][]any) {
		var rows [][]any
		for _, f := range s.factsOf(p, nil) {
			closed := f.invalidAt
			if p.text("clock") != "event" {
				closed = f.expiredAt
			}
			if !closed.IsZero() && closed.UnixMilli() >= p.whole("lo") && closed.UnixMilli() < p.whole("hi") {
				rows = append(rows, []any{f.uuid, f.text, s.named(f.source), f.relation, s.named(f.target),
					ms(f.validAt), ms(f.invalidAt), ms(f.expiredAt), anys(f.episodes)})
			}
		}
		return "fact text subject relation object valid_ms invalid_ms expired_ms episodes", p.limit(byColumns(rows, 6))
	},
	"bolt_closed_by": func(s *Server, p params) (string, [][]any) {
		var rows [][]any
		for _, f := range s.factsOf(p, []string{p.text("fact")}) {
			for _, e := range s.graph.episodes {
				if e.group == p.gid() && slices.Contains(e.facts, f.uuid) && !slices.Contains(f.episodes, e.uuid) {
					rows = append(rows, []any{e.uuid, e.name, ms(e.validAt)})
				}
			}
		}
		return "episode name event_ms", rows
	},
	"bolt_episode_facts": func(s *Server, p params) (string, [][]any) {
		var rows [][]any
		if e := s.episodeOf(p, p.text("episode")); e != nil {
			for _, f := range s.factsOf(p, e.facts) {
				if len(e.facts) > 0 {
					rows = append(rows, []any{f.uuid, f.text, slices.Contains(f.episodes, e.uuid), ms(f.validAt),
						ms(f.invalidAt), ms(f.expiredAt)})
				}
			}
		}
		return "fact text asserted valid_ms invalid_ms expired_ms", rows
	},
	"bolt_history": func(s *Server, p params) (string, [][]any) {
		var rows [][]any
		for _, f := range s.factsOf(p, nil) {
			a, b := s.named(f.source), s.named(f.target)
			if strings.EqualFold(a, p.text("a")) && strings.EqualFold(b, p.text("b")) ||
				strings.EqualFold(b, p.text("a")) && strings.EqualFold(a, p.text("b")) {
				rows = append(rows, []any{f.uuid, f.relation, f.text, ms(f.validAt), ms(f.invalidAt)})
			}
		}
		return "fact relation text from_ms to_ms", byColumns(rows, 3)
	},
	"bolt_counts": func(s *Server, p params) (string, [][]any) {
		var n [6]int64
		for _, e := range s.graph.episodes {
			if e.group == p.gid() {
				n[0]++
			}
		}
		for _, e := range s.graph.entities {
			if e.group == p.gid() {
				n[1]++
			}
		}
		for _, f := range s.factsOf(p, nil) {
			n[2]++
			if !f.expiredAt.IsZero() {
				n[3]++
			}
		}
		for i, list := range [][]*entity{s.graph.communities, s.graph.sagas} {
			for _, e := range list {
				if e.group == p.gid() {
					n[4+i]++
				}
			}
		}
		var rows [][]any
		for i, what := range []string{"episodes", "entities", "facts", "facts_closed", "communities", "sagas"} {
			rows = append(rows, []any{what, n[i]})
		}
		return "what c", rows
	},
	"bolt_labels": func(s *Server, p params) (string, [][]any) {
		n := int64(0)
		for _, e := range s.graph.entities {
			if e.group == p.gid() {
				n++
			}
		}
		return "label c", [][]any{{"Entity", n}}
	},
	"bolt_relations": func(s *Server, p params) (string, [][]any) {
		n := map[string]int64{}
		for _, f := range s.factsOf(p, nil) {
			n[f.relation]++
		}
		var rows [][]any
		for name, c := range n {
			rows = append(rows, []any{name, c})
		}
		slices.SortFunc(rows, func(a, b []any) int {
			return cmp.Or(cmp.Compare(b[1].(int64), a[1].(int64)), cmp.Compare(a[0].(string), b[0].(string)))
		})
		return "relation c", p.limit(rows)
	},
	"bolt_crossing": func(s *Server, p params) (string, [][]any) {
		n := int64(0)
		for _, f := range s.graph.facts {
			a, b := s.graph.entity(f.source), s.graph.entity(f.target)
			if a != nil && b != nil && (a.group == p.gid() || b.group == p.gid()) &&
				(a.group != b.group || f.group != p.gid()) {
				n++
			}
		}
		return "crossing", [][]any{{n}}
	},
	"bolt_facts_at": func(s *Server, p params) (string, [][]any) {
		var rows [][]any
		at := p.whole("at")
		for _, f := range s.factsOf(p, nil) {
			if (f.validAt.IsZero() || f.validAt.UnixMilli() <= at) &&
				(f.invalidAt.IsZero() || f.invalidAt.UnixMilli() > at) {
				rows = append(rows, []any{f.uuid, f.text, s.named(f.source), s.named(f.target), ms(f.validAt),
					f.validAt.IsZero()})
			}
		}
		slices.Reverse(byColumns(rows, 4))
		return "fact text subject object valid_ms undated", p.limit(rows)
	},
	"bolt_owner_episode": func(s *Server, p params) (string, [][]any) {
		if e := s.graph.episode(p.text("uuid")); e != nil {
			return "mine", [][]any{{e.group == p.gid()}}
		}
		return "mine", nil
	},
	"bolt_owner_fact": func(s *Server, p params) (string, [][]any) {
		if f := s.graph.fact(p.text("uuid")); f != nil {
			return "mine", [][]any{{f.group == p.gid()}}
		}
		return "mine", nil
	},
	"bolt_list_episodes": func(s *Server, p params) (string, [][]any) {
		var rows [][]any
		for _, e := range s.graph.episodes {
			if e.group == p.gid() && e.uuid > p.text("after") {
				rows = append(rows, []any{e.uuid, e.name, anys(e.facts)})
			}
		}
		return "uuid name facts", p.limit(byColumns(rows, 0))
	},
	"bolt_list_entities": func(s *Server, p params) (string, [][]any) {
		return "uuid name summary", p.listed(s.graph.entities)
	},
	"bolt_list_facts": func(s *Server, p params) (string, [][]any) {
		var rows [][]any
		for _, f := range s.factsOf(p, nil) {
			if f.uuid > p.text("after") {
				rows = append(rows, []any{f.uuid, f.text, anys(f.episodes), ms(f.invalidAt), ms(f.expiredAt)})
			}
		}
		return "uuid text episodes invalid_ms expired_ms", p.limit(byColumns(rows, 0))
	},
	"bolt_list_other": func(s *Server, p params) (string, [][]any) {
		return "uuid name summary", p.listed(append(slices.Clone(s.graph.communities), s.graph.sagas...))
	},
	"bolt_delete_episodic": func(s *Server, p params) (string, [][]any) {
		n := len(s.graph.episodes)
		s.graph.episodes = slices.DeleteFunc(s.graph.episodes, func(e *episode) bool { return e.group == p.gid() })
		return "gone", [][]any{{int64(n - len(s.graph.episodes))}}
	},
	"bolt_delete_entity": func(s *Server, p params) (string, [][]any) {
		n := len(s.graph.entities)
		s.graph.entities = slices.DeleteFunc(s.graph.entities, func(e *entity) bool { return e.group == p.gid() })
		s.graph.facts = slices.DeleteFunc(s.graph.facts, func(f *fact) bool {
			return s.graph.entity(f.source) == nil || s.graph.entity(f.target) == nil
		})
		return "gone", [][]any{{int64(n - len(s.graph.entities))}}
	},
	"bolt_delete_community": func(s *Server, p params) (string, [][]any) {
		n := len(s.graph.communities)
		s.graph.communities = slices.DeleteFunc(s.graph.communities, func(e *entity) bool { return e.group == p.gid() })
		return "gone", [][]any{{int64(n - len(s.graph.communities))}}
	},
	"bolt_delete_saga": func(s *Server, p params) (string, [][]any) {
		n := len(s.graph.sagas)
		s.graph.sagas = slices.DeleteFunc(s.graph.sagas, func(e *entity) bool { return e.group == p.gid() })
		return "gone", [][]any{{int64(n - len(s.graph.sagas))}}
	},
	"bolt_forget_look": func(s *Server, p params) (string, [][]any) {
		var rows [][]any
		for _, e := range s.graph.episodes {
			if e.group == p.gid() && e.uuid > p.text("after") && (p["all"] == true ||
				slices.Contains(p.texts("events"), e.name) || slices.Contains(p.texts("uuids"), e.uuid)) {
				rows = append(rows, []any{e.uuid, e.name, e.about, zulu(e.validAt)})
			}
		}
		return "uuid name about at", p.limit(byColumns(rows, 0))
	},
	"bolt_forget_facts": func(s *Server, p params) (string, [][]any) {
		return s.drop(p, "fact", func(uuid string) bool {
			f := s.graph.fact(uuid)
			ours := slices.ContainsFunc(f.episodes, p.forgotten)
			others := slices.ContainsFunc(f.episodes, func(e string) bool {
				return !p.forgotten(e) && s.episodeOf(p, e) != nil
			})
			if !slices.Contains(p.texts("uuids"), uuid) && (!ours || others) {
				return false
			}
			s.graph.forgetIn(f)
			return s.graph.dropFact(uuid)
		})
	},
	"bolt_forget_sources": func(s *Server, p params) (string, [][]any) {
		return s.drop(p, "fact", func(uuid string) bool {
			f := s.graph.fact(uuid)
			n := len(f.episodes)
			f.episodes = slices.DeleteFunc(slices.Clone(f.episodes), p.forgotten)
			return len(f.episodes) < n
		})
	},
	"bolt_forget_entities": func(s *Server, p params) (string, [][]any) {
		return s.drop(p, "entity", func(uuid string) bool {
			if slices.Contains(p.texts("uuids"), uuid) {
				s.graph.facts = slices.DeleteFunc(s.graph.facts, func(f *fact) bool {
					return f.source == uuid || f.target == uuid
				})
			} else if slices.ContainsFunc(s.graph.facts, func(f *fact) bool {
				return f.source == uuid || f.target == uuid
			}) { // here an episode mentions an entity only if there is a fact about it
				return false
			}
			s.graph.entities = slices.DeleteFunc(s.graph.entities, func(n *entity) bool { return n.uuid == uuid })
			return true
		})
	},
	"bolt_forget_left": func(s *Server, p params) (string, [][]any) {
		var n [2]int64
		for i, list := range [][]*entity{s.graph.entities, append(slices.Clone(s.graph.communities),
			s.graph.sagas...)} {
			for _, e := range list {
				if e.group == p.gid() && strings.TrimSpace(e.summary) != "" {
					n[i]++
				}
			}
		}
		return "entities others", [][]any{{n[0], n[1]}}
	},
	"bolt_forget_episodes": func(s *Server, p params) (string, [][]any) {
		return s.drop(p, "episode", func(uuid string) bool { return p.forgotten(uuid) && s.graph.dropEpisode(uuid) })
	},
	"bolt_remaining": func(s *Server, p params) (string, [][]any) {
		n := int64(0)
		for _, e := range s.graph.episodes {
			if e.group == p.gid() {
				n++
			}
		}
		for _, list := range [][]*entity{s.graph.entities, s.graph.sagas, s.graph.communities} {
			for _, e := range list {
				if e.group == p.gid() {
					n++
				}
			}
		}
		return "remaining", [][]any{{n}}
	},
}
