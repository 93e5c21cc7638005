package main

import (
	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// backendName is what formatted_context and traces call the backend.
const backendName = "cognee"

// idRules are for names of datasets and of documents. A document's name is that of a file, which has no dots before its
// ending.
var idRules = sdk.IDRules{Plain: sdk.AlphaNumeric, Escape: '-', Separator: '_', Max: 200}

// datasetName is the name of the dataset of the call's scope and its generation. Different scopes never share one, and
// neither do two generations, two providers on one server, or two namespaces.
func datasetName(c *sdk.Call) (string, error) {
	config, err := c.Config()
	if err != nil {
		return "", err
	}
	return sdk.NativeID(idRules, config.Provider, config.Namespace, c.Scope.RunID, c.Scope.PersonaID, c.Scope.AgentID,
		string(sdk.Number(c.Generation))), nil
}

// documentOf is the name of an event's document in its dataset. Cognee gives it an id of its own.
func documentOf(eventID string) string { return sdk.NativeID(idRules, eventID) }

// datasetKey is the key of the scope's state that holds the id which Cognee gave the dataset.
const datasetKey = "dataset"

// setupScope makes the dataset, or finds the one of that name, and keeps its id. It runs before the first write, and may
// run again; in read-only mode it only says which dataset it would be.
func setupScope(c *sdk.Call, _ *abi.Empty) (*abi.SetupReceipt, error) {
	name, err := datasetName(c)
	if err != nil {
		return nil, err
	}
	receipt := &abi.SetupReceipt{Ready: true, NativeScope: map[string]string{"dataset": name}}
	if c.ReadOnly {
		return receipt, nil
	}
	var j wirejson.Encoder
	j.ObjStart()
	j.FieldStart("name")
	j.Str(name)
	j.ObjEnd()
	answer, err := ask(c, request{route: "dataset_create", json: j.Bytes()})
	if err != nil {
		return nil, err
	}
	one, err := parseDataset(wirejson.DecodeBytes(answer))
	if err != nil || one.id == "" {
		return nil, unusable("dataset_create", answer)
	}
	_, version, err := c.Get(datasetKey)
	if err != nil {
		return nil, err
	}
	return receipt, c.Put(datasetKey, []byte(one.id), version)
}

// datasetOf is the id of the scope's dataset: the one that setupScope kept, else that of the dataset of this name. It
// is "" if there is none.
func datasetOf(c *sdk.Call) (string, error) {
	kept, version, err := c.Get(datasetKey)
	if err != nil || version > 0 {
		return string(kept), err
	}
	return findDataset(c)
}

// findDataset looks for the scope's dataset among the user's.
func findDataset(c *sdk.Call) (id string, err error) {
	name, err := datasetName(c)
	if err != nil {
		return "", err
	}
	answer, err := ask(c, request{route: "datasets"})
	if err != nil {
		return "", err
	}
	err = wirejson.DecodeBytes(answer).Arr(func(d *wirejson.Decoder) error {
		one, err := parseDataset(d)
		if one.name == name {
			id = one.id
		}
		return err
	})
	if err != nil {
		return "", unusable("datasets", answer)
	}
	return id, nil
}

type dataset struct{ id, name string }

func parseDataset(d *wirejson.Decoder) (one dataset, err error) {
	err = d.Obj(func(d *wirejson.Decoder, key string) error {
		switch key {
		case "id":
			return sdk.ReadText(d, &one.id)
		case "name":
			return sdk.ReadText(d, &one.name)
		}
		return d.Skip()
	})
	return one, err
}
