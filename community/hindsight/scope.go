package main

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// backendName is what formatted_context and traces call the backend.
const backendName = "hindsight"

// idRules are for ids of banks and documents. They fit one segment of a path, and none begins with "_", which Hindsight
// reserves: a long id becomes a digest that begins with Escape.
var idRules = sdk.IDRules{Plain: sdk.AlphaNumeric, Escape: '-', Separator: '_', Max: 200}

// bankOf is the bank of the call's scope and its generation. Different scopes never share one, and neither do two
// generations, two providers on one server, or two namespaces.
func bankOf(c *sdk.Call) (string, error) {
	config, err := c.Config()
	if err != nil {
		return "", err
	}
	return sdk.NativeID(idRules, config.Provider, config.Namespace, c.Scope.RunID, c.Scope.PersonaID, c.Scope.AgentID,
		string(sdk.Number(c.Generation))), nil
}

// documentOf is the id of an event's document in its bank.
func documentOf(eventID string) string { return sdk.NativeID(idRules, eventID) }

// operationOf is the id of the operation that retains an event: a UUID that the plugin chooses, so that a repeated
// request is answered with the same operation. Operations of all banks share their ids, so the bank is part of it.
func operationOf(bank, eventID string) string {
	h := sdk.Digest256(bank + "\n" + eventID)
	return h[:8] + "-" + h[8:12] + "-8" + h[13:16] + "-a" + h[17:20] + "-" + h[20:32]
}

// setupScope makes the bank. It runs before the first write, and may run again; in read-only mode it only says which
// bank it would be. Hindsight does not say whether it was there.
func setupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	bank, err := bankOf(c)
	if err != nil {
		return nil, err
	}
	receipt := &abi.SetupReceipt{Ready: true, NativeScope: map[string]string{"bank": bank}}
	if c.ReadOnly {
		return receipt, nil
	}
	_, err = ask(c, request{route: "bank", body: []byte("{}")})
	return receipt, err
}
