package state

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/memhost/memhost/abi"
	berrors "go.etcd.io/bbolt/errors"
)

// Errors that a caller can distinguish with errors.Is.
var (
	// ErrConflict means that a precondition of the batch was not met; nothing was applied. Error.Conflict names it.
	ErrConflict = errors.New("precondition not met")
	// ErrQuota means that the batch would make a space larger than Batch.MaxSpaceBytes; nothing was applied.
	// Error.Quota has the numbers.
	ErrQuota = errors.New("state of the scope is full")
	// ErrInvalid means that the request itself is wrong, for example because of an empty key.
	ErrInvalid = errors.New("invalid request to the store")

	// ErrUnavailable means that the store could not be read or written (disk full, read-only file system, closed,
	// damaged, owned by another process, ...). The errors below are kinds of it.
	ErrUnavailable = errors.New("state cannot be reached or used")
	// ErrUncertain means that writing failed so late that the batch may or may not be there after a restart.
	ErrUncertain = errors.New("outcome of the commit is uncertain")
	// ErrClosed means that the store was closed.
	ErrClosed = errors.New("store is closed")
	// ErrDamaged means that the file is not as the store wrote it.
	ErrDamaged = errors.New("data file is damaged")

	// ErrOwned means that another process owns the data folder. Error.Owner identifies it if its slot.json could be
	// read.
	ErrOwned = errors.New("data folder belongs to another process")
	// ErrServed means that another host serves from the same database.
	ErrServed = errors.New("another host serves")
	// ErrLockLost means that another host has taken over the lock of the scope, or that something the operation depends
	// on has changed.
	ErrLockLost = errors.New("lock of the scope was lost")
	// ErrSchema means that an older or a newer memhost created the data folder, or the tables of the database.
	ErrSchema = errors.New("data folder has another schema")
	// ErrFolder means that the data folder cannot be used (not a directory, no permission, read-only, ...).
	ErrFolder = errors.New("data folder cannot be used")
	// ErrMoved means that the content was moved to another store, or that a move to this store is incomplete.
	ErrMoved = errors.New("content of the store was moved")
	// ErrIdentity means that the database belongs to another cluster than the data folder.
	ErrIdentity = errors.New("database of another cluster")
	// ErrLoss means that the database lacks commits that this host has seen.
	ErrLoss = errors.New("database has lost commits")
	// ErrDatabase means that the database rejects this user or accepts no writes (wrong password, no privilege, a
	// standby, ...).
	ErrDatabase = errors.New("database cannot be used")
)

// Error is a failure of the store. Its text names the file or database, what was attempted, what happened, and what to
// do next.
type Error struct {
	// Kind is one of the sentinels above, for errors.Is.
	Kind error
	// Message says what happened; Hint what to do next, or "".
	Message string
	Hint    string

	// Conflict is set for ErrConflict, Quota for ErrQuota, and Owner for ErrOwned if slot.json was readable.
	Conflict *Conflict
	Quota    *Quota
	Owner    *SlotInfo

	// Cause is the underlying error, if any; errors.Is and errors.As see it.
	Cause error
}

// Conflict names the precondition that was not met: on a key in a space, or on a record in a table.
type Conflict struct {
	Space Space
	// Key is the key of the put, or of the record if Table is set.
	Key   string
	Table Table
	// Expected and Found are versions of the key; 0 means absent. For records both are 0.
	Expected, Found int64
}

// Quota has the numbers of a rejected batch, in bytes.
type Quota struct {
	Space Space
	// Used is the usage before the batch, Needed what it would have been after it, Limit the batch's MaxSpaceBytes.
	Used, Needed, Limit int64
}

// Error is the message, and the hint after a semicolon.
func (e *Error) Error() string {
	if e.Hint == "" {
		return "state: " + e.Message
	}
	return "state: " + e.Message + "; " + e.Hint
}

// Unwrap returns Kind, the kind that Kind is a kind of, and Cause.
func (e *Error) Unwrap() []error {
	errs := []error{e.Kind}
	switch e.Kind {
	case ErrConflict, ErrQuota, ErrInvalid, ErrUnavailable:
	default:
		errs = append(errs, ErrUnavailable)
	}
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	return errs
}

// As makes errors.As (and so abi.AsError) find the contract's error in e: conflict, too_large for a quota,
// invalid_argument, and unavailable for the rest, with the kind as its reason. Unavailable is retryable if waiting may
// help, as with a full disk, or a folder that another process owns for now.
func (e *Error) As(target any) bool {
	t, ok := target.(**abi.Error)
	if !ok {
		return false
	}
	code, reason := abi.CodeUnavailable, ""
	switch e.Kind {
	case ErrConflict:
		code = abi.CodeConflict
	case ErrQuota:
		code, reason = abi.CodeTooLarge, "state_full"
	case ErrInvalid:
		code = abi.CodeInvalidArgument
	case ErrUncertain:
		reason = "state_uncertain"
	case ErrClosed:
		reason = "state_closed"
	case ErrDamaged:
		reason = "state_damaged"
	case ErrOwned:
		reason = "folder_owned"
	case ErrServed:
		reason = "another_host_serves"
	case ErrLockLost:
		reason = "turn_lost"
	case ErrSchema:
		reason = "folder_schema"
	case ErrFolder:
		reason = "folder"
	case ErrDatabase:
		reason = "database"
	case ErrMoved:
		reason = "moved"
	case ErrIdentity:
		reason = "another_cluster"
	case ErrLoss:
		reason = "commits_lost"
	}
	found := abi.WrapError(code, "state: "+e.Message, e).WithReason(reason).WithHint(e.Hint)
	found.Retryable = slices.Contains([]error{ErrUnavailable, ErrUncertain, ErrOwned, ErrServed, ErrLockLost}, e.Kind)
	*t = found
	return true
}

func invalid(format string, args ...any) *Error {
	return &Error{Kind: ErrInvalid, Message: fmt.Sprintf(format, args...)}
}

func errClosed(what string) *Error {
	return &Error{Kind: ErrClosed, Message: what + ": the store is closed"}
}

// damaged describes damage. (*Bolt).locate adds the path.
func damaged(format string, args ...any) *Error {
	return &Error{Kind: ErrDamaged, Message: fmt.Sprintf(format, args...)}
}

const damageHint = "restore the file from a copy, or move it away to start with empty state"

// hintFor says what an operator can do about a failure of the file system.
func hintFor(err error) string {
	text := strings.ToLower(err.Error())
	switch {
	case errors.Is(err, berrors.ErrMaxSizeReached):
		return "raise the limit of the data file or delete state"
	case errors.Is(err, syscall.ENOSPC), strings.Contains(text, "no space left"),
		strings.Contains(text, "not enough space"):
		return "make room on the disk and try again"
	case strings.Contains(text, "quota exceeded"), strings.Contains(text, "file too large"):
		return "raise the limit that the system sets, or make room, and try again"
	case errors.Is(err, syscall.EROFS), strings.Contains(text, "read-only file system"):
		return "mount it writable, or use another --data folder"
	case errors.Is(err, fs.ErrPermission):
		return "give this user the right to read and write there, or use another --data folder"
	case errors.Is(err, syscall.EIO), strings.Contains(text, "input/output error"):
		return "check the disk"
	}
	return ""
}
