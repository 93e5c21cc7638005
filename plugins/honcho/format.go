package main

import (
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// The kinds of sections. Sections of a kind share the kind's part of the budget equally; the part of a kind without any
// goes to the others.
const (
	kindSummary  = iota // of this session
	kindFound           // the results of a supplement or a search
	kindMessages        // of this session
	kindPerson          // card and representation of a person, or the answer of Honcho's model
)

var kindShares = []int64{kindSummary: 1, kindFound: 3, kindMessages: 1, kindPerson: 3}

// section of a context: items under one heading, or about one person.
type section struct {
	kind int
	name string
}

// sectionOf returns the section of items with a heading.
func sectionOf(heading string) section {
	switch heading {
	case headSummary:
		return section{kindSummary, heading}
	case headPast, headConclusions, headSearch:
		return section{kindFound, heading}
	case headMessages:
		return section{kindMessages, heading}
	}
	about := strings.TrimPrefix(strings.TrimPrefix(heading, headCard), headRepresentation)
	about, _, _ = strings.Cut(about, representationTimes)
	return section{kindPerson, about}
}

// shares returns the weights of sections.
func shares(sections []section) []int64 {
	counts, all := make([]int64, len(kindShares)), int64(1)
	for _, s := range sections {
		counts[s.kind]++
	}
	for _, n := range counts {
		all *= max(1, n)
	}
	weights := make([]int64, len(sections))
	for i, s := range sections {
		weights[i] = kindShares[s.kind] * all / counts[s.kind]
	}
	return weights
}

// format fits items into a budget, each section within its share. The session's messages, which are the last items and
// the newest of them first, are shown in order of time.
func (b *backend) format(items *results, budget abi.ContextBudget) sdk.Fitted {
	ids, blocks, at := make([]string, len(items.lines)), make([]sdk.Block, len(items.lines)), make([]int, len(items.lines))
	var sections []section
	for i := range items.evidence {
		ids[i] = items.evidence[i].NativeID
	}
	for i, id := range sdk.ShortIDs(ids) {
		blocks[i] = items.lines[i].block(&items.evidence[i], id)
		blocks[i].Item = i
		s := sectionOf(items.lines[i].heading)
		if at[i] = slices.Index(sections, s); at[i] < 0 {
			at[i], sections = len(sections), append(sections, s)
		}
		if b.config.Frame == abi.FrameCompact {
			blocks[i].Heading = strings.Replace(blocks[i].Heading, representationTimes, "", 1)
		}
	}
	context := sdk.ContextOf(b.config, b.Scope)
	context.UTC = slices.ContainsFunc(blocks, func(x sdk.Block) bool { // in the representation's own text
		return strings.HasPrefix(x.Heading, headRepresentation)
	})
	context.Arrange = func(kept []sdk.Block) []sdk.Block {
		messages := slices.IndexFunc(kept, func(x sdk.Block) bool { return x.Heading == headMessages })
		if messages >= 0 {
			slices.Reverse(kept[messages:])
		}
		return kept
	}
	return context.FitShares(b.Call, blocks, at, shares(sections), budget)
}

// block returns one item for the prompt. Items of a representation have their time in their own text.
func (l *line) block(e *abi.Evidence, id string) sdk.Block {
	x := sdk.Block{Heading: l.heading, Text: sdk.Indent(e.Text)}
	if e.Span != nil || l.heading == headChat {
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
