package main

import (
	"cmp"
	"slices"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/plugins/conditions/internal/object"
	"github.com/memhost/memhost/sdk"
)

// route is the name in raw.calls of the slot's own state.
const route = "state"

// format fits the best messages into the budget, and shows them best first or oldest first.
func (s *settings) format(c *sdk.Call, found []*scoredMessage, budget abi.ContextBudget) sdk.Fitted {
	context, blocks := sdk.ContextOf(s.config, c.Scope), make([]sdk.Block, len(found))
	for i, m := range found {
		blocks[i] = s.block(&m.message)
		blocks[i].Item = i
	}
	if s.byTime {
		context.Arrange = func(kept []sdk.Block) []sdk.Block {
			slices.SortStableFunc(kept, func(a, b sdk.Block) int {
				n := found[a.Item].at.Compare(found[b.Item].at)
				if n == 0 && s.recall { // messages of one turn keep their order
					n = cmp.Compare(found[a.Item].number, found[b.Item].number)
				}
				return n
			})
			return kept
		}
	}
	return context.FitFirst(c, blocks, budget)
}

// formatContext formats the messages of an earlier result.
//
// Errors: invalid_argument when the result is not one of retrieve.
func formatContext(c *sdk.Call, r *abi.FormatRequest) (*abi.FormatResult, error) {
	s, err := settingsOf(c)
	if err != nil {
		return nil, err
	}
	var found []*scoredMessage
	for i := range r.Result.Raw.Calls {
		call := &r.Result.Raw.Calls[i]
		if call.Route != route {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+call.Route+" is no call of retrieve")
		}
		err := wirejson.DecodeBytes(call.Body).Arr(func(d *wirejson.Decoder) error {
			m := new(scoredMessage)
			err := object.Read(d, nil, m.members()...)
			m.at, m.number = timeOf(m.timestamp), numberOf(m.id)
			found = append(found, m)
			return err
		})
		if err != nil {
			return nil, abi.NewError(abi.CodeInvalidArgument, "result.raw.calls: "+err.Error())
		}
	}
	return s.format(c, found, s.budget(r.Budget)).Result(r.Result.Evidence), nil
}
