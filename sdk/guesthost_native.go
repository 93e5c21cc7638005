//go:build !wasm && !extism

package sdk

// guestHost panics outside wasm: a unit test calls an operation's function with a Call from package sdktest instead.
func guestHost() Host {
	panic("sdk.Serve runs inside a wasm guest; in a test, call the operation with sdktest.Host")
}
