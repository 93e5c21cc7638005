package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/sdk"
)

// nativeMutation changes the graph by hand: delete_fact {uuid}, delete_episode {uuid}, on MCP and core add_triplet
// {source, relation, fact, target}, on core more (core_read.go).
//
// Deleting a fact does not reopen the facts that it had closed. On REST the facts of a deleted episode remain; on MCP
// and core those that it was the first to assert are deleted with it, even if other episodes assert them too.
//
// Errors: not_found for a UUID that is not the scope's; unsupported on REST and MCP without Bolt.
func nativeMutation(c *sdk.Call, r *abi.NativeMutation) (*abi.MutationReceipt, error) {
	v, err := openCall(c)
	if err != nil {
		return nil, err
	}
	return v.surface.mutate(v, r)
}

func noMutation(name, hint string) error {
	return abi.NewError(abi.CodeInvalidArgument, "name: no native mutation "+wirejson.Quote(cutText(name, 80))).
		WithHint(hint)
}

// uuidParam returns params.uuid.
func uuidParam(r *abi.NativeMutation) (string, error) {
	uuid, _ := stringOf(r.Params["uuid"])
	if !isUUID(uuid) {
		return "", abi.NewError(abi.CodeInvalidArgument, "params.uuid: want a UUID in lower case")
	}
	return uuid, nil
}

// tripletUndated is the warning about a fact that was added without a time.
const tripletUndated = "triplet_undated: the fact has no source episode, and its date is the LLM's guess"

// tripletParams are source, relation, fact and target of a triplet, as JSON. Names are cut like a speaker's label.
func tripletParams(r *abi.NativeMutation) (said [4]abi.Raw, err error) {
	for i, name := range [...]string{"source", "relation", "fact", "target"} {
		text, _ := stringOf(r.Params[name])
		if text == "" {
			return said, abi.NewError(abi.CodeInvalidArgument, "params."+name+": want a text")
		}
		if name != "fact" {
			text = cutText(text, 2*labelMax)
		}
		said[i] = sdk.Text(text)
	}
	return said, nil
}
