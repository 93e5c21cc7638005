// Package cassette is the file that a recording is kept in: every operation of a slot, every entry into its guest,
// every host call that the guest made, and the result of each. Package host writes one (host.Options.Cassette) and
// plays one (host.Replay); this package has the format only.
//
// A cassette is JSON Lines. The first line is the Header, the last an End; between them is one Operation a line. Each
// line ends in a checksum over itself and all lines before it, so that a line that was cut off, changed, removed or
// moved is found, with its number.
//
// No secret is in it: the host removes the operator's secrets from every text before it is written, and guests never
// see one.
package cassette

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/internal/text/plainjson"
)

// Version is the form that this package writes and reads.
const Version = 1

// Names of operations that are not in the contract.
const (
	// OpOpen loads the first provider, OpSwap another one.
	OpOpen = "open"
	OpSwap = "swap"
	// OpBackground is an entry into the guest that no caller asked for.
	OpBackground = "background"
)

// Header begins a cassette.
type Header struct {
	// Cassette is Version.
	Cassette int64 `json:"cassette"`
	// Revision is the Revision of the program that recorded it.
	Revision    int64  `json:"revision,omitempty"`
	HostVersion string `json:"host_version"`
	HostCommit  string `json:"host_commit,omitempty"`
	// Created is when, RFC 3339.
	Created string `json:"created"`
	// Clock is virtual: an operation's clock starts with the operation and advances 1 us a reading.
	Clock string `json:"clock"`
	// Seed is that of all randomness, in hex; operation n draws from SHA-256(seed, n).
	Seed string `json:"seed"`
	// Load is the provider that was opened.
	Load Load `json:"load"`
}

// Load is a provider that took its place behind the slot: which module, in which configuration.
type Load struct {
	Module abi.RunModule `json:"module"`
	ABI    string        `json:"abi"`
	// Provider is the name, Word how the configuration chose it: backend or condition.
	Provider string `json:"provider"`
	Word     string `json:"word"`
	// Config is the effective block, with the names of secrets instead of their values. ConfigHash is the run
	// manifest's.
	ConfigHash string  `json:"config_hash"`
	Config     abi.Raw `json:"config"`
	// Profile is the run manifest's. Cassettes from before there were profiles have none, which means best.
	Profile abi.Profile `json:"profile,omitempty"`
	// Frame is the run manifest's. Cassettes from before there were frames have none, which means full.
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

// Secret is a secret's name with the origin that it is for.
type Secret struct {
	Name   string `json:"name"`
	Origin string `json:"origin"`
}

// Limits are those that an answer may depend on, in bytes.
type Limits struct {
	Memory    int64 `json:"memory"`
	HighWater int64 `json:"high_water"`
	Request   int64 `json:"request"`
	Response  int64 `json:"response"`
}

// Operation is one operation of the slot, with all that it did to the guest.
type Operation struct {
	// N counts from 1.
	N int64 `json:"n"`
	// Name is an operation of the contract, or OpOpen, OpSwap, OpBackground.
	Name string `json:"op"`
	// At is where the virtual clock began, RFC 3339.
	At string `json:"at"`
	// Request is the contract's JSON; empty for OpOpen, OpSwap and OpBackground.
	Request Text `json:"request,omitzero"`
	// Load is the new provider of OpSwap.
	Load *Load `json:"load,omitempty"`
	// Records are what the host read of an earlier time: a cassette may begin on a data folder that is not empty.
	Records []Record `json:"records,omitempty"`
	Entries []Entry  `json:"entries,omitempty"`
	// ElapsedUS are the durations that the host measured of the operation as a whole, in the order in which it asked.
	ElapsedUS []int64 `json:"elapsed_us,omitempty"`
	// Usage are the sizes of a space that the host asked its store for, in the order in which it asked.
	Usage []int64 `json:"usage,omitempty"`
	// Failed are commits that the store refused.
	Failed []FailedCommit `json:"failed_commits,omitempty"`
	// Answer or Error is what the caller got: the contract's JSON.
	Answer Text `json:"answer,omitzero"`
	Error  Text `json:"error,omitzero"`
	// Redacted is true when a secret was removed from this line. A replay of it may differ for that reason alone.
	Redacted bool `json:"redacted,omitempty"`
}

// Record is one record that the host keeps for itself: ledger, scope or mode.
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
	// Answer is the guest's, an error object where IsError is set. Failure is the host's error where it did not answer.
	Answer  Text `json:"answer,omitzero"`
	IsError bool `json:"is_error,omitempty"`
	Failure Text `json:"failure,omitzero"`
	// Stopped is true when the guest was stopped at its deadline, or because the caller went away.
	Stopped bool `json:"stopped,omitempty"`
	// QueuedUS and GuestUS are how long it waited for an instance and was in the guest.
	QueuedUS int64 `json:"queued_us,omitempty"`
	GuestUS  int64 `json:"guest_us,omitempty"`
}

// Call is one host call.
type Call struct {
	// Name is the import's.
	Name string `json:"call"`
	// In are the texts that the guest handed over, Args its numbers, each in the order of the parameters.
	In   []Text  `json:"in,omitempty"`
	Args []int64 `json:"args,omitempty"`
	// Result is the number of an import that answers one. Head and Body are the answer of one that is pulled; IsError
	// tells that Head is an error object.
	Result  *int64 `json:"result,omitempty"`
	Head    Text   `json:"head,omitzero"`
	Body    Text   `json:"body,omitzero"`
	IsError bool   `json:"is_error,omitempty"`
	// IO are the native calls that it made, as traces have them, and BackendUS their time.
	IO        []abi.IO `json:"io,omitempty"`
	BackendUS int64    `json:"backend_us,omitempty"`
	// Noted: the send was written to the ledger before the first native call of a write was made. Landed is what the
	// host then knew of the outcome: 0 nothing can have arrived, 1 it may have, 2 it has.
	Noted  bool  `json:"noted,omitempty"`
	Landed int64 `json:"landed,omitempty"`
}

// Difference is the first place where a replay left its cassette.
type Difference struct {
	// Operation is the operation's number, from 1, and Name its name.
	Operation int64  `json:"operation"`
	Name      string `json:"name"`
	// Entry is the guest's export that was entered, "" where the difference is not inside one; Call is the host call,
	// from 1, 0 for no host call.
	Entry string `json:"entry,omitempty"`
	Call  int    `json:"call,omitempty"`
	// What says in words what differs.
	What string `json:"what"`
	// Expected is what the cassette has, Got what the module did: excerpts around Byte, where they differ first.
	Byte     int    `json:"byte"`
	Expected string `json:"expected"`
	Got      string `json:"got"`
	// Redacted: a secret was removed from this operation when it was recorded, which may be all that differs.
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

// End closes a cassette.
type End struct {
	// Operations is how many there are.
	Operations int64 `json:"operations"`
}

// Text is bytes that are mostly text: a JSON string where they are UTF-8, {"base64": "..."} where they are not.
type Text []byte

// IsZero reports whether there is nothing, for omitzero.
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
