// Package mem0 is mem0 without its LLM, its embedder and its database, for tests: OSS answers as the self-hosted server
// does, Platform as the hosted one.
//
// Both rank by the words that texts share and extract facts by rule: each statement of a user is a fact, questions are
// not. What they answer depends on what was stored. OSS is checked against exchanges recorded from the real server
// (testdata/exchanges.jsonl); Platform is built from mem0's documents alone.
//
// In the order of reading: OSS takes a request (oss.go) and stores, extracts (extract.go), filters (filter.go) and
// ranks (rank.go); Faults make it fail as the real one was seen to (fault.go); Platform does the same behind other
// routes and a queue (platform.go).
package mem0
