//go:build !wasm && !extism

package sdk

// guestHost panics outside wasm. A unit test calls an operation's function directly, with a Call from package sdktest.
func guestHost() Host {
	panic("sdk.Serve runs inside a wasm guest; in a test, call the operation with sdktest.Host")
}
