package wire

import (
	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/abi/wirejson"
)

// ModuleList lists the program's modules.
type ModuleList struct {
	Modules []Module `json:"modules"`
}

// Encode implements abi.Encodable.
func (x *ModuleList) Encode(e *wirejson.Encoder) {
	e.ObjStart()
	objects(e, "modules", x.Modules)
	e.ObjEnd()
}

// Module is what is known about a module without running it.
type Module struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
	Bytes   int64  `json:"bytes"`
	// Engine is the engine that runs it.
	Engine string `json:"engine"`
	// Powers is what it may do besides computing.
	Powers []string `json:"powers"`
	// Operations and Capabilities are those that it implements.
	Operations   []string `json:"operations"`
	Capabilities []string `json:"capabilities"`
	// Warnings are for the operator.
	Warnings []string `json:"warnings,omitempty"`
	// Manifest is the module's own: its providers, origins, routes and config_schema.
	Manifest abi.Raw `json:"manifest"`
}

// Encode implements abi.Encodable.
func (x *Module) Encode(e *wirejson.Encoder) {
	e.ObjStart()
	e.FieldStart("name")
	e.Str(x.Name)
	e.FieldStart("version")
	e.Str(x.Version)
	e.FieldStart("sha256")
	e.Str(x.SHA256)
	number(e, "bytes", x.Bytes)
	e.FieldStart("engine")
	e.Str(x.Engine)
	list(e, "powers", x.Powers)
	list(e, "operations", x.Operations)
	list(e, "capabilities", x.Capabilities)
	if len(x.Warnings) > 0 {
		list(e, "warnings", x.Warnings)
	}
	e.FieldStart("manifest")
	e.Raw(x.Manifest)
	e.ObjEnd()
}
