package main

import (
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/frames"
)

func TestFramesOfConversations(t *testing.T) {
	h := newHost(t, "")
	frames.Check(t, h, scope, func(e *abi.MemoryEvent) { record(t, h, e) },
		func(string) *abi.RetrieveResult { return find(t, h, retrieveRequest(tokens(2000))) })
}
