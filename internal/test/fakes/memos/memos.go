// Package memos is a fake MemOS: an http.Handler with the /product routes that memhost uses, in the flavours of its two
// Neo4j graph stores, and with their faults.
//
// It is checked against exchanges recorded from MemoryOS 2.0.33 (replay_test.go). Memories are extracted by rules and
// ranked by hashed bags of words: it says nothing about the quality of the real one.
package memos

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Flavour is the server's graph store.
type Flavour int

const (
	// Neo4j keeps vectors in the graph: filters restrict before ranking, sources come back as JSON text within JSON
	// text, and a batch with a tool trajectory, a skill or a nested label is lost silently.
	Neo4j Flavour = iota
	// Community keeps vectors in Qdrant: filters apply after the vector search, sources are objects, every type is
	// stored.
	Community
)

// Options describe a server. The zero value is a shared neo4j one with Redis whose background work is done at once.
type Options struct {
	Flavour Flavour
	// Unshared is neo4j without MOS_NEO4J_SHARED_DB: every cube sees every other.
	Unshared bool
	// NoRedis leaves out task status.
	NoRedis bool
	// TaskDelay is how long background work takes.
	TaskDelay time.Duration
	// QueueCap is how many tasks of a cube may wait; the oldest beyond it is dropped in silence. 0 means 200.
	QueueCap int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Faults are what does not work. They hold from the moment they are set.
type Faults struct {
	// DatabaseDown: lists answer 500, writes and searches 200 as if nothing were wrong.
	DatabaseDown bool
	// RedisDown: task status answers 500, and background work requested during the outage is lost.
	RedisDown bool
	// With LLMDown raw text is kept. LLMProse makes the model answer in prose, of which nothing is stored.
	LLMDown, LLMProse bool
	// EmbedderDown stores memories that no search finds, and empties every search.
	EmbedderDown bool
	// RerankerDown makes every relativity 0.
	RerankerDown bool
	// ListRaces is how many lists from now on meet a node that the scheduler is deleting: Neo4j returns it without
	// properties, and MemOS answers 500 with the KeyError of neo4j.py, _parse_node.
	ListRaces int
	// FiltersDropped ignores every filter in silence, as graph store postgres does in search.
	FiltersDropped bool
}

// Request is one that reached the server.
type Request struct {
	Method, Path, Query string
	Body                []byte
}

// Server is the fake. It is safe for concurrent use; requests run one at a time.
type Server struct {
	options Options

	mu       sync.Mutex
	faults   Faults
	nodes    []*node
	tasks    []*task
	history  map[string][]map[string]any
	sequence int
	seen     []Request
	// before, if set, may answer a request itself.
	before func(http.ResponseWriter, *http.Request, []byte) bool
}

// New makes an empty server.
func New(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.QueueCap == 0 {
		o.QueueCap = 200
	}
	return &Server{options: o, history: map[string][]map[string]any{}}
}

// Break sets what does not work from now on.
func (s *Server) Break(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work()
	s.faults = f
}

// LoseData empties the server, as a restart without its volumes does.
func (s *Server) LoseData() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes, s.tasks = nil, nil
}

// Intercept gives answer every request first; when it returns true it has answered. Nil ends it.
func (s *Server) Intercept(answer func(w http.ResponseWriter, r *http.Request, body []byte) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = answer
}

// Requests are those seen since the last call.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// Texts are the memories of a cube, archived and soft-deleted ones too, as "type: text", oldest first.
func (s *Server) Texts(cube string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.work()
	var texts []string
	for _, n := range s.nodes {
		if n.cube == cube {
			texts = append(texts, n.kind+": "+n.memory)
		}
	}
	return texts
}

// Cubes are the ids under which something is stored.
func (s *Server) Cubes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var cubes []string
	known := map[string]bool{}
	for _, n := range s.nodes {
		if !known[n.cube] {
			known[n.cube] = true
			cubes = append(cubes, n.cube)
		}
	}
	return cubes
}

// newID is a uuid by count, so that a test's ids are the same in every run.
func (s *Server) newID() string {
	s.sequence++
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", s.sequence, s.sequence)
}

// stamp is the server's clock as Neo4j gives it back: nanoseconds, taken for UTC.
func (s *Server) stamp() string {
	return s.options.Now().UTC().Format("2006-01-02T15:04:05.000000000") + "+00:00"
}

// defaultBucket is the cube that an empty id refers to.
const defaultBucket = "memosdefault"

func bucket(cube string) string {
	if cube == "" {
		return defaultBucket
	}
	return cube
}

// node is one node of the graph.
type node struct {
	id, cube, memory, kind string
	userID, sessionID      string
	status                 string
	tags                   []string
	fast                   bool
	sources                []map[string]any
	// nested counts how often a source is wrapped once more.
	nested               int
	created, updated     string
	covered              string
	deleteRecord, delete string
	vector               []float32
	// labels are info, project_id, manager_user_id and a type's own fields.
	labels map[string]any
}

func (s *Server) visible(n *node, cube string) bool {
	return n.cube == cube || s.options.Unshared
}

// groupOf is the group in which a type is listed.
func groupOf(kind string) string {
	switch kind {
	case "PreferenceMemory":
		return "pref_mem"
	case "ToolTrajectoryMemory", "ToolSchemaMemory":
		return "tool_mem"
	case "SkillMemory":
		return "skill_mem"
	}
	return "text_mem"
}

// driverError is what the graph driver says when no database listens.
const driverError = "Couldn't connect to 127.0.0.1:7687 (resolved to ('127.0.0.1:7687',)):\nFailed to establish " +
	"connection to ResolvedIPv4Address(('127.0.0.1', 7687)) (reason [Errno 111] Connection refused)"

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
