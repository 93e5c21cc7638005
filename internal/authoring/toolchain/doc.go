// Package toolchain builds the modules under plugins/ and proves that the
// committed ones are what their sources give.
//
// A module is a folder with a manifest.json and a main.go; building it compiles the
// folder with TinyGo, drops the custom sections that only a debugger wants, and
// attaches the manifest as custom section memhost.manifest. Committed modules are
// always built with the toolchain that Bootstrap makes, so that the same sources
// give the same bytes everywhere; plugins/modules.lock says what each was built
// from. CheckLock needs Go alone and is cheap enough for a test; Builder.Check
// rebuilds everything and compares byte for byte.
package toolchain
