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

// rewrittenModules caches the meter's output by the hash of its input: in memory, so that a swap back and forth reads
// no files, and in a folder next to the compiled code, so that the next process need not rewrite again. Anyone who can
// write to that folder could already make the host run their code.
type rewrittenModules struct {
	folder string // "": memory only

	mu    sync.Mutex
	held  map[string][]byte
	bytes int
}

// maxRewritten bounds the cache in memory, in bytes.
const maxRewritten = 16 << 20

// rewrittenVersion is part of every file's name, together with meter.Version. Increase it when the set of imports that
// an engine calls quick changes.
const rewrittenVersion = 1

// keepRewritten returns a cache in a subfolder of the folder of compiled modules.
func keepRewritten(cache string) *rewrittenModules {
	k := &rewrittenModules{held: map[string][]byte{}}
	if cache != "" {
		k.folder = filepath.Join(cache, fmt.Sprintf("metered-%d.%d", meter.Version, rewrittenVersion))
	}
	return k
}

// find returns the cached output for a module, or creates and caches it. An unusable folder only costs time.
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

// read reads a file: the module, and its checksum in the last four bytes.
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
