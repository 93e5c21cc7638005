// Package model asks a language model at an OpenAI-compatible endpoint, and keeps count of what that costs and of how
// it fails.
package model
