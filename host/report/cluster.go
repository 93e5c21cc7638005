package report

// Cluster is what the hosts of a slot agree on at a moment. A slot that one process owns has one host.
//
//	{"store": "postgres", "identity": "3e4c...", "incarnation": 1, "commits": 4711,
//	 "hosts": [{"name": "a/12", "version": "0.2.0", "began": "2026-03-01T09:30:00Z", "left_ms": 14200, "self": true}],
//	 "provider": "mem0", "module": "5f4d...", "generation": 3, "serving_since": "2026-03-01T09:30:01Z",
//	 "read_only": false, "turns": 0, "late_writes": []}
type Cluster struct {
	// Store is file or postgres.
	Store string `json:"store"`
	// Identity names the tables of a database for as long as they exist. Incarnation counts, from 1, how often an operator
	// accepted that the database had lost commits. Commits is the number of its latest commit. Empty for a file.
	Identity    string `json:"identity,omitempty"`
	Incarnation int64  `json:"incarnation,omitempty"`
	Commits     int64  `json:"commits,omitempty"`
	// Hosts are those whose sessions have not ended, in the order in which they came.
	Hosts []ClusterHost `json:"hosts"`
	// Provider serves since ServingSince; Generation counts the loads of all hosts. Empty while nothing has served yet.
	Provider     string `json:"provider,omitempty"`
	Module       string `json:"module,omitempty"` // SHA-256
	Generation   int64  `json:"generation,omitempty"`
	ServingSince string `json:"serving_since,omitempty"`
	// ReadOnly is the slot's mode.
	ReadOnly bool `json:"read_only"`
	// Turns is how many scopes are being written.
	Turns int64 `json:"turns"`
	// LateWrites are the latest writes that a host sent after its session had ended, the newest first, at most 100.
	LateWrites []LateWrite `json:"late_writes"`
}

// ClusterHost is one host of a slot.
type ClusterHost struct {
	// Name is the machine's name and the process's id: "a/12". Traces have it as host.
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Began   string `json:"began"`
	// LeftMS is how long its session lasts if it is not renewed, in milliseconds. Absent for a file.
	LeftMS *int64 `json:"left_ms,omitempty"`
	// Self marks the host that answers; none when the database was asked.
	Self bool `json:"self,omitempty"`
}

// LateWrite is a native call that changes a backend and left a host after its session had ended: the host was paused
// between the check of its session and the sending. Another host may have acted for the scope by then, and the call may
// have come after the slot became read-only. The outcome of its events is uncertain until they are looked up.
type LateWrite struct {
	At       string   `json:"at"`
	Host     string   `json:"host"`
	Route    string   `json:"route"`
	RunID    string   `json:"run_id"`
	Persona  string   `json:"persona_id"`
	EventIDs []string `json:"event_ids"`
}
