// Package cassette reads and writes recordings: every operation of a slot, every entry into its guest, every host call
// that the guest made, and the result of each. Package host records (host.Options.Cassette) and replays (host.Replay);
// this package only has the file format.
//
// A cassette is JSON Lines. The first line is the Header, the last an End; between them is one Operation a line. Each
// line ends in a checksum over itself and all lines before it, so that a truncated, changed, removed or moved line is
// detected and its number reported.
//
// It contains no secrets: the host removes the operator's secrets from every text before it is written, and guests
// never see one.
package cassette

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/host/report"
	"github.com/memhost/memhost/internal/text/plainjson"
)

// Version is the file format that this package writes and reads.
const Version = 1

// Names of operations that are not in the contract.
const (
	// OpOpen loads the first provider, OpSwap a further one.
	OpOpen = "open"
	OpSwap = "swap"
	// OpBackground is an entry into the guest that no caller requested.
	OpBackground = "background"
)

// Header is the first line of a cassette.
type Header struct {
	// Cassette is Version.
	Cassette int64 `json:"cassette"`
	// Revision is the Revision of the program that recorded it.
	Revision    int64  `json:"revision,omitempty"`
	HostVersion string `json:"host_version"`
	HostCommit  string `json:"host_commit,omitempty"`
	// Created is the time of recording, RFC 3339.
	Created string `json:"created"`
	// Clock is virtual: each operation's clock starts at the operation's time and advances 1 us per reading.
	Clock string `json:"clock"`
	// Seed is the seed of all randomness, in hex; operation n draws from SHA-256(seed, n).
	Seed string `json:"seed"`
	// Load is the provider that was opened.
	Load Load `json:"load"`
}

// Load describes a provider that was loaded behind the slot: which module, in which configuration.
type Load struct {
	Module report.RunModule `json:"module"`
	ABI    string           `json:"abi"`
	// Provider is the name; Word is how the configuration chose it: backend or condition.
	Provider string `json:"provider"`
	Word     string `json:"word"`
	// Config is the effective block, with names instead of values of secrets. ConfigHash is the run manifest's.
	ConfigHash string  `json:"config_hash"`
	Config     abi.Raw `json:"config"`
	// Profile is the run manifest's. Cassettes that predate profiles have none, which means best.
	Profile abi.Profile `json:"profile,omitempty"`
	// Frame is the run manifest's. Cassettes that predate frames have none, which means full.
	Frame        abi.Frame `json:"frame,omitempty"`
	Namespace    string    `json:"namespace,omitempty"`
	AgentScoped  bool      `json:"agent_scoped,omitempty"`
	TestSessions []string  `json:"test_sessions,omitempty"`
	NoLookup     bool      `json:"no_lookup,omitempty"`
	RetryEmpty   string    `json:"retry_empty,omitempty"`
	Tokenizer    string    `json:"tokenizer"`
	// Scope is the configured scope, which was set up before the provider served.
	Scope *abi.MemoryScope `json:"scope,omitempty"`
	// Secrets are the names of the secrets that the block may refer to.
	Secrets []Secret `json:"secrets,omitempty"`
	Limits  Limits   `json:"limits"`
}

// Secret is a secret's name and the origin that it is for.
type Secret struct {
	Name   string `json:"name"`
	Origin string `json:"origin"`
}

// Limits are the limits that an answer may depend on, in bytes.
type Limits struct {
	Memory    int64 `json:"memory"`
	HighWater int64 `json:"high_water"`
	Request   int64 `json:"request"`
	Response  int64 `json:"response"`
}

// Operation is one operation of the slot, with everything that it did to the guest.
type Operation struct {
	// N counts from 1.
	N int64 `json:"n"`
	// Name is an operation of the contract, or OpOpen, OpSwap, OpBackground.
	Name string `json:"op"`
	// At is the start of the virtual clock, RFC 3339.
	At string `json:"at"`
	// Request is the contract's JSON; empty for OpOpen, OpSwap and OpBackground.
	Request Text `json:"request,omitzero"`
	// Load is the new provider of OpSwap.
	Load *Load `json:"load,omitempty"`
	// Records are older records that the host read: a cassette may start on a data folder that is not empty.
	Records []Record `json:"records,omitempty"`
	Entries []Entry  `json:"entries,omitempty"`
	// ElapsedUS are the durations that the host measured for the operation as a whole, in order.
	ElapsedUS []int64 `json:"elapsed_us,omitempty"`
	// Usage has the results of the host's queries for the size of a space, in order.
	Usage []int64 `json:"usage,omitempty"`
	// Failed lists commits that the store refused.
	Failed []FailedCommit `json:"failed_commits,omitempty"`
	// Answer or Error is what the caller got, as the contract's JSON.
	Answer Text `json:"answer,omitzero"`
	Error  Text `json:"error,omitzero"`
	// Redacted is true if a secret was removed from this line. A replay may differ for that reason alone.
	Redacted bool `json:"redacted,omitempty"`
}

