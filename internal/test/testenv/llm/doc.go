// Package llm is the project's one stand-in for a language model and an embedding model: an OpenAI-compatible server
// that answers by rules.
//
// It knows the prompts of the backends and conditions that are tested with it (mem0, MemOS, Graphiti, Honcho, Nanobot's
// consolidation, archive, Dream and ledger extraction) and derives each answer from the conversation in the prompt by
// simple language rules: the same prompt always gets the same answer, and a statement that is in the prompt is in the
// answer. It is no model: what the rules do not know is kept as it was said.
//
// In the order of reading: Server takes a request, logs it, applies a fault if one is set (fault.go) and asks the rules
// (rules.go, then one file per backend) or the embedder (embed.go). The language rules are in language.go.
//
//	POST /v1/chat/completions   tools, response_format json_schema and json_object, stream
//	POST /v1/responses          text.format json_schema (Graphiti's REST service)
//	POST /v1/embeddings         float and base64, any dimension
//	POST /v1/rerank             Cohere's shape: by the cosine of the embeddings
//	GET  /v1/models
//	GET, POST, DELETE /admin/faults, GET, DELETE /admin/log, GET /admin/counts
package llm
