package main

import (
	"github.com/memhost/memhost/abi/wirejson"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// statusOf is the status of an operation: pending, processing, completed, failed, cancelled or not_found.
func statusOf(c *sdk.Call, operation string) (status string, err error) {
	answer, err := ask(c, request{route: "operation", operation: operation})
	if err != nil {
		return "", err
	}
	err = fields(answer, map[string]func(*wirejson.Decoder) error{
		"status": func(d *wirejson.Decoder) error { return sdk.ReadText(d, &status) }})
	if err != nil || status == "" {
		return "", unusable("operation", answer)
	}
	return status, nil
}

// isWaiting reports whether an operation with this status may still write.
func isWaiting(status string) bool { return status == "pending" || status == "processing" }

// waiting reports whether an operation of the bank waits or runs. An operation that is retried goes from processing
// back to pending, so pending is checked twice.
func waiting(c *sdk.Call) (bool, error) {
	for _, status := range []string{"pending", "processing", "pending"} {
		answer, err := ask(c, request{route: "operations",
			query: []abi.QueryParam{{Key: "status", Value: status}, {Key: "limit", Value: "1"}}})
		if err != nil || answer == nil {
			return false, err
		}
		total := int64(-1)
		err = fields(answer, map[string]func(*wirejson.Decoder) error{
			"total": func(d *wirejson.Decoder) (err error) { total, err = d.Int64(); return err }})
		switch {
		case err != nil || total < 0:
			return false, unusable("operations", answer)
		case total > 0:
			return true, nil
		}
	}
	return false, nil
}
