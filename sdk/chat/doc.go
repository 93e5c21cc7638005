// Package chat reads and writes the JSON of OpenAI-compatible chat endpoints, and extracts from a model's answer what
// it was asked for. It sends nothing: a plugin sends through its host calls, a program through net/http.
//
// Most callers need Request.Encode, then ParseAnswer, or Refusal if the status is an error, then Word, List or Object
// for the answer's text.
package chat
