package state

import "time"

// Options configure Open. The zero value suits a slot.
type Options struct {
	// Durability is what an acknowledged commit survives; the zero value means DurabilityPower.
	Durability Durability
	// LockTimeout is how long Open waits for another owner of the folder to release it; 0 means 200 ms. (bbolt checks
	// every 50 ms.)
	LockTimeout time.Duration
	// MaxFileBytes limits the data file: a commit that would need more fails with ErrUnavailable. It is rounded to
	// bbolt's growth steps (doubling up to 16 MiB, then 16 MiB at a time). 0 means no limit.
	MaxFileBytes int64
	// SyncEvery is how long DurabilityProcess may leave commits unsynced; 0 means a second.
	SyncEvery time.Duration
	// Upgrade says what to do with a data file of an older schema; the zero value means UpgradeAndServe.
	Upgrade Upgrade
	// OnUpgrade is called after a data file was upgraded, with its old schema and the path of the copy that was kept.
	OnUpgrade func(from int, backup string)
	// After is the clock; nil means time.After.
	After func(time.Duration) <-chan time.Time

	// beforeWrite is called by the committer with the size of each group, for tests.
	beforeWrite func(group int)
}

// Upgrade says what to do with a data file of an older schema.
type Upgrade string

const (
	// UpgradeAndServe upgrades the file after making a copy, which the first Close without an error removes. Until then
	// an older memhost can read the copy if it is renamed to the data file.
	UpgradeAndServe Upgrade = ""
	// UpgradeAndKeep upgrades in the same way, but Close keeps the copy.
	UpgradeAndKeep Upgrade = "keep"
	// UpgradeRefused makes Open return ErrSchema without changing the file. Close keeps an existing copy.
	UpgradeRefused Upgrade = "refused"
)

// Durability is what an acknowledged commit survives.
type Durability string

const (
	// DurabilityPower syncs every commit, or every group of concurrent commits: an acknowledged commit survives a power
	// loss.
	DurabilityPower Durability = "power"
	// DurabilityProcess syncs every Options.SyncEvery and at Close: an acknowledged commit survives the end of the
	// process, including kill -9.
	//
	// A power loss, or a crash of the kernel, loses at least what was committed since the last sync, and it may damage
	// the whole file. Without syncs in between, the operating system writes pages in any order, so the page that points
	// to all others can reach the disk before them; and bbolt reuses freed pages before the next sync. Open, or a read,
	// detects such damage (ErrDamaged), but nothing repairs it. Use it if the state can be recreated: for tests,
	// benchmarks, and runs that would be repeated anyway.
	DurabilityProcess Durability = "process"
)

const (
	defaultLockTimeout = 200 * time.Millisecond
	defaultSyncEvery   = time.Second
)

// withDefaults validates the options and fills in defaults.
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
