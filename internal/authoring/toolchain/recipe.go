package toolchain

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

const (
	// SizeLimit is the most bytes that a first-party module may have.
	SizeLimit = 512 * 1024

	// ManifestSection is the custom section that carries manifest.json.
	ManifestSection = "memhost.manifest"

	// tinygoModule is pinned together with a golang.org/x/tools that is newer than TinyGo's own: the older one compiles
	// new(expression) of Go 1.26, without a word, to a pointer to the zero value.
	tinygoModule = "github.com/tinygo-org/tinygo"

	// newestGoMinor is the newest Go 1.x that the pinned TinyGo accepts.
	newestGoMinor = 26

	// stackBytes is the guest's stack. The linker's own default of 64 KiB holds only
	// some 55 nested JSON objects, and an overflow is a trap; this holds some 110.
	stackBytes = 128 * 1024

	// memoryBytes is what a module starts with. TinyGo doubles the whole memory when it grows, so only a power of two
	// of pages can reach the host's limit of 128 MiB. The next larger one makes the start of an instance twice as long.
	memoryBytes = 256 * 1024
)

// pinMod and pinSum are go.mod and go.sum of a module that pins TinyGo and everything that it is built from. They have
// other names, so that they are part of this module, and of the program, which builds plugins where there is no
// checkout. To pin another TinyGo: copy both into an empty folder under their real names, `go get` and `go mod tidy`
// there, and copy them back.
var (
	//go:embed pin/tinygo.mod
	pinMod []byte
	//go:embed pin/tinygo.sum
	pinSum []byte
)

// strippedSections are what is left of debug information after -no-debug.
func strippedSections() []string { return []string{"name", "producers"} }

// compileFlags are the options of `tinygo build` that shape the module, for the
// bootstrapped TinyGo and for another one alike.
func compileFlags() []string {
	return []string{
		"-buildmode=c-shared", "-opt=s", "-no-debug", "-scheduler=none",
		fmt.Sprintf("-ldflags=-extldflags '-z stack-size=%d --initial-memory=%d'", stackBytes, memoryBytes),
	}
}

// heapPackage is the sdk's memory of a guest. With gcPackage it also collects in the middle of an operation.
const (
	heapPackage = modulePath + "/sdk/internal/heap"
	gcPackage   = modulePath + "/sdk/gc"
)

// TinyGo's names for heapPackage and for its own collector, for modules that do not have that.
const (
	sdkCollector    = "custom"
	tinygoCollector = "precise"
)

// buildTags are the tags that TinyGo sets for the target, so that plain `go list`
// sees the same files. Of the two that depend on the collector it is the one of heapPackage; without that nothing asks.
func buildTags() []string {
	return []string{
		"tinygo.wasm", "tinygo", "purego", "osusergo", "math_big_pure_go",
		"gc." + sdkCollector, "scheduler.none", "serial.none", "tinygo.unicore",
	}
}

// targetFile is a TinyGo target like its own wasip1, but linked with Debian's
// prebuilt C library and compiler runtime: the module zip of TinyGo lacks the sources
// of both.
func targetFile() ([]byte, error) {
	target := map[string]any{
		"llvm-target":        "wasm32-unknown-wasi",
		"cpu":                "generic",
		"features":           "+bulk-memory,+mutable-globals,+nontrapping-fptoint,+sign-ext,-multivalue,-reference-types",
		"build-tags":         []string{"tinygo.wasm"},
		"goos":               "wasip1",
		"goarch":             "wasm",
		"linker":             "wasm-ld",
		"gc":                 "precise",
		"scheduler":          "none",
		"default-stack-size": stackBytes,
		"cflags": []string{"-mbulk-memory", "-mnontrapping-fptoint", "-mno-multivalue",
			"-mno-reference-types", "-msign-ext"},
		"ldflags": []string{
			"--stack-first", "--no-demangle", "-L" + debianLibcFolder, "-lc", debianCompilerRuntime,
		},
		"extra-files": []string{"src/runtime/asm_tinygowasm.S"},
	}
	return json.MarshalIndent(target, "", "  ")
}

// Recipe is a hash over everything in this repository that decides how sources
// become a module: the pinned compiler, our change to it, its target, the flags, the sections that are
// dropped.
func Recipe() (string, error) { return recipeOf(pinMod) }

func recipeOf(pin []byte) (string, error) {
	target, err := targetFile()
	if err != nil {
		return "", fmt.Errorf("toolchain: target file: %w", err)
	}
	h := sha256.New()
	parts := []string{
		string(pin), string(target), strings.Join(compileFlags(), " "), sdkCollector + " " + tinygoCollector,
		strings.Join(strippedSections(), " "), ManifestSection,
	}
	for _, change := range insertions() {
		parts = append(parts, change.file, change.before, change.text)
	}
	for _, part := range parts {
		_, _ = fmt.Fprintf(h, "%d\n%s\n", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// pinnedTinyGo reads the version of TinyGo, without its v, off the pinning go.mod.
func pinnedTinyGo(pin []byte) (string, error) {
	match := regexp.MustCompile(`(?m)^(?:require)?\s+` + regexp.QuoteMeta(tinygoModule) + `\s+v(\S+)`).FindSubmatch(pin)
	if match == nil {
		return "", fmt.Errorf("toolchain: pin/tinygo.mod requires no version of %s", tinygoModule)
	}
	return string(match[1]), nil
}
