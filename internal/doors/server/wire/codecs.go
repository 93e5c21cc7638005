package wire

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/internal/text/structjson"
)

// Bodies are written and read by their tags. Answers that only the page reads have no Decode.

// Encode implements abi.Encodable.
func (x *BackfillRequest) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *BackfillRequest) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *CompareRequest) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *CompareRequest) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *Comparison) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Encode implements abi.Encodable.
func (x *EventList) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *EventList) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *EventListRequest) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *EventListRequest) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *ImportCheck) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Encode implements abi.Encodable.
func (x *ImportConfirm) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *ImportConfirm) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *ImportProgress) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Encode implements abi.Encodable.
func (x *Liveness) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *Liveness) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *ListedScope) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Encode implements abi.Encodable.
func (x *ModuleList) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Encode implements abi.Encodable.
func (x *OperationLine) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Encode implements abi.Encodable.
func (x *RunList) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Encode implements abi.Encodable.
func (x *RunReport) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Encode implements abi.Encodable.
func (x *RunReportRequest) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *RunReportRequest) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *ScopeList) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *ScopeList) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *ScopeListRequest) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *ScopeListRequest) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *SwapRequest) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *SwapRequest) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}
