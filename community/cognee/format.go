package main

import (
	"strings"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// formatContext fits an earlier result into a budget. On the result's own budget it gives the text that the result has:
// both come from format.
func formatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	dataset, err := datasetOf(c)
	if err != nil {
		return nil, err
	}
	var list []searchHit
	for _, call := range r.Result.Raw.Calls {
		some, err := parseSearch(call.Body, dataset)
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+err.Error())
		}
		list = append(list, some...)
	}
	fitted, err := format(c, list, r.Budget)
	if err != nil {
		return nil, err
	}
	return fitted.Result(r.Result.Evidence), nil
}

// format writes the chunks in Cognee's order, as many as fit. The sdk escapes them: a text cannot close the element
// around it. No chunks give no text.
func format(c *sdk.Call, list []searchHit, budget abi.ContextBudget) (sdk.Fitted, error) {
	config, err := c.Config()
	if err != nil || len(list) == 0 {
		return sdk.Fitted{}, err
	}
	blocks := make([]sdk.Block, len(list))
	for i, f := range list {
		blocks[i] = sdk.Block{Item: i, Before: "- ", Text: sdk.Indent(strings.TrimRight(f.body(), "\n"))}
		if day := sdk.Day(f.time); day != "" {
			blocks[i].Before, blocks[i].When = "- ["+day+"] ", day
		}
	}
	return sdk.ContextOf(config, c.Scope).FitFirst(c, blocks, budget), nil
}
