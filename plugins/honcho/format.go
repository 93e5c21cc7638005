package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// The sections of a context, each with a share of the budget. A section that has nothing leaves its share to the others.
const (
	sectionUser     = iota // representation, card, and the answer of Honcho's model
	sectionSummary         // of this session
	sectionFound           // what supplements and a search brought
	sectionMessages        // of this session
)

var sectionShares = []int64{sectionUser: 3, sectionSummary: 1, sectionFound: 3, sectionMessages: 1}

func sectionOf(heading string) int {
	switch heading {
	case overSummary:
		return sectionSummary
	case overPast, overConclusions, overSearch:
		return sectionFound
	case overMessages:
		return sectionMessages
	}
	return sectionUser
}

// format fits items into a budget, each section within its share. The session's messages, which are the last items and
// the newest of them first, are shown in order of time.
func (b *backend) format(items *found, budget abi.ContextBudget) sdk.Fitted {
	ids, blocks, sections := make([]string, len(items.lines)), make([]sdk.Block, len(items.lines)),
		make([]int, len(items.lines))
	for i := range items.evidence {
		ids[i] = items.evidence[i].NativeID
	}
	for i, id := range sdk.ShortIDs(ids) {
		blocks[i] = items.lines[i].block(&items.evidence[i], id)
		blocks[i].Item, sections[i] = i, sectionOf(items.lines[i].heading)
		if b.config.Frame == abi.FrameCompact {
			blocks[i].Heading = strings.Replace(blocks[i].Heading, representationTimes, "", 1)
		}
	}
	context := sdk.ContextOf(b.config, b.Scope)
	context.UTC = slices.ContainsFunc(blocks, func(x sdk.Block) bool { // in the representation's own words
		return strings.HasPrefix(x.Heading, overRepresentation)
	})
	context.Arrange = func(kept []sdk.Block) []sdk.Block {
		messages := slices.IndexFunc(kept, func(x sdk.Block) bool { return x.Heading == overMessages })
		if messages >= 0 {
			slices.Reverse(kept[messages:])
		}
		return kept
	}
	return context.FitShares(b.Call, blocks, sections, sectionShares, budget)
}

// block is one item in the prompt. What is in a representation has its time in its own words.
func (l *line) block(e *abi.Evidence, id string) sdk.Block {
	x := sdk.Block{Heading: l.heading, Text: sdk.Indent(e.Text)}
	if e.Span != nil || l.heading == overChat {
		return x
	}
	x.Before, x.When = "- ", sdk.Day(e.CreatedAt)
	if known := bracket(sdk.UTC(e.CreatedAt), l.label, id); known != "" {
		x.Before = "[" + known + "] "
	}
	if e.NativeType == "message" {
		x.Who = sdk.OneLine(l.label)
	}
	return x
}

// formatContext formats an earlier result again.
//
// Errors: invalid_argument when the result is not one of retrieve.
func formatContext(b *backend, r *abi.FormatRequest) (*abi.FormatResult, error) {
	items, err := readItems(b, &r.Result.Raw, nil)
	if err != nil {
		return nil, err
	}
	return b.format(items, r.Budget).Result(r.Result.Evidence), nil
}
