package graphiti

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options describe the servers. The zero value works off every job at the next request.
type Options struct {
	// Now is the clock; time.Now by default.
	Now func() time.Time
	// Delay is how long one episode takes to process.
	Delay time.Duration
	// Head is the tree after 0.29.3: facts of the REST service have node ids and episodes.
	Head bool
	// Store is what get_status names; neo4j by default.
	Store string
	// Core describes the gateway.
	Core Core
}

// Core is the configuration of the gateway over the library.
type Core struct {
	// Token is the bearer token that requests must have. Empty: none is needed.
	Token string
	// EntityTypes and EdgeTypes are names of types that requests may use.
	EntityTypes, EdgeTypes []string
	// NoQueue and NoReranker take those away.
	NoQueue, NoReranker bool
	// BulkMost is the most episodes of a bulk; 500 by default.
	BulkMost int
}

// Server is both servers and their database. It is safe for concurrent use.
type Server struct {
	options Options

	mu    sync.Mutex
	graph graph
	// rest is the REST service's one queue, mcp the MCP server's queues by group.
	rest queue
	mcp  map[string]*queue
	// core is the gateway's journal: jobs by group, in the order of their arrival.
	core map[string][]*coreJob
	// sessions of the MCP server.
	sessions map[string]bool
	// limit is the module-global search recipe's: the last max_facts that anybody asked for. Ingestion looks for
	// candidates with it.
	limit int
	ids   int

	failing  int
	held     bool
	down     bool
	provider bool
	reranker bool
	opened   int
}

// job is an episode to be.
type job struct {
	name, group, source, about, content, uuid string
	at                                        time.Time
	naive                                     bool
	due                                       time.Time
}

// queue is processed in order. A dead one still accepts jobs.
type queue struct {
	jobs []job
	dead bool
}

// New makes servers with an empty graph.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Store == "" {
		o.Store = "neo4j"
	}
	if o.Core.BulkMost == 0 {
		o.Core.BulkMost = 500
	}
	return &Server{options: o, mcp: map[string]*queue{}, core: map[string][]*coreJob{}, sessions: map[string]bool{},
		limit: 10}
}

// FailExtraction lets the language model fail for the next n jobs, lastingly: on REST the first one ends the worker, on
// MCP each is dropped.
func (s *Server) FailExtraction(n int) { s.set(func() { s.failing = n }) }

// Hold stops the workers, as a slow language model does, until it is called with false.
func (s *Server) Hold(held bool) { s.set(func() { s.held = held }) }

// DatabaseDown takes Neo4j away from both servers, or gives it back.
func (s *Server) DatabaseDown(down bool) { s.set(func() { s.down = down }) }

// ProviderDown takes the embedding provider away: searches fail.
func (s *Server) ProviderDown(down bool) { s.set(func() { s.provider = down }) }

// RerankerDown takes the gateway's cross encoder away: searches that need it fail.
func (s *Server) RerankerDown(down bool) { s.set(func() { s.reranker = down }) }

// LoseGraph empties the database, as one that was restarted without its volume is. The servers do not notice.
func (s *Server) LoseGraph() { s.set(func() { s.graph = graph{} }) }

// Restart restarts the servers: queues and sessions are gone, the graph is not, nor is the gateway's journal.
func (s *Server) Restart() {
	s.set(func() { s.rest, s.mcp, s.sessions = queue{}, map[string]*queue{}, map[string]bool{} })
}

// Sessions counts the MCP sessions that were ever opened.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// Queued counts the jobs that wait.
func (s *Server) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.rest.jobs)
	for _, q := range s.mcp {
		n += len(q.jobs)
	}
	for group := range s.core {
		n += s.coreCounts(group)["queued"]
	}
	return n
}

// Groups counts the nodes of every group.
func (s *Server) Groups() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := map[string]int{}
	for _, e := range s.graph.episodes {
		n[e.group]++
	}
	for _, e := range s.graph.entities {
		n[e.group]++
	}
	for _, list := range [][]*entity{s.graph.sagas, s.graph.communities} {
		for _, e := range list {
			n[e.group]++
		}
	}
	return n
}

// AddSaga puts a Saga node into a group, as an earlier user of the library may have.
func (s *Server) AddSaga(group, name string) {
	s.set(func() { s.graph.sagas = append(s.graph.sagas, &entity{uuid: s.uuid(), group: group, name: name}) })
}

func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work()
	change()
}

// uuid makes ids that look random and recur in every run.
func (s *Server) uuid() string {
	s.ids++
	sum := sha256.Sum256([]byte(strconv.Itoa(s.ids)))
	h := hex.EncodeToString(sum[:16])
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
}

