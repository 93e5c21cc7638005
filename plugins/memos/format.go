package main

import (
	"strconv"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// fit puts the items under their groups' own names and keeps as many as the budget allows, each group within
// its share:
//
//	## text_mem
//	- [LongTermMemory | said 2026-05-01T10:00:00Z | score 0.71 | id 6b0c4a1e] The user moved to Lyon.
//	## pref_mem
//	- [PreferenceMemory | ...] ...
//
// and in the frames compact and minimal: m1 2026-05-01 The user moved to Lyon.
func (s *settings) fit(c *sdk.Call, items []*item, budget abi.ContextBudget) sdk.Fitted {
	ids, blocks := make([]string, len(items)), make([]sdk.Block, len(items))
	for i, m := range items {
		ids[i] = m.id
	}
	for i, id := range sdk.ShortIDs(ids) {
		blocks[i] = s.block(items[i], id)
		blocks[i].Item, blocks[i].Heading = i, "## "+items[i].group
	}
	groups, weights := s.limits.shares(items)
	return sdk.ContextOf(s.config, c.Scope).FitShares(c, blocks, groups, weights, budget)
}

// block returns one memory for the prompt. Times are said, when the user said it, or else ingested, when MemOS ingested
// it.
func (s *settings) block(m *item, id string) sdk.Block {
	var facts []string
	if m.kind != "" {
		facts = append(facts, m.kind)
	}
	if m.raw() {
		facts = append(facts, "raw")
	}
	at := m.saidAt()
	if at != "" {
		facts = append(facts, "said "+sdk.UTC(at))
	} else if at = m.createdAt; at != "" {
		facts = append(facts, "ingested "+sdk.UTC(at))
	}
	if m.relativity != nil && *m.relativity != 0 && s.rerank {
		facts = append(facts, "score "+strconv.FormatFloat(*m.relativity, 'f', 2, 64))
	}
	if id != "" {
		facts = append(facts, "id "+id)
	}
	return sdk.Block{Before: "- [" + sdk.OneLine(strings.Join(facts, " | ")) + "] ", Text: sdk.Indent(m.memory),
		When: sdk.Day(at)}
}

// formatContext formats the items of an earlier result's evidence.
//
// Errors: invalid_argument when the result is not one of retrieve.
func formatContext(b *backend, r *abi.FormatRequest) (*abi.FormatResult, error) {
	inEvidence := map[string]bool{}
	for i := range r.Result.Evidence {
		inEvidence[r.Result.Evidence[i].Pointer] = true
	}
	var items []*item
	for i, call := range r.Result.Raw.Calls {
		if !strings.HasPrefix(call.Route, "search_") {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+call.Route+" is not a call of "+
				"retrieve")
		}
		var r groupReader
		a, ok := openAnswer(call.Body, r.fields())
		if !ok {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: the body is not an answer of MemOS")
		}
		groups, err := r.groups(call.Route, a, "")
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+abi.AsError(err).Message)
		}
		for _, m := range distinctItems(groups) {
			if inEvidence["/calls/"+sdk.Itoa(i)+"/body"+m.pointer] {
				items = append(items, m)
			}
		}
	}
	return b.fit(b.Call, items, b.formatBudget(r.Budget)).Result(r.Result.Evidence), nil
}
