// Package graphiti is a fake of Graphiti's servers: the REST service, the MCP server, the gateway over the library and
// the Neo4j behind them, over one temporal graph in memory.
//
// It holds to what release 0.29.3 of graphiti-core did on Neo4j 5.26.2; testdata has exchanges recorded from it, and a
// test replays them. Extraction is by rules instead of a language model: every sentence of a user becomes a fact, and
// one that contradicts an earlier fact of the same subject closes it. Texts are ranked by the words that they share
// with a query.
//
// Nothing runs in the background. A queued job is due some time after it was taken, and every request first works off
// what is due by the clock.
package graphiti
