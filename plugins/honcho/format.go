package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// The sections of a context, each with a share of the budget. An empty section's share goes to the others.
const (
	sectionSummary  = iota // of this session
	sectionFound           // results of supplements and a search
	sectionMessages        // of this session
	sectionPeople          // card and representation of the first person, or the answer of Honcho's model; then those of others
)

var sectionShares = []int64{sectionSummary: 1, sectionFound: 3, sectionMessages: 1, sectionPeople: 3}

// sectionOf returns the section of items with a heading. people are those seen so far; a new one is added.
func sectionOf(heading string, people *[]string) int {
	switch heading {
	case overSummary:
		return sectionSummary
	case overPast, overConclusions, overSearch:
		return sectionFound
	case overMessages:
		return sectionMessages
	}
	about := strings.TrimPrefix(strings.TrimPrefix(heading, overCard), overRepresentation)
	about, _, _ = strings.Cut(about, representationTimes)
	at := slices.Index(*people, about)
	if at < 0 {
		at, *people = len(*people), append(*people, about)
	}
	return sectionPeople + at
}

// shares returns the weights of the sections: the people share that of sectionPeople equally.
func shares(people int) []int64 {
	people = max(people, 1)
	weights := make([]int64, sectionPeople+people)
	for i := range weights {
		if weights[i] = sectionShares[min(i, sectionPeople)]; i < sectionPeople {
			weights[i] *= int64(people)
		}
	}
	return weights
}

// format fits items into a budget, each section within its share. The session's messages, which are the last items and
// the newest of them first, are shown in order of time.
func (b *backend) format(items *results, budget abi.ContextBudget) sdk.Fitted {
	ids, blocks, sections := make([]string, len(items.lines)), make([]sdk.Block, len(items.lines)),
		make([]int, len(items.lines))
	var people []string
	for i := range items.evidence {
		ids[i] = items.evidence[i].NativeID
	}
	for i, id := range sdk.ShortIDs(ids) {
		blocks[i] = items.lines[i].block(&items.evidence[i], id)
		blocks[i].Item, sections[i] = i, sectionOf(items.lines[i].heading, &people)
		if b.config.Frame == abi.FrameCompact {
			blocks[i].Heading = strings.Replace(blocks[i].Heading, representationTimes, "", 1)
		}
	}
	context := sdk.ContextOf(b.config, b.Scope)
	context.UTC = slices.ContainsFunc(blocks, func(x sdk.Block) bool { // in the representation's own text
		return strings.HasPrefix(x.Heading, overRepresentation)
	})
	context.Arrange = func(kept []sdk.Block) []sdk.Block {
		messages := slices.IndexFunc(kept, func(x sdk.Block) bool { return x.Heading == overMessages })
		if messages >= 0 {
			slices.Reverse(kept[messages:])
		}
		return kept
	}
	return context.FitShares(b.Call, blocks, sections, shares(len(people)), budget)
}

// block returns one item for the prompt. Items of a representation have their time in their own text.
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
