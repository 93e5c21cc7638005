package wire

// Service identifies a memhost slot in Liveness.
const Service = "memhost"

// Liveness answers GET /healthz and /readyz.
type Liveness struct {
	Service string `json:"service"`
	// Status is ok at /healthz and ready at /readyz.
	Status  string `json:"status"`
	Version string `json:"version,omitempty"`
}
