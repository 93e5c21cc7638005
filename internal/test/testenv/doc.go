// Package testenv starts the real memory backends on this machine, from published packages and without Docker: for the
// live tests (`tools/live mem0`) and for trying memhost out (`tools/backend mem0`).
//
// What is started: mem0 (the mem0ai package behind gateways/mem0, on PostgreSQL with pgvector), MemOS (on Neo4j or its
// community flavour, with Redis) and Graphiti (its REST and its MCP server, on Neo4j). Their language model and
// embeddings are package llm, in this process, or an OpenAI-compatible endpoint of the user's own. embedder.go puts a
// real small embedding model behind the stub.
//
// In the order of reading: Env (env.go) owns a temporary folder and the processes (process.go) and ends them;
// install.go and python.go fetch what a backend needs into a cache folder, once; postgres.go, redis.go and neo4j.go
// start the stores; mem0.go, memos.go and graphiti.go the servers; testing.go has the helpers for Go tests.
// README.md says how to run it, how long it takes and how much memory it needs.
//
// It runs on Linux with Python 3 (the stores are Linux packages); what is missing is an error that names it.
package testenv
