package state

import "time"

// Options says how Open works. The zero value suits a slot.
type Options struct {
	// Durability is what an acknowledged commit survives; the zero value means DurabilityPower.
	Durability Durability
	// LockTimeout is how long Open waits for another owner of the folder to let go; 0 means 200 ms. (bbolt looks every
	// 50 ms.)
	LockTimeout time.Duration
	// MaxFileBytes bounds the data file: a commit that would need more is ErrUnavailable. It is rounded to bbolt's
	// steps of growth (doubling up to 16 MiB, then 16 MiB at a time). 0 means no bound.
	MaxFileBytes int64
	// SyncEvery is how long DurabilityProcess leaves commits unsynced; 0 means a second.
	SyncEvery time.Duration
	// Upgrade says what becomes of a data file of an older schema; the zero value means UpgradeAndServe.
	Upgrade Upgrade
	// OnUpgrade is called when a data file was upgraded, with the schema that it had and the copy of it that was kept.
	OnUpgrade func(from int, kept string)
	// After is the clock: time.After when nil.
	After func(time.Duration) <-chan time.Time

	// beforeWrite is called by the committer with the size of each group, for tests.
	beforeWrite func(group int)
}

// Upgrade says what becomes of a data file of an older schema.
type Upgrade string

const (
	// UpgradeAndServe upgrades it, after a copy was made that the first Close without an error removes. Until then the
	// copy, renamed to the data file, is what an older memhost reads.
	UpgradeAndServe Upgrade = ""
	// UpgradeAndKeep upgrades it in the same way. Close leaves the copy.
	UpgradeAndKeep Upgrade = "keep"
	// UpgradeRefused makes Open return ErrSchema and leave the file as it is. Close leaves a copy that is there.
	UpgradeRefused Upgrade = "refused"
)

// Durability is what an acknowledged commit survives.
type Durability string

const (
	// DurabilityPower syncs every commit, or every group of commits that came together: an acknowledged commit survives
	// the loss of power.
	DurabilityPower Durability = "power"
	// DurabilityProcess syncs every Options.SyncEvery and at Close: an acknowledged commit survives the end of the
	// process, kill -9 included.
	//
	// A loss of power, or a crash of the kernel, loses at least what was committed since the last sync, and it may
	// leave the file damaged as a whole: without a sync between them the operating system writes pages in any order, so
	// that the page which says where everything lies can reach the disk before what it points to, and bbolt uses freed
	// pages again before the next sync. Open, or a read, notices such damage (ErrDamaged); nothing repairs it. Use it
	// where state can be made again: tests, benchmarks, runs that would be repeated anyway.
	DurabilityProcess Durability = "process"
)

const (
	defaultLockTimeout = 200 * time.Millisecond
	defaultSyncEvery   = time.Second
)

// withDefaults checks the options and fills in what 0 means.
func (o Options) withDefaults() (Options, error) {
	switch o.Durability {
	case "":
		o.Durability = DurabilityPower
	case DurabilityPower, DurabilityProcess:
	default:
		return o, invalid("durability is %q, want %q or %q", string(o.Durability), DurabilityPower, DurabilityProcess)
	}
	if o.LockTimeout < 0 || o.SyncEvery < 0 || o.MaxFileBytes < 0 {
		return o, invalid("LockTimeout %s, SyncEvery %s, MaxFileBytes %d: want 0 or more", o.LockTimeout, o.SyncEvery,
			o.MaxFileBytes)
	}
	if o.LockTimeout == 0 {
		o.LockTimeout = defaultLockTimeout
	}
	if o.SyncEvery == 0 {
		o.SyncEvery = defaultSyncEvery
	}
	if o.After == nil {
		o.After = time.After
	}
	return o, nil
}