// groupID is graphiti_core helpers.py: validate_group_id. Its $ lets a line end pass.
var groupID = regexp.MustCompile(`^[a-zA-Z0-9_-]*\n?$`)

func validGroup(group string) bool { return groupID.MatchString(group) }

// work works off what is due.
func (s *Server) work() {
	if s.held {
		return
	}
	now := s.options.Now()
	for len(s.rest.jobs) > 0 && !s.rest.dead && !s.rest.jobs[0].due.After(now) {
		j := s.rest.jobs[0]
		s.rest.jobs = s.rest.jobs[1:]
		s.rest.dead = !s.process(j)
	}
	for _, q := range s.mcp {
		for len(q.jobs) > 0 && !q.jobs[0].due.After(now) {
			j := q.jobs[0]
			q.jobs = q.jobs[1:]
			s.process(j) // a job that fails is dropped
		}
	}
	s.workJobs(now)
}

// take puts a job into a queue. It is due after those before it.
func (s *Server) take(q *queue, j job) {
	begin := s.options.Now()
	if n := len(q.jobs); n > 0 && q.jobs[n-1].due.After(begin) {
		begin = q.jobs[n-1].due
	}
	j.due = begin.Add(s.options.Delay)
	q.jobs = append(q.jobs, j)
}

// process makes an episode of a job, with its facts, in one transaction. False: the job failed and left nothing.
func (s *Server) process(j job) bool {
	if !validGroup(j.group) || s.down {
		return false
	}
	if s.failing > 0 {
		s.failing--
		return false
	}
	var known *episode
	if j.uuid != "" {
		if known = s.graph.episode(j.uuid); known == nil {
			return false // "node not found": a supplied uuid is looked up, never created
		}
		j.content = known.content // it is that episode that is processed again
	}
	begun := j.due.Add(-s.options.Delay)
	if known == nil {
		known = &episode{uuid: s.uuid(), name: j.name, group: j.group, source: j.source, about: j.about,
			content: j.content, createdAt: begun, validAt: j.at, naive: j.naive}
		s.graph.episodes = append(s.graph.episodes, known)
	}
	for _, x := range extract(j.content, j.source, j.at) {
		s.addFact(known, j.group, x)
	}
	return true
}

// addFact resolves one extracted fact against the graph: the same fact gets another source, a contradicted one is
// closed.
func (s *Server) addFact(e *episode, group string, x extraction) *fact {
	subject, object := s.node(group, x.subject), s.node(group, x.object)
	for _, known := range s.graph.facts {
		if known.group == group && known.text == x.text {
			known.episodes = append(known.episodes, e.uuid)
			e.facts = append(e.facts, known.uuid)
			return known
		}
	}
	f := &fact{uuid: s.uuid(), group: group, relation: x.relation, text: x.text, source: subject.uuid,
		target: object.uuid, validAt: x.validAt,
		createdAt: s.options.Now(), referenceTime: e.validAt, episodes: []string{e.uuid}}
	if x.changes {
		for _, old := range s.candidates(group, x) {
			if old.source == f.source && slot(old.text) != "" && slot(old.text) == slot(f.text) {
				s.contradict(e, old, f)
			}
		}
	}
	s.graph.facts = append(s.graph.facts, f)
	e.facts = append(e.facts, f.uuid)
	for _, n := range []*entity{subject, object} {
		n.summary = strings.TrimPrefix(n.summary+"\n"+f.text, "\n")
	}
	return f
}

// candidates are the facts that ingestion compares a new one with: those that a search finds, as many as the last
// search of anybody asked for.
func (s *Server) candidates(group string, x extraction) []*fact {
	return s.graph.search(group, x.text, s.limit)
}

// contradict closes the older of two facts at the time of the newer one, if both are dated (edge_operations.py:
// resolve_edge_contradictions).
func (s *Server) contradict(e *episode, old, f *fact) {
	now := s.options.Now()
	switch {
	case old.validAt.IsZero() || f.validAt.IsZero() || !old.invalidAt.IsZero() && !old.invalidAt.After(f.validAt):
	case old.validAt.Before(f.validAt):
		old.invalidAt, old.expiredAt = f.validAt, now
		e.facts = append(e.facts, old.uuid)
	case f.validAt.Before(old.validAt) && (f.invalidAt.IsZero() || old.validAt.Before(f.invalidAt)):
		f.invalidAt, f.expiredAt = old.validAt, now
	}
}

// node finds a group's entity by name, or makes it.
func (s *Server) node(group, name string) *entity {
	for _, n := range s.graph.entities {
		if n.group == group && strings.EqualFold(n.name, name) {
			return n
		}
	}
	n := &entity{uuid: s.uuid(), group: group, name: name, createdAt: s.options.Now()}
	s.graph.entities = append(s.graph.entities, n)
	return n
}
