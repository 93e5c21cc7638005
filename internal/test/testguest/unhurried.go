package testguest

import (
	"encoding/json"
	"sync"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/engine/wasmbin"
)

// Unhurried is Probe without the deadlines of its manifest: on a machine that is very busy a second is soon over, and a
// test or a run is not to end by that.
var Unhurried = sync.OnceValue(func() []byte {
	wasm := Probe()
	text, _, err := wasmbin.Custom(wasm, abi.ManifestSection)
	manifest := map[string]json.RawMessage{}
	if err == nil {
		err = json.Unmarshal(text, &manifest)
	}
	delete(manifest, "deadlines_ms")
	if err == nil {
		text, err = json.Marshal(manifest)
	}
	if err == nil {
		wasm, err = wasmbin.SetCustom(wasm, abi.ManifestSection, text)
	}
	if err != nil {
		panic("the probe's manifest: " + err.Error()) // it is embedded
	}
	return wasm
})
