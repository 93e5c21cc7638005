// Package model calls a language model at an OpenAI-compatible endpoint, and records the cost and the failures.
package model