// Record is one of the host's own records: ledger, scope or mode.
type Record struct {
	Table string `json:"table"`
	Key   Text   `json:"key"`
	Value Text   `json:"value"`
}

// FailedCommit is a commit that failed.
type FailedCommit struct {
	// Nth counts the operation's commits from 1.
	Nth   int64 `json:"nth"`
	Error Text  `json:"error"`
}

// Entry is one entry into the guest.
type Entry struct {
	// Op is the export that was called; abi.InitExport is the start of an instance.
	Op string `json:"enter"`
	At string `json:"at"`
	// Request is the envelope.
	Request Text   `json:"request,omitzero"`
	Calls   []Call `json:"calls,omitempty"`
	// Answer is the guest's answer, or an error object if IsError is set. Failure is the host's error if the guest did
	// not answer.
	Answer  Text `json:"answer,omitzero"`
	IsError bool `json:"is_error,omitempty"`
	Failure Text `json:"failure,omitzero"`
	// Stopped is true if the guest was stopped at its deadline, or because the caller went away.
	Stopped bool `json:"stopped,omitempty"`
	// QueuedUS is how long the entry waited for an instance, GuestUS how long it was in the guest.
	QueuedUS int64 `json:"queued_us,omitempty"`
	GuestUS  int64 `json:"guest_us,omitempty"`
}

// Call is one host call.
type Call struct {
	// Name is the name of the import.
	Name string `json:"call"`
	// In has the texts that the guest passed, Args the numbers, each in the order of the parameters.
	In   []Text  `json:"in,omitempty"`
	Args []int64 `json:"args,omitempty"`
	// Result is the result of an import that returns a number. Head and Body are a pulled answer; if IsError is set,
	// Head is an error object.
	Result  *int64 `json:"result,omitempty"`
	Head    Text   `json:"head,omitzero"`
	Body    Text   `json:"body,omitzero"`
	IsError bool   `json:"is_error,omitempty"`
	// IO lists the native calls that it made, as traces do; BackendUS is the time that they took.
	IO        []abi.IO `json:"io,omitempty"`
	BackendUS int64    `json:"backend_us,omitempty"`
	// Noted means that the ledger recorded the send before the first native call of a write. Landed is what the host
	// then knew about the outcome: 0 nothing can have arrived, 1 it may have, 2 it has.
	Noted  bool  `json:"noted,omitempty"`
	Landed int64 `json:"landed,omitempty"`
}

// Difference is the first place where a replay deviated from its cassette.
type Difference struct {
	// Operation is the operation's number, from 1; Name is its name.
	Operation int64  `json:"operation"`
	Name      string `json:"name"`
	// Entry is the export of the guest in which the difference is, "" if it is not in one. Call is the number of the
	// host call, from 1; 0 if it is not in a host call.
	Entry string `json:"entry,omitempty"`
	Call  int    `json:"call,omitempty"`
	// What describes the difference in words.
	What string `json:"what"`
	// Expected is what the cassette has, Got what the module did: excerpts around Byte, the first byte that differs.
	Byte     int    `json:"byte"`
	Expected string `json:"expected"`
	Got      string `json:"got"`
	// Redacted means that a secret was removed from this operation when it was recorded, which may be the only
	// difference.
	Redacted bool `json:"redacted,omitempty"`
}

// String describes the difference in a few lines.
func (d *Difference) String() string {
	where := fmt.Sprintf("operation %d, %s", d.Operation, d.Name)
	if d.Entry != "" {
		where += ", in the guest's " + d.Entry
	}
	if d.Call > 0 {
		where += fmt.Sprintf(", host call %d", d.Call)
	}
	text := fmt.Sprintf("%s: %s\n  at byte %d\n  expected  %s\n  got       %s", where, d.What, d.Byte,
		cmp.Or(d.Expected, "(nothing)"), cmp.Or(d.Got, "(nothing)"))
	if d.Redacted {
		text += "\n  a secret was removed from this operation when it was recorded, which may be all that differs"
	}
	return text
}

// End is the last line of a cassette.
type End struct {
	// Operations is the number of operations.
	Operations int64 `json:"operations"`
}

// Text is bytes that are mostly text: a JSON string if they are UTF-8, otherwise {"base64": "..."}.
type Text []byte

// IsZero reports whether the text is empty, for omitzero.
func (t Text) IsZero() bool { return len(t) == 0 }

type binary struct {
	Base64 *string `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.Valid(t) {
		return plainjson.Marshal(string(t))
	}
	encoded := base64.StdEncoding.EncodeToString(t)
	return plainjson.Marshal(binary{&encoded})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(text []byte) error {
	var s string
	if len(text) > 0 && text[0] == '{' {
		var b binary
		if err := strict(text, &b); err != nil {
			return err
		}
		if b.Base64 == nil {
			*t = nil
			return nil
		}
		decoded, err := base64.StdEncoding.Strict().DecodeString(*b.Base64)
		*t = decoded
		return err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	*t = Text(s)
	return nil
}
