// Package chat reads and writes the JSON of OpenAI-compatible chat endpoints, and finds in a model's answer what it was
// asked for. It sends nothing: a plugin asks through its host calls, a program by HTTP.
//
// Most callers need Request.Encode, then ParseAnswer, or Refusal for a status that is no success; then Word, List or
// Object for the answer's text.
package chat
