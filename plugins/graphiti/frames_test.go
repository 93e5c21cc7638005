package main

import (
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/frames"
)

func TestFramesOfConversations(t *testing.T) {
	r := plug(t, providerSetup{surfaceREST, true}, "")
	frames.Check(t, r.Host, scope, func(e *abi.MemoryEvent) { r.recordAll(e) }, r.ask)
}
