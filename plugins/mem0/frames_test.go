package main

import (
	"testing"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/test/fakes/mem0"
	"github.com/memhost/memhost/internal/test/frames"
)

func TestFramesOfConversations(t *testing.T) {
	for _, provider := range []string{"mem0", "simple_rag"} {
		t.Run(provider, func(t *testing.T) {
			r, _ := ossRig(t, provider, "", mem0.Options{})
			frames.Check(t, r.Host, maria, func(e *abi.MemoryEvent) { r.mustRecord(e) },
				func(query string) *abi.RetrieveResult { return r.mustRetrieve(&abi.RetrieveRequest{Query: query}) })
		})
	}
}
