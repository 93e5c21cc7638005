package abi

import (
	"slices"

	"github.com/memhost/memhost/abi/wirejson"
)

// Names of the binary interface "mh1". ABI.md specifies them.
const (
	// Marker is the exported function that names the version. The host looks for it before any guest code runs and
	// never calls it.
	Marker = "mh_abi_1"
	// BufferExport returns the guest's request buffer, grown to at least the size asked for: (i32) -> i32.
	BufferExport = "mh_buffer"
	// MemoryExport is the guest's linear memory.
	MemoryExport = "memory"
	// InitExport initialises a WASI reactor.
	InitExport = "_initialize"
	// HostModule is the import module of the host functions.
	HostModule = "memhost"
	// WASIModule is the import module of the permitted WASI functions.
	WASIModule = "wasi_snapshot_preview1"
)

// Operations and capabilities. Each is an export of the same name with the signature (i32) -> i64.
const (
	OpSetupScope     = "setup_scope"
	OpRecordEvent    = "record_event"
	OpRetrieve       = "retrieve"
	OpFormatContext  = "format_context"
	OpResetScope     = "reset_scope"
	OpHealth         = "health"
	OpRecordEvents   = "record_events"
	OpReadiness      = "readiness"
	OpWaitUntilReady = "wait_until_ready"
	OpFindEvent      = "find_event"
	OpInventory      = "inventory"
	OpProvenance     = "provenance"
	OpNativeQuery    = "native_query"
	OpNativeMutation = "native_mutation"
	OpApplyFeedback  = "apply_feedback"
	OpForget         = "forget"
	// OpSetMode belongs to the host and is not an export.
	OpSetMode = "set_mode"
)

// RequiredOperations lists the exports that every module must have.
func RequiredOperations() []string {
	return []string{OpSetupScope, OpRecordEvent, OpRetrieve, OpFormatContext, OpResetScope, OpHealth}
}

// OptionalOperations lists the exports that are capabilities.
func OptionalOperations() []string {
	return []string{OpRecordEvents, OpReadiness, OpWaitUntilReady, OpFindEvent, OpInventory, OpProvenance,
		OpNativeQuery,
		OpNativeMutation, OpApplyFeedback, OpForget}
}

// required lists the members that a guest's answer must have, by operation. None may be null.
var required = []struct {
	op     string
	fields []string
}{
	{OpSetupScope, []string{"ready", "native_scope"}},
	{OpRecordEvent, []string{"status", "native_ids_kind"}},
	{OpRecordEvents, []string{"receipts"}},
	{OpRetrieve, []string{"raw", "formatted_context", "evidence"}},
	{OpFormatContext, []string{"formatted_context", "token_count", "truncated"}},
	{OpReadiness, []string{"status", "event_ids", "method"}},
	{OpWaitUntilReady, []string{"status", "event_ids", "method"}},
	{OpFindEvent, []string{"found"}},
	{OpInventory, []string{"kinds", "complete", "quiescent"}},
	{OpProvenance, []string{"items"}},
	{OpNativeQuery, []string{"name"}},
	{OpForget, []string{"status", "removed", "derived_may_remain"}},
	{OpResetScope, []string{"status"}},
	{OpHealth, []string{"status"}},
	{OpNativeMutation, []string{"status"}},
	{OpApplyFeedback, []string{"status"}},
}

// RequiredFields lists the members that a guest's answer to an operation must have, none of them null. An answer
// without one of them breaks the contract. It returns nil for a name that is not an export.
func RequiredFields(op string) []string { return slices.Clone(requiredOf(op)) }

func requiredOf(op string) []string {
	for i := range required {
		if required[i].op == op {
			return required[i].fields
		}
	}
	return nil
}

// MissingField returns the first of an operation's RequiredFields that is absent from an answer or null there, or "" if
// the answer has them all. It looks only at the answer's top-level members, and stops at the last one that it needs,
// since an answer can be long.
//
//	MissingField("find_event", `{"found": "absent"}`)  ""
//	MissingField("retrieve", `{"raw": {}}`)            "formatted_context"
//	MissingField("retrieve", `null`)                   "raw"
//
// Errors: the part that was read is not the beginning of a JSON object.
func MissingField(op string, answer []byte) (field string, err error) {
	fields := requiredOf(op)
	has := make([]bool, len(fields))
	d := wirejson.DecodeBytes(answer)
	o := openObject(d)
	for slices.Contains(has, false) && o.next() {
		for i, name := range fields {
			if o.key == name {
				has[i] = d.Next() != wirejson.Null
			}
		}
		o.err = d.Skip()
	}
	for i, name := range fields {
		if !has[i] && o.err == nil {
			return name, nil
		}
	}
	return "", o.err
}

// The functions of HostModule. A module imports only those it uses, so its imports show what it can do.
const (
	ImportHTTPSend    = "http_send"
	ImportBoltRun     = "bolt_run"
	ImportStateGet    = "state_get"
	ImportStatePut    = "state_put"
	ImportStateDelete = "state_delete"
	ImportStateList   = "state_list"
	ImportStateAppend = "state_append"
	ImportStateRead   = "state_read"
	ImportTokensCount = "tokens_count"
	ImportTokensFit   = "tokens_fit"
	ImportLog         = "log"
	ImportConfig      = "config"
	ImportDeadline    = "deadline"
	// ImportPull copies the result of the last host call into the guest's memory.
	ImportPull = "pull"
)

// AnyVersion is the expected version with which a state_put overwrites the key whatever its version.
const AnyVersion = -1

// Levels of the log import.
const (
	LogDebug = 0
	LogInfo  = 1
	LogWarn  = 2
	LogError = 3
)

const errorBit = 1 << 31

// MaxLength is the largest length that a packed integer can hold: 2^31 - 1 bytes.
const MaxLength = errorBit - 1

// Pack builds the i64 that an operation or a host call returns.
//
//	bits 63..32  high: operation: pointer to the response; host call: length of the raw body that follows the head
//	bit  31      isError: the JSON object is an AdapterError
//	bits 30..0   length of the JSON object in bytes
//
// Example: a response of 20 bytes at 0x00010000 is 0x00010000_00000014; an error object of 20 bytes there is
// 0x00010000_80000014. Zero is a contract violation.
func Pack(high, length uint32, isError bool) uint64 {
	p := uint64(high)<<32 | uint64(length&MaxLength)
	if isError {
		p |= errorBit
	}
	return p
}

// Unpack is the inverse of Pack.
func Unpack(p uint64) (high, length uint32, isError bool) {
	return uint32(p >> 32), uint32(p) & MaxLength, p&errorBit != 0
}
