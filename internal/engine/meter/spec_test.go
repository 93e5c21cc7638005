package meter

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/memhost/memhost/internal/test/brief"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// specCommand is a line of the specification's tests, as written by wast2json.
type specCommand struct {
	Type     string `json:"type"`
	Line     int    `json:"line"`
	Name     string `json:"name"`
	Filename string `json:"filename"`
	As       string `json:"as"`
	Kind     string `json:"module_type"`
	Action   struct {
		Type   string      `json:"type"`
		Field  string      `json:"field"`
		Module string      `json:"module"`
		Args   []specValue `json:"args"`
	} `json:"action"`
}

type specValue struct {
	Type  string          `json:"type"`
	Lane  string          `json:"lane_type"`
	Value json.RawMessage `json:"value"`
}

// words returns an argument in the engine's form.
func (v specValue) words() []uint64 {
	if v.Type != "v128" {
		var s string
		_ = json.Unmarshal(v.Value, &s)
		if v.Type == "externref" && s != "null" {
			n, _ := strconv.ParseUint(s, 10, 64)
			return []uint64{n + 1} // 0 is null
		}
		return []uint64{specNumber(s, v.Type[1:])}
	}
	var lanes []string
	_ = json.Unmarshal(v.Value, &lanes)
	words, width := make([]uint64, 2), 128/len(lanes)
	for i, s := range lanes {
		words[i*width/64] |= specNumber(s, v.Lane[1:]) << (i * width % 64)
	}
	return words
}

func specNumber(s, width string) uint64 {
	bits, _ := strconv.Atoi(width)
	switch {
	case s == "null":
		return 0
	case strings.HasPrefix(s, "nan") && bits == 32:
		return uint64(math.Float32bits(float32(math.NaN())))
	case strings.HasPrefix(s, "nan"):
		return math.Float64bits(math.NaN())
	case strings.HasPrefix(s, "-"):
		n, _ := strconv.ParseInt(s, 10, bits)
		return uint64(n) & (math.MaxUint64 >> (64 - bits))
	}
	n, _ := strconv.ParseUint(s, 10, bits)
	return n
}

// specRun is one engine that runs the commands of a file.
type specRun struct {
	*engine
	rewrite bool
	folder  string
	named   map[string]api.Module
	last    api.Module
}

func newSpecRun(t *testing.T, rewrite bool, folder string) *specRun {
	r := &specRun{engine: newEngine(t, wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2)),
		rewrite: rewrite, folder: folder, named: map[string]api.Module{}}
	_, err := r.InstantiateWithConfig(context.Background(),
		read(t, filepath.Join(folder, "..", "..", "testdata", "spectest.wasm")), wazero.NewModuleConfig())
	require.NoError(t, err)
	return r
}

// do runs one command and reports its outcome.
func (r *specRun) do(t *testing.T, c, next *specCommand) (types []api.ValueType, results []uint64, said string) {
	ctx := context.Background()
	switch c.Type {
	case "assert_return", "action", "assert_trap", "assert_exhaustion":
		m := r.last
		if c.Action.Module != "" {
			m = r.named[c.Action.Module]
		}
		if m == nil {
			return nil, nil, "no module"
		}
		if c.Action.Type == "get" {
			g := m.ExportedGlobal(c.Action.Field)
			return []api.ValueType{g.Type()}, []uint64{g.Get()}, ""
		}
		var args []uint64
		for _, a := range c.Action.Args {
			args = append(args, a.words()...)
		}
		f := m.ExportedFunction(c.Action.Field)
		results, err := f.Call(ctx, args...)
		if err != nil {
			return nil, nil, firstLine(err)
		}
		return f.Definition().ResultTypes(), results, ""
	case "module", "assert_invalid", "assert_malformed", "assert_unlinkable", "assert_uninstantiable":
		if c.Kind == "text" {
			return nil, nil, ""
		}
		wasm := read(t, filepath.Join(r.folder, c.Filename))
		if r.rewrite {
			metered, err := Rewrite(wasm)
			if err != nil {
				return nil, nil, "refused"
			}
			wasm = metered
		}
		config := wazero.NewModuleConfig().WithName("")
		if next.Type == "register" {
			config = config.WithName(next.As)
		}
		compiled, err := r.CompileModule(ctx, wasm)
		if err != nil {
			return nil, nil, "refused"
		}
		m, err := r.InstantiateModule(ctx, compiled, config)
		if err != nil {
			return nil, nil, "does not start"
		}
		if c.Type != "module" {
			return nil, nil, "starts"
		}
		if r.last = m; c.Name != "" {
			r.named[c.Name] = m
		}
		return nil, nil, "starts"
	}
	return nil, nil, ""
}

// TestSpecificationsTestsGiveTheSame runs the tests of the WebAssembly specification, which wazero includes, on two
// engines, one of which meters every module and asks at every site. It only compares the two: whether results are right
// is the engine's responsibility.
func TestSpecificationsTestsGiveTheSame(t *testing.T) {
	base := filepath.Join(wazeroFolder(), "internal", "integration_test", "spectest")
	if _, err := os.Stat(base); wazeroFolder() == "" || err != nil {
		t.Skip("the sources of wazero are not there")
	}
	if brief.Tests() {
		t.Skip("54,006 commands")
	}
	folder := filepath.Join(base, "v2", "testdata")
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var commands, looks int
	for _, file := range files {
		var script struct{ Commands []specCommand }
		require.NoError(t, json.Unmarshal(read(t, file), &script))
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			plain, metered := newSpecRun(t, false, folder), newSpecRun(t, true, folder)
			for i := range script.Commands {
				c, next := &script.Commands[i], &specCommand{}
				if i+1 < len(script.Commands) {
					next = &script.Commands[i+1]
				}
				types, want, wantSaid := plain.do(t, c, next)
				_, got, said := metered.do(t, c, next)
				require.Equal(t, wantSaid, said, "line %d: %s %s", c.Line, c.Type, c.Filename)
				require.True(t, c.Type != "module" || said == "starts", "line %d: %s", c.Line, c.Filename)
				require.True(t, sameValues(types, want, got), "line %d: %s: %v, metered %v", c.Line, c.Action.Field,
					want, got)
				commands++
			}
			looks += metered.looks
		})
	}
	t.Logf("%d commands, the metered modules asked %d times", commands, looks)
	assert.NotZero(t, looks)
}
