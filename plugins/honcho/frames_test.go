package main

import (
	"testing"
	"time"

	"github.com/memhost/memhost/abi"
	fake "github.com/memhost/memhost/internal/test/fakes/honcho"
	"github.com/memhost/memhost/internal/test/frames"
)

func TestFramesOfConversations(t *testing.T) {
	b := newBench(t, fake.Mood{}, "")
	frames.Check(t, b.Host, scope, func(e *abi.MemoryEvent) { b.mustRecord(t, e) },
		func(query string) *abi.RetrieveResult {
			b.pass(time.Hour) // it derives
			return b.mustAsk(t, query)
		})
}
