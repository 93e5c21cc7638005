package report

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
	"github.com/memhost/memhost/internal/text/structjson"
)

// What crosses a door, or is kept, is written and read by its tags. The other structs here are parts of these.

// Encode implements abi.Encodable.
func (x *ArchiveStats) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *ArchiveStats) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *ArchiveRequest) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *ArchiveRequest) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *ArchivePage) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *ArchivePage) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *ArchiveReceipt) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *ArchiveReceipt) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *ArchiveCheck) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *ArchiveCheck) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *Backfill) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *Backfill) Decode(d *wirejson.Decoder, m abi.Mode) error { return structjson.Decode(d, m, x) }

// Encode implements abi.Encodable.
func (x *BackfillEvents) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *BackfillEvents) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *BackfillServe) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *BackfillServe) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *BackfillStop) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *BackfillStop) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *BackfillPlan) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *BackfillPlan) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *Capabilities) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *Capabilities) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *Cluster) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *Cluster) Decode(d *wirejson.Decoder, m abi.Mode) error { return structjson.Decode(d, m, x) }

// Encode implements abi.Encodable.
func (x *LateWrite) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *LateWrite) Decode(d *wirejson.Decoder, m abi.Mode) error { return structjson.Decode(d, m, x) }

// Encode implements abi.Encodable.
func (x *OpenEvent) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *OpenEvent) Decode(d *wirejson.Decoder, m abi.Mode) error { return structjson.Decode(d, m, x) }

// Encode implements abi.Encodable.
func (x *PersonaReceipt) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *PersonaReceipt) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *PersonaRequest) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *PersonaRequest) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *RunManifest) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *RunManifest) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *RunStep) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *RunStep) Decode(d *wirejson.Decoder, m abi.Mode) error { return structjson.Decode(d, m, x) }

// Encode implements abi.Encodable.
func (x *ShadowAnswer) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *ShadowAnswer) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *ShadowAnswers) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *ShadowAnswers) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *ShadowAnswersRequest) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *ShadowAnswersRequest) Decode(d *wirejson.Decoder, m abi.Mode) error {
	return structjson.Decode(d, m, x)
}

// Encode implements abi.Encodable.
func (x *ShadowList) Encode(e *wirejson.Encoder) { structjson.Encode(e, x) }

// Decode implements abi.Decodable.
func (x *ShadowList) Decode(d *wirejson.Decoder, m abi.Mode) error { return structjson.Decode(d, m, x) }
