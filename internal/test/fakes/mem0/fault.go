package mem0

import "net/http"

// Faults make a server fail as the real one was seen to. The zero value: it does not. Change them by Server.Set.
type Faults struct {
	// LLM is a code of a 502 with which an extracting add fails before anything is stored: provider_unavailable and so
	// on.
	LLM string
	// LLMAnswer replaces what the LLM says: not_json, string_items, empty_text; or fenced:TEXT, one fact in a code
	// fence.
	LLMAnswer string
	// Embedder is a code with which each first embedding of a request fails.
	Embedder string
	// EmbedderAfterExtraction fails between extraction and storage: mem0 swallows it and answers 200 with nothing.
	EmbedderAfterExtraction bool
	// Ghosts are answered as stored and are not: facts that it holds for true, "*" for all. Library 2.2.1 and later
	// have none.
	Ghosts func(fact string) bool
	// Database is down: "dead" while a dead connection is pooled, "empty" when the pool is.
	Database string
	// FailMessage makes a verbatim add fail at this message, counted from 1; those before it stay stored.
	FailMessage int
	// AfterStoring fails an add with 502 unknown when all of it is stored.
	AfterStoring bool
	// Doubles stores facts that the scope has already, as adds of one scope that run at once do.
	Doubles bool
	// FirstUseRace: until the first list or search has made the table, a write is 502 unknown.
	FirstUseRace bool
	// Approximate makes a search find nothing although there is something: what a forced hnsw index does to a small
	// scope.
	Approximate bool
	// DeleteAtMost is how many rows one deletion of a scope removes; 0: all.
	DeleteAtMost int
	// DeleteFails makes a deletion answer 502 unknown although it was done, as one of two parallel ones does.
	DeleteFails bool
	// IgnoreLabels drops filters on metadata, as the store Weaviate does.
	IgnoreLabels bool
	// Leak adds rows of other scopes to searches and lists.
	Leak bool
	// Before is called with each request before it is handled: to hold it, or to answer in the server's place (true).
	Before func(w http.ResponseWriter, r *http.Request) (answered bool)
	// After is called when an add has been stored and is not yet answered.
	After func()
}
