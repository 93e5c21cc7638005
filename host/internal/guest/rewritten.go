package guest

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"

	"github.com/memhost/memhost/internal/base/wholefile"
	"github.com/memhost/memhost/internal/engine/meter"
)

// rewrittenModules keeps what the meter has made of modules, by the hash of what it was given: in memory, so that a
// swap back and forth reads nothing, and in a folder beside the compiled code, so that the next process does not
// rewrite again. Anyone who can write there could already make the host run their code.
type rewrittenModules struct {
	folder string // "": memory only

	mu    sync.Mutex
	held  map[string][]byte
	bytes int
}

// maxRewritten bounds what is held in memory, in bytes.
const maxRewritten = 16 << 20

// rewrittenVersion is a part of every file's name, with meter.Version. It changes with the imports that an engine calls
// quick.
const rewrittenVersion = 1

// keepRewritten keeps below a folder of compiled modules.
func keepRewritten(cache string) *rewrittenModules {
	k := &rewrittenModules{held: map[string][]byte{}}
	if cache != "" {
		k.folder = filepath.Join(cache, fmt.Sprintf("metered-%d.%d", meter.Version, rewrittenVersion))
	}
	return k
}

// find gives what is kept of a module, or makes and keeps it. A folder that cannot be used only costs time.
func (k *rewrittenModules) find(sha256 string, rewrite func() ([]byte, error)) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if wasm, ok := k.held[sha256]; ok {
		return wasm, nil
	}
	wasm, ok := k.read(sha256)
	if !ok {
		var err error
		if wasm, err = rewrite(); err != nil {
			return nil, err
		}
		k.write(sha256, wasm)
	}
	if k.bytes += len(wasm); k.bytes > maxRewritten {
		clear(k.held)
		k.bytes = len(wasm)
	}
	k.held[sha256] = wasm
	return wasm, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// read finds a whole file: the module, and its checksum in the last four bytes.
func (k *rewrittenModules) read(sha256 string) ([]byte, bool) {
	if k.folder == "" {
		return nil, false
	}
	file, err := os.ReadFile(filepath.Join(k.folder, sha256))
	if err != nil || len(file) < 4 {
		return nil, false
	}
	wasm := file[:len(file)-4]
	return wasm, crc32.Checksum(wasm, castagnoli) == binary.LittleEndian.Uint32(file[len(wasm):])
}

func (k *rewrittenModules) write(sha256 string, wasm []byte) {
	if k.folder == "" || os.MkdirAll(k.folder, 0o700) != nil {
		return
	}
	file := binary.LittleEndian.AppendUint32(wasm[:len(wasm):len(wasm)], crc32.Checksum(wasm, castagnoli))
	_ = wholefile.Write(filepath.Join(k.folder, sha256), file, 0o600)
}
