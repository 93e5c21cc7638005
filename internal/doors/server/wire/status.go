package wire

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// Service identifies a memhost slot in Liveness.
const Service = "memhost"

// Liveness answers GET /healthz and /readyz.
type Liveness struct {
	Service string `json:"service"`
	// Status is ok at /healthz and ready at /readyz.
	Status  string `json:"status"`
	Version string `json:"version,omitempty"`
}

// Encode implements abi.Encodable.
func (x *Liveness) Encode(e *wirejson.Encoder) {
	e.ObjStart()
	e.FieldStart("service")
	e.Str(x.Service)
	e.FieldStart("status")
	e.Str(x.Status)
	if x.Version != "" {
		e.FieldStart("version")
		e.Str(x.Version)
	}
	e.ObjEnd()
}

// Decode implements abi.Decodable.
func (x *Liveness) Decode(d *wirejson.Decoder, m abi.Mode) error {
	*x = Liveness{}
	return readObject(d, m, []member{{"service", text(&x.Service)}, {"status", text(&x.Status)},
		{"version", text(&x.Version)}})
}
