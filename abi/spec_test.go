package abi

import (
	"bytes"
	"context"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
)

func specification(t *testing.T) string {
	text, err := os.ReadFile("ABI.md")
	require.NoError(t, err)
	return string(text)
}

func typesByName() map[string]codable {
	byName := map[string]codable{}
	for _, x := range types() {
		byName[reflect.TypeOf(x).Elem().Name()] = x
	}
	return byName
}

// TestExamplesInTheSpecificationAreValid reads every block fenced as "json T" as a T, in Strict mode.
func TestExamplesInTheSpecificationAreValid(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```json (\\w+)\n(.*?)```").FindAllStringSubmatch(specification(t), -1)
	require.Greater(t, len(blocks), 25)
	byName := typesByName()
	for _, b := range blocks {
		x := byName[b[1]]
		require.NotNil(t, x, "type %s", b[1])
		require.NoError(t, UnmarshalStrict([]byte(b[2]), x), b[2])
		if v, ok := x.(validator); ok {
			require.NoError(t, v.Validate(), b[2])
		}
	}
}

// TestTheSpecificationIsComplete checks that the specification mentions every name of the interface, in backquotes or
// quotes, or as a listed field.
func TestTheSpecificationIsComplete(t *testing.T) {
	text := specification(t)
	has := func(word string) bool {
		return regexp.MustCompile("[`\"{,( ]" + regexp.QuoteMeta(word) + "[`\"?:,() ]").MatchString(text)
	}
	names := append(append(append(RequiredOperations(), OptionalOperations()...), WASIImports()...), Marker,
		BufferExport,
		MemoryExport, InitExport, HostModule,
		WASIModule, ManifestSection, ImportHTTPSend, ImportBoltRun, ImportStateGet, ImportStatePut, ImportStateDelete,
		ImportStateList, ImportStateAppend, ImportStateRead,
		ImportTokensCount, ImportTokensFit, ImportLog, ImportConfig, ImportDeadline, ImportPull)
	for _, code := range Codes() {
		names = append(names, string(code))
	}
	for _, name := range names {
		require.True(t, has(name), "%s is not in ABI.md", name)
	}
	ofTheDoors := map[string]bool{"AdapterMode": true, "ModeReceipt": true, "ReadinessRequest": true}
	for name, x := range typesByName() {
		typ := reflect.TypeOf(x).Elem()
		if typ.Kind() != reflect.Struct {
			continue
		}
		for i := range typ.NumField() {
			key, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			require.True(t, key == "" || ofTheDoors[name] || has(key), "%s.%s is not in ABI.md", name, key)
		}
	}
}

func TestRequiredFieldsAreThoseOfTheSpecification(t *testing.T) {
	text := specification(t)
	for _, op := range append(RequiredOperations(), OptionalOperations()...) {
		require.NotEmpty(t, RequiredFields(op), op)
		row := regexp.MustCompile("(?m)^\\| [a-z_` ]*`" + op + "`[a-z_` ]* \\| " +
			strings.Join(RequiredFields(op), ", ") +
			"[ ;]")
		require.True(t, row.MatchString(text), "the table of required fields in ABI.md has another row for %s", op)
	}
	require.Empty(t, RequiredFields(OpSetMode))
}

// TestTheMinimalGuestOfTheSpecificationWorks runs testdata/minimal.wasm, which this command made from the text file
// next to it:
//
//	wasm-as minimal.wat -o minimal.wasm
func TestTheMinimalGuestOfTheSpecificationWorks(t *testing.T) {
	source, err := os.ReadFile("testdata/minimal.wat")
	require.NoError(t, err)
	require.True(t, strings.Contains(specification(t), "```wat\n"+string(source)+"```"),
		"the text in ABI.md is another")
	wasm, err := os.ReadFile("testdata/minimal.wasm")
	require.NoError(t, err)

	ctx := context.Background()
	runtime := wazero.NewRuntime(ctx)
	defer func() { require.NoError(t, runtime.Close(ctx)) }()
	guest, err := runtime.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStartFunctions(InitExport))
	require.NoError(t, err)
	require.NotNil(t, guest.ExportedFunction(Marker))

	for op, answer := range map[string]Decodable{OpSetupScope: new(SetupReceipt), OpRecordEvent: new(WriteReceipt),
		OpRetrieve:      new(RetrieveResult),
		OpFormatContext: new(FormatResult), OpResetScope: new(ResetReceipt), OpHealth: new(BackendHealth)} {
		for _, size := range []int{200, 65536, 65537, 1 << 20} {
			envelope := append(Marshal(&Envelope{Op: op, Body: Raw("{}")}), bytes.Repeat([]byte(" "), size)...)[:size]
			at, err := guest.ExportedFunction(BufferExport).Call(ctx, uint64(size))
			require.NoError(t, err)
			require.True(t, guest.Memory().Write(uint32(at[0]), envelope))
			packed, err := guest.ExportedFunction(op).Call(ctx, uint64(size))
			require.NoError(t, err)
			ptr, n, isError := Unpack(packed[0])
			require.False(t, isError)
			data, ok := guest.Memory().Read(ptr, n)
			require.True(t, ok)
			require.NoError(t, UnmarshalStrict(data, answer), "%s: %s", op, data)
			for _, field := range RequiredFields(op) {
				has, err := hasField(data, field)
				require.NoError(t, err)
				require.True(t, has, "%s has no %s", op, field)
			}
		}
	}
}

func TestPackedIntegersOfTheSpecification(t *testing.T) {
	for _, c := range []struct {
		packed       uint64
		high, length uint32
		isError      bool
	}{
		{0x00010000_00000014, 0x10000, 20, false},
		{0x00010000_80000014, 0x10000, 20, true},
		{0x00000007_0000000d, 7, 13, false},
		{0x00000000_80000050, 0, 80, true},
		{0xfffffff0_7fffffff, 0xfffffff0, MaxLength, false},
		{0, 0, 0, false},
	} {
		require.Equal(t, c.packed, Pack(c.high, c.length, c.isError))
		high, length, isError := Unpack(c.packed)
		require.Equal(t, []any{c.high, c.length, c.isError}, []any{high, length, isError})
	}
}
