package main

import (
	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// How the newest run of a dataset's pipeline is.
const (
	runStarted = "DATASET_PROCESSING_STARTED"
	runErrored = "DATASET_PROCESSING_ERRORED"
)

// statusOf is the status of the dataset's newest run; "" if there was none. Cognee records a run before it answers the
// request for it.
func statusOf(c *sdk.Call, dataset string) (status string, err error) {
	answer, err := ask(c, request{route: "status", query: []abi.QueryParam{{Key: "dataset", Value: dataset}}})
	if err != nil {
		return "", err
	}
	err = wirejson.DecodeBytes(answer).Obj(func(d *wirejson.Decoder, key string) error {
		if key != dataset {
			return d.Skip()
		}
		return sdk.ReadText(d, &status)
	})
	if err != nil {
		return "", unusable("status", answer)
	}
	return status, nil
}

// completeDocuments returns, for each document of the dataset by name, whether its graph is complete.
func completeDocuments(c *sdk.Call, dataset string) (map[string]bool, error) {
	answer, err := ask(c, request{route: "processed", dataset: dataset})
	if err != nil {
		return nil, err
	}
	var completed map[string]bool
	err = wirejson.DecodeBytes(answer).Obj(func(d *wirejson.Decoder, key string) error {
		if key != "items" {
			return d.Skip()
		}
		completed = map[string]bool{}
		return d.Arr(func(d *wirejson.Decoder) error {
			name, done := "", false
			err := d.Obj(func(d *wirejson.Decoder, key string) (err error) {
				switch key {
				case "name":
					return sdk.ReadText(d, &name)
				case "completed":
					done, err = d.Bool()
					return err
				}
				return d.Skip()
			})
			completed[name] = done
			return err
		})
	})
	if err != nil || completed == nil {
		return nil, unusable("processed", answer)
	}
	return completed, nil
}
