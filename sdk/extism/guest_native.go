//go:build !wasm

package extism

import "github.com/memhost/memhost/sdk"

const outside = "extism.Serve runs inside a wasm guest; in a test, call the operation with sdktest.Host"

func guestHost() sdk.Host { panic(outside) }

func input() []byte { panic(outside) }

func output([]byte) { panic(outside) }
