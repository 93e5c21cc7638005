package main

import (
	"strconv"

	"github.com/memhost/memhost/abi"
	"github.com/memhost/memhost/sdk"
)

// Keys of the scope's state while a reset is in progress.
const (
	resetJob   = "reset/job"
	resetTries = "reset/tries"
)

// maxResetDeletes is how many times a reset deletes before it gives up. Servers before library 2.0.15 delete some 100
// rows per call.
const maxResetDeletes = 100

// resetScope deletes the generation's memories and checks whether any is left: mem0 answers "all relevant memories
// deleted" in any case.
//
// Errors: those of failure.
func resetScope(b *backend, _ *abi.Empty) (*abi.ResetReceipt, error) {
	r := &abi.ResetReceipt{Status: abi.ResetDone, Removed: map[string]*int64{"memory": nil},
		OldGeneration: b.Generation,
		NewGeneration: b.Generation + 1, Trace: &abi.Trace{BackendName: b.config.Provider,
			NativeOperation: "DELETE /memories"}}
	if b.platform() {
		return r, b.resetPlatform(r)
	}
	return r, b.resetOSS(r)
}

func (b *backend) resetOSS(r *abi.ResetReceipt) error {
	const history = "history: mem0 keeps the texts of deleted memories, readable by memory id"
	query := []abi.QueryParam{{Key: "user_id", Value: b.ids.user}, {Key: "run_id", Value: b.ids.run}}
	r.Remains = []string{"message buffer: mem0 keeps the scope's last 10 messages and has no call to remove them for " +
		"one scope; the next generation has other ids and does not see them", history}
	if b.surface.gateway {
		r.Remains = []string{history}
		query = append(query, abi.QueryParam{Key: "buffer", Value: "true"})
	}
	body, err := b.send(request{route: "delete_scope", query: query})
	switch e := abi.AsError(err); {
	case err == nil && b.surface.gateway:
		var memories, messages *int64
		if err := read("delete_scope", body, "deleted", &memories, "buffer_rows", &messages); err != nil {
			return err
		}
		r.Removed = map[string]*int64{"memory": memories, "message": messages}
	case err == nil:
	case statusOf(e) == 403:
		r.Warnings = append(r.Warnings, "reset_without_admin: the key may not delete a scope at once; its memories "+
			"were deleted one by one")
		if err := b.deleteEach(); err != nil {
			return err
		}
	case e.Code == abi.CodeBackend && e.Reason == "unknown":
		// Two deletions at once get this answer although the rows are gone, so the read decides.
	default:
		return err
	}
	left, err := b.list(1)
	if err != nil || len(left) == 0 {
		return err
	}
	return b.again(r)
}

// deleteEach deletes the listed memories, as far as the time allows.
func (b *backend) deleteEach() error {
	rows, err := b.list(listMax)
	for _, m := range rows {
		if err != nil || b.Remaining() < 2000 {
			break
		}
		if _, err = b.send(request{route: "delete", params: memoryParam(m.id)}); abi.CodeOf(err) == abi.CodeNotFound {
			err = nil
		}
	}
	return err
}

// again makes the host call once more, unless that happened too often.
func (b *backend) again(r *abi.ResetReceipt) error {
	kept, _, err := b.Get(resetTries)
	if err != nil {
		return err
	}
	tries, _ := strconv.Atoi(string(kept))
	if tries++; tries >= maxResetDeletes {
		r.Status, r.NewGeneration = abi.ResetIncomplete, r.OldGeneration
		r.Remains = append(r.Remains, "memories: mem0 still lists some after "+sdk.Itoa(tries)+" deletions")
		return nil
	}
	r.Status = abi.ResetInProgress
	return b.Put(resetTries, []byte(sdk.Itoa(tries)), sdk.AnyVersion)
}

// resetPlatform deletes by one id only: given several, the platform uses one of them without saying which. run_id is on
// every record. The platform deletes in a job; the host calls again until it is done.
func (b *backend) resetPlatform(r *abi.ResetReceipt) error {
	r.Trace.NativeOperation = "DELETE /v1/memories/"
	r.Remains = []string{"entity records: the platform keeps the names of the scope's user and run"}
	kept, version, err := b.Get(resetJob)
	if err != nil {
		return err
	}
	if version == 0 || len(kept) == 0 {
		id, query := "", []abi.QueryParam{{Key: "run_id", Value: b.ids.run}}
		if _, err := b.ask(request{route: "platform_delete_scope", query: query}, "event_id", &id); err != nil {
			return err
		}
		if id != "" {
			r.Status = abi.ResetInProgress
			return b.Put(resetJob, []byte(id), sdk.AnyVersion)
		}
	} else if done, err := b.deletionDone(string(kept), r); err != nil || !done {
		return err
	}
	left, _, err := b.listPlatform(1, 1)
	if err != nil || len(left) == 0 {
		return err
	}
	// Something arrived in the meantime: delete again.
	if err := b.Put(resetJob, nil, sdk.AnyVersion); err != nil {
		return err
	}
	return b.again(r)
}

// deletionDone reports whether the job has ended; otherwise the receipt contains its progress.
func (b *backend) deletionDone(id string, r *abi.ResetReceipt) (bool, error) {
	s, err := b.job(id)
	if err != nil || s == nil || s.succeeded() {
		return err == nil, err
	}
	r.Status = abi.ResetInProgress
	if s.failed() {
		r.Status, r.NewGeneration = abi.ResetFailed, r.OldGeneration
		r.Warnings = append(r.Warnings, "job_failed: "+s.problem)
	}
	return false, nil
}
