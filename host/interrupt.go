package host

import "github.com/tetratelabs/wazero"

// interruption is how a guest that does not return is stopped at its deadline. It is a seam: how it is done shows nowhere else.
type interruption interface {
	// name is what the run manifest and inspect say.
	name() string
	// configure sets up the runtime.
	configure(wazero.RuntimeConfig) wazero.RuntimeConfig
	// prepare may rewrite a module that was validated and hashed.
	prepare(wasm []byte) ([]byte, error)
}

// contextCheck is wazero's own: compiled code asks at each loop header and function entry whether the call's context is done.
type contextCheck struct{}

var _ interruption = contextCheck{}

func (contextCheck) name() string { return "wazero, context check" }

func (contextCheck) configure(c wazero.RuntimeConfig) wazero.RuntimeConfig {
	return c.WithCloseOnContextDone(true)
}

func (contextCheck) prepare(wasm []byte) ([]byte, error) { return wasm, nil }
