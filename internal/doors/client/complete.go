package client

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/memhost/memhost/abi"
)

// missing returns the name of a field that every answer of a slot has and this one lacks, "" if it has all. Another
// server may well answer a JSON object, without any of the fields.
func missing(text []byte, answer any) string {
	var given map[string]json.RawMessage
	if json.Unmarshal(text, &given) != nil {
		return ""
	}
	for _, name := range required(reflect.TypeOf(answer).Elem()) {
		if _, ok := given[name]; !ok {
			return name
		}
	}
	return ""
}

// required returns the JSON names of the fields that a type always writes.
func required(t reflect.Type) (names []string) {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" && !slices.Contains(strings.Split(options, ","), "omitempty") {
			names = append(names, name)
		}
	}
	return names
}

// statuses are the statuses of a receipt in the contract.
var statuses = []abi.WriteStatus{abi.StatusCommitted, abi.StatusQueued, abi.StatusPending, abi.StatusPartial,
	abi.StatusUncertain, abi.StatusNotRetained, abi.StatusSkippedReadOnly}

// receiptOf checks that a receipt belongs to this event.
//
// Errors: unavailable with ReasonNotASlot.
func (c *Client) receiptOf(op, eventID string, r *abi.WriteReceipt) error {
	switch {
	case r.EventID != eventID:
		return c.notASlot(op, fmt.Sprintf("answered for event %q, asked for %q", r.EventID, eventID))
	case !slices.Contains(statuses, r.Status):
		return c.notASlot(op, fmt.Sprintf("answered the status %q, which is none of the contract's", r.Status))
	}
	return nil
}

// receiptsOf checks that there is a receipt, or an error, for each event of a batch, in order.
//
// Errors: unavailable with ReasonNotASlot.
func (c *Client) receiptsOf(batch *abi.EventBatch, answer *abi.BatchReceipts) error {
	if len(answer.Receipts) != len(batch.Events) {
		return c.notASlot(abi.OpRecordEvents, fmt.Sprintf("answered %d receipts for %d events", len(answer.Receipts),
			len(batch.Events)))
	}
	for i := range answer.Receipts {
		one, id := &answer.Receipts[i], batch.Events[i].EventID
		switch {
		case one.Receipt != nil:
			if err := c.receiptOf(abi.OpRecordEvents, id, one.Receipt); err != nil {
				return err
			}
		case one.Error == nil || one.EventID != id:
			return c.notASlot(abi.OpRecordEvents, fmt.Sprintf("answered neither a receipt nor an error for event %q", id))
		}
	}
	return nil
}
