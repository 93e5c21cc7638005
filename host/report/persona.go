package report

import "github.com/memhost/memhost/abi"

// PersonaRequest asks to erase all that is held of a person: by the provider that serves, by those that served before,
// and in the archive.
//
//	{"persona_id": "ann", "run_id": "", "reason": "asked by ann"}
type PersonaRequest struct {
	PersonaID string `json:"persona_id"`
	// RunID names one run; "" means all.
	RunID  string `json:"run_id,omitempty"`
	Reason string `json:"reason"`
}

// Validate checks the ids.
//
// Errors: invalid_argument.
func (x *PersonaRequest) Validate() error {
	scope := abi.MemoryScope{RunID: x.RunID, PersonaID: x.PersonaID}
	if scope.RunID == "" {
		scope.RunID = "any"
	}
	return scope.Validate()
}

// PersonaReceipt answers a PersonaRequest.
//
//	{"status": "partial", "scopes": [{"provider": "mem0", "run_id": "r", "status": "failed", "remains": ["..."]}],
//	 "archived_events": 12, "may_remain": ["..."]}
type PersonaReceipt struct {
	// Status is done, in_progress or partial.
	Status abi.ForgetStatus `json:"status"`
	Scopes []ErasedScope    `json:"scopes"`
	// ArchivedEvents counts the events that the archive has lost.
	ArchivedEvents int64 `json:"archived_events"`
	// MayRemain says all that is left and why, what remains of each scope included.
	MayRemain []string `json:"may_remain"`
	// Outside names the copies that the host's store cannot reach, such as a database's files, and what to do about them.
	Outside []string `json:"outside,omitempty"`
}

// ErasedScope is a scope of the person, with the outcome of its reset.
type ErasedScope struct {
	Provider         string `json:"provider"`
	BackendNamespace string `json:"backend_namespace,omitempty"`
	RunID            string `json:"run_id"`
	AgentID          string `json:"agent_id,omitempty"`
	// Serving: the provider serves now. Others are opened for the reset, with the configuration that they had last.
	Serving bool            `json:"serving"`
	Status  abi.ResetStatus `json:"status"`
	// Removed counts removed items by native type; a nil count means that the backend does not say.
	Removed map[string]*int64 `json:"removed"`
	// Remains says what is left and why; of a provider that could not be opened or asked, why not.
	Remains []string `json:"remains"`
}
