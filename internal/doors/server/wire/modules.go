package wire

import "github.com/memhost/memhost/abi"

// ModuleList lists the program's modules.
type ModuleList struct {
	Modules []Module `json:"modules"`
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
