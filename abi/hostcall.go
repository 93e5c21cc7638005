package abi

// Envelope wraps every request that the host makes to a guest.
type Envelope struct {
	Op         string       `json:"op"`
	Scope      MemoryScope  `json:"scope"`
	Generation int64        `json:"generation"`
	Mode       EnvelopeMode `json:"mode"`
	// DeadlineMS is the time that the call has left when it enters the guest, in ms.
	DeadlineMS int64 `json:"deadline_ms"`
	// Now is the host's clock, RFC 3339 in UTC. Under replay it is the recorded time.
	Now    string  `json:"now"`
	Resume *Resume `json:"resume,omitempty"`
	// Again is set if the backend has received this event before and kept nothing of it.
	Again bool `json:"again,omitempty"`
	// Items is set for retrieve: the number of items to request from the backend. If neither the budget nor the
	// configuration limits items, the host derives it from max_tokens and the manifest's limits. It does not limit how
	// many are shown. 0 means that the host has no preference.
	Items int64 `json:"items,omitempty"`
	// Body is the request of the operation: a MemoryEvent in record_event, a RetrieveRequest in retrieve, and so on.
	Body Raw `json:"body" codec:"document"`
}

// Empty is the body of operations without parameters: setup_scope, reset_scope, health and inventory.
type Empty struct{}

// EnvelopeMode tells a guest the mode. It is informational: the host enforces the mode.
type EnvelopeMode struct {
	ReadOnly bool `json:"read_only"`
}

// Resume asks the provider to finish a partial write.
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
	// Profile is ProfileSourceDesign, or absent for ProfileBest.
	Profile Profile `json:"profile,omitempty"`
	// Frame is the configured frame of formatted_context. Absent: FrameFull.
	Frame Frame `json:"frame,omitempty"`
	// Config is the validated block, merged over the preset and the defaults. A secret appears as {"secret": NAME}.
	Config Raw `json:"config"`
	// Secrets names those of the manifest's secrets that the operator has set.
	Secrets []string `json:"secrets"`
}

// HTTPRequest is the head of an http_send call. The request's body follows it as raw bytes.
type HTTPRequest struct {
	Route string `json:"route"`
	// Params are the values of the {name} parts of the route's path. The host escapes them.
	Params  map[string]string `json:"params,omitempty"`
	Query   []QueryParam      `json:"query,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// TimeoutMS bounds this one exchange, in ms; 0 means that only the call's deadline does. After it, the call returns
	// the error timeout and the guest continues.
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
	// Empty is true if the manifest declares that this answer means "nothing there".
	Empty bool `json:"empty,omitempty"`
}

// BoltRequest is the head of a bolt_run call. The text of the statement is in the manifest.
type BoltRequest struct {
	Route string `json:"route"`
	// Params is an object with the statement's parameters by name, without the $. A JSON number without fraction and
	// exponent becomes a Cypher INTEGER (64 bits), any other number a FLOAT; strings, booleans, null, lists and maps
	// keep their type. Absent means no parameters.
	Params Raw `json:"params,omitempty"`
}

// BoltResult is the head of a bolt_run result. The rows follow it: each is a JSON array in the order of Columns, ended
// by a newline. ABI.md defines the JSON form of Cypher's types.
type BoltResult struct {
	Columns []string `json:"columns"`
	Rows    int64    `json:"rows"`
	// More is true if the host cut the rows at one of its limits. The statement itself has run to completion.
	More bool `json:"more"`
	// Counters are the changes that the statement made (nodes_created, properties_set, ...), without those that are 0.
	Counters map[string]int64 `json:"counters"`
	// Server is the database's name and version, such as Neo4j/5.26.2.
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
	// After is the key after which the page starts; empty starts at the first key.
	After string `json:"after,omitempty"`
	// Limit is the maximum number of keys; 0 means the host's maximum, 1000.
	Limit int64 `json:"limit,omitempty"`
	// Values asks for the values too. They follow the head, concatenated.
	Values bool `json:"values,omitempty"`
}

// StateList is the head of state_list.
type StateList struct {
	Keys []StateKey `json:"keys"`
	// More is true if there are more keys after this page.
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
	// From is the first sequence number to read. 0 means the first entry, or the last with Reverse.
	From int64 `json:"from,omitempty"`
	// Limit is the maximum number of entries; 0 means the host's maximum, 1000.
	Limit   int64 `json:"limit,omitempty"`
	Reverse bool  `json:"reverse,omitempty"`
}

// StateEntries is the head of state_read. The bytes of the entries follow it, concatenated.
type StateEntries struct {
	Entries []StateEntry `json:"entries"`
	// Last is the log's last sequence number, 0 if the log is empty.
	Last int64 `json:"last"`
	More bool  `json:"more"`
}

// StateEntry is one entry of a log.
type StateEntry struct {
	Seq int64 `json:"seq"`
	// Size is the entry's length in bytes.
	Size int64 `json:"size"`
}
