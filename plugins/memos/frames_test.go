package main

import (
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/memos"
	"github.com/memhost/memhost/internal/test/frames"
)

func TestFramesOfConversations(t *testing.T) {
	b := newBench(t, "", memos.Options{})
	frames.Check(t, b.Host, scope, func(e *abi.MemoryEvent) { b.must(e) },
		func(query string) *abi.RetrieveResult {
			return b.find(&abi.RetrieveRequest{Query: query, Scope: scope, SessionID: "new"})
		})
}
