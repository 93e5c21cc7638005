package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// insertion is text that goes before a line of a source of the pinned TinyGo.
type insertion struct {
	file   string // below TinyGo's root
	before string // occurs in the file exactly once
	text   string
}

// betweenTag is a build tag that only the patched TinyGo reads: functions need not keep on the stack what the collector
// would look for there.
const betweenTag = "memhost.collects_between"

// insertions are our changes to TinyGo.
//
// The first lets betweenTag take effect. Modules with heapPackage collect between operations, when nothing is on the
// stack.
//
// The second has strings compared eight bytes at a time: a loop over bytes costs some 45 machine instructions each in a
// guest, and modules compare field names and ids.
//
// The others are for modules that collect at any time. On WebAssembly TinyGo finds pointers in locals only where
// transform.MakeGCStackSlots makes a slot on the stack for them, and a slot is overwritten when its value is computed
// again. A local that is written in a loop and whose fields are read stays an alloca for the compiler, which therefore
// tracks no phi of it. Then LLVM makes registers of the alloca: what the local held from an earlier turn of the loop is
// in no slot and is freed while it is in use. So allocas become registers before slots are made, and every phi that is
// a pointer gets a slot. A value that is tracked twice gets one slot, which pays for the others.
func insertions() []insertion {
	return []insertion{
		{
			file:   "compileopts/config.go",
			before: "\tswitch c.GC() {\n\tcase \"conservative\", \"custom\", \"precise\", \"boehm\":\n",
			text: `	for _, tag := range c.BuildTags() {
		if tag == "` + betweenTag + `" {
			return false
		}
	}
`,
		},
		{
			file:   "src/runtime/string.go",
			before: "\tfor i := 0; i < len(x); i++ {\n\t\tif x[i] != y[i] {\n",
			text: `	for len(x) >= 8 {
		if *(*uint64)(unsafe.Pointer(unsafe.StringData(x))) != *(*uint64)(unsafe.Pointer(unsafe.StringData(y))) {
			return false
		}
		x, y = x[8:], y[8:]
	}
`,
		},
		{
			file:   "transform/gc.go",
			before: "\t// Iterate until runtime.trackPointer has no uses left.\n",
			text: `	for _, call := range getUses(trackPointer) {
		if !stripPointerCasts(call.Operand(0)).IsAAllocaInst().IsNil() {
			call.EraseFromParentAsInstruction()
		}
	}
	passOptions := llvm.NewPassBuilderOptions()
	defer passOptions.Dispose()
	if err := mod.RunPasses("function(sroa)", llvm.TargetMachine{}, passOptions); err != nil {
		panic("could not run sroa: " + err.Error())
	}

`,
		},
		{
			file:   "transform/gc.go",
			before: "\t\tvar pointers []llvm.Value\n",
			text:   "\t\tslots := make(map[llvm.Value]struct{})\n",
		},
		{
			file:   "transform/gc.go",
			before: "\t\t\tpointers = append(pointers, ptr)\n",
			text: `			if _, ok := slots[ptr]; ok {
				continue
			}
			slots[ptr] = struct{}{}
`,
		},
		{
			file:   "transform/gc.go",
			before: "\t\tif len(pointers) == 0 {\n",
			text: `		for bb := fn.FirstBasicBlock(); !bb.IsNil(); bb = llvm.NextBasicBlock(bb) {
			for phi := bb.FirstInstruction(); !phi.IsAPHINode().IsNil(); phi = llvm.NextInstruction(phi) {
				if _, ok := slots[phi]; !ok && phi.Type().TypeKind() == llvm.PointerTypeKind {
					pointers = append(pointers, phi)
				}
			}
		}
`,
		},
	}
}

// patch changes the copy of TinyGo's sources in root.
//
// Errors: a place is not there exactly once, as in another version of TinyGo.
func patch(root string, insertions []insertion) error {
	for _, change := range insertions {
		path := filepath.Join(root, filepath.FromSlash(change.file))
		source, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("toolchain: patching TinyGo: %w", err)
		}
		if n := strings.Count(string(source), change.before); n != 1 {
			return fmt.Errorf("toolchain: patching TinyGo: %s holds %q %d times, want once: look whether this "+
				"version still needs the change",
				change.file, change.before, n)
		}
		if err := writeFile(path, []byte(strings.Replace(string(source), change.before, change.text+change.before,
			1))); err != nil {
			return err
		}
	}
	return nil
}
