package abi

// Envelope wraps every request that the host makes to a guest.
type Envelope struct {
	Op         string       `json:"op"`
	Scope      MemoryScope  `json:"scope"`
	Generation int64        `json:"generation"`
	Mode       EnvelopeMode `json:"mode"`
	// DeadlineMS is what is left of the call's time when it enters the guest.
	DeadlineMS int64 `json:"deadline_ms"`
	// Now is RFC 3339, in UTC: the host's clock, virtual under replay.
	Now    string  `json:"now"`
	Resume *Resume `json:"resume,omitempty"`
	// Again is set on a write of an event that the backend has had before, and of which it kept nothing.
	Again bool `json:"again,omitempty"`
	// Items is of retrieve: how many items to ask the backend for, which the host derives from max_tokens and the
	// manifest's limits where neither the budget nor the configuration limits items. It does not limit what is shown.
	// 0: the host says nothing.
	Items int64 `json:"items,omitempty"`
	// Body is the request of the operation: a MemoryEvent in record_event, a RetrieveRequest in retrieve, and so on.
	Body Raw `json:"body" codec:"document"`
}

// Empty is the body of the operations that ask for nothing: setup_scope, reset_scope, health and inventory.
type Empty struct{}

// EnvelopeMode tells a guest the mode. It is for information: the host enforces the mode.
type EnvelopeMode struct {
	ReadOnly bool `json:"read_only"`
}

// Resume asks to finish a write that was partial.
type Resume struct {
	Missing []string `json:"missing"`
	Markers []string `json:"markers"`
}

// GuestConfig is the answer of the config import.
type GuestConfig struct {
	Provider  string        `json:"provider"`
	Kind      ConditionKind `json:"kind"`
	Namespace string        `json:"namespace,omitempty"`
	Tokenizer string        `json:"tokenizer"`
	// Profile is ProfileSourceDesign. Absent: ProfileBest.
	Profile Profile `json:"profile,omitempty"`
	// Frame is the operator's wish for formatted_context. Absent: FrameFull.
	Frame Frame `json:"frame,omitempty"`
	// Config is the validated block, preset and defaults laid under it. A secret stands as {"secret": NAME}.
	Config Raw `json:"config"`
	// Secrets lists the manifest's secrets for which the operator gave a value.
	Secrets []string `json:"secrets"`
}

// HTTPRequest is the head of an http_send call. Its body travels beside it as raw bytes.
type HTTPRequest struct {
	Route string `json:"route"`
	// Params fill the {name} parts of the route's path; the host escapes them.
	Params  map[string]string `json:"params,omitempty"`
	Query   []QueryParam      `json:"query,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// TimeoutMS bounds this one exchange, in ms; 0 means that only the call's deadline bounds it. When it is over the
	// call returns the error timeout, and the guest continues.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
}

// QueryParam is one key and value of a URL's query; a key may recur.
type QueryParam struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// HTTPResponse is the head of an http_send result. The body follows it as raw bytes.
type HTTPResponse struct {
	Status int64 `json:"status"`
	// Headers have lower-case names; several values are joined by ", ".
	Headers map[string]string `json:"headers"`
	// Empty is true where the manifest declares that this answer means "nothing there".
	Empty bool `json:"empty,omitempty"`
}

// BoltRequest is the head of a bolt_run call. The statement's text stands in the manifest.
type BoltRequest struct {
	Route string `json:"route"`
	// Params is an object: the statement's parameters by name, without the $. A JSON number without fraction and
	// exponent is a Cypher INTEGER (of 64 bits), any other one a FLOAT; strings, booleans, null, lists and maps are
	// what they are. Absent means none.
	Params Raw `json:"params,omitempty"`
}

// BoltResult is the head of a bolt_run result. The rows follow it: each is a JSON array in the order of Columns, ended
// by a newline. ABI.md says how Cypher's types are written there.
type BoltResult struct {
	Columns []string `json:"columns"`
	Rows    int64    `json:"rows"`
	// More is true when the rows were cut at a limit of the host. The statement has run to its end nevertheless.
	More bool `json:"more"`
	// Counters tells what the statement changed: nodes_created, properties_set and so on, those that are not 0.
	Counters map[string]int64 `json:"counters"`
	// Server is what the database calls itself, such as Neo4j/5.26.2.
	Server string `json:"server,omitempty"`
}

// StateVersion is the head of state_get (the value follows) and state_put. Version 0 means that the key is absent.
type StateVersion struct {
	Version int64 `json:"version"`
}

// StateSeq is the head of state_append: the entry's sequence number, from 1.
type StateSeq struct {
	Seq int64 `json:"seq"`
}

// StateDeleted is the head of state_delete.
type StateDeleted struct {
	Deleted int64 `json:"deleted"`
}

// StateListRequest asks state_list for the keys that begin with Prefix, in byte order.
type StateListRequest struct {
	Prefix string `json:"prefix"`
	// After continues behind a key (exclusive); empty starts at the first.
	After string `json:"after,omitempty"`
	// Limit is a number of keys; 0 means the most the host gives, 1000.
	Limit int64 `json:"limit,omitempty"`
	// Values asks for the values too: they follow the head one after another.
	Values bool `json:"values,omitempty"`
}

// StateList is the head of state_list.
type StateList struct {
	Keys []StateKey `json:"keys"`
	// More is true when the page ended before the keys did.
	More bool `json:"more"`
}

// StateKey is one key of a StateList.
type StateKey struct {
	Key     string `json:"key"`
	Version int64  `json:"version"`
	// Size is the value's length in bytes.
	Size int64 `json:"size"`
}

// StateReadRequest asks state_read for entries of a log.
type StateReadRequest struct {
	Log string `json:"log"`
	// From is the first sequence number wanted; 0 means the first entry, or with Reverse the last.
	From int64 `json:"from,omitempty"`
	// Limit is a number of entries; 0 means the most the host gives, 1000.
	Limit   int64 `json:"limit,omitempty"`
	Reverse bool  `json:"reverse,omitempty"`
}

// StateEntries is the head of state_read; the entries' bytes follow one after another.
type StateEntries struct {
	Entries []StateEntry `json:"entries"`
	// Last is the log's last sequence number, 0 when it is empty.
	Last int64 `json:"last"`
	More bool  `json:"more"`
}

// StateEntry is one entry of a log.
type StateEntry struct {
	Seq int64 `json:"seq"`
	// Size is the entry's length in bytes.
	Size int64 `json:"size"`
}
