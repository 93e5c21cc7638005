package main

import (
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/frames"
)

func TestFramesOfConversations(t *testing.T) {
	h, _ := withModel(t, "")
	frames.Check(t, h, scope, func(e *abi.MemoryEvent) {
		record(t, h, e)
		wait(t, h)
	}, func(string) *abi.RetrieveResult { return mustRetrieve(t, h, "new") })
}
