package serving

import (
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// baseMemory is the memory that a slot needs besides its calls, in bytes.
const baseMemory = 96 << 20

// callMemory is the memory that all calls may take together, in bytes: the configured limit, or else what the process
// has and does not need itself. 0: no limit.
func callMemory(configured, process int64) int64 {
	if configured > 0 || process == 0 {
		return configured
	}
	return max(process-baseMemory, process/4)
}

// guestMemory is the memory limit of a module instance, in bytes: the configured one, or by default at most a quarter
// of the cgroup's limit, so that a growing instance ends its call and not the process.
func guestMemory(configured, group int64) int64 {
	if configured != defaultGuestMemory || group == 0 {
		return configured
	}
	return min(configured, max(group/4, leastGuestMemory))
}

const (
	defaultGuestMemory = 128 << 20 // of limits.memory_bytes
	leastGuestMemory   = 16 << 20
)

// processMemory is the memory that this process may have, in bytes: the least of GOMEMLIMIT, the limits of its cgroup
// and the machine's memory; 0 if nothing is known. Without GOMEMLIMIT it makes the runtime collect garbage before the
// cgroup's limit kills the process.
func processMemory() int64 {
	limit := debug.SetMemoryLimit(-1)
	group := groupMemory(os.ReadFile)
	if limit == math.MaxInt64 {
		limit = 0
		if group > 0 {
			const tenths = 9
			debug.SetMemoryLimit(group / 10 * tenths)
		}
	}
	return least(limit, group, machineMemory(os.ReadFile))
}

// least returns the least of numbers above 0; 0 if there is none.
func least(numbers ...int64) (n int64) {
	for _, m := range numbers {
		if m > 0 && (n == 0 || m < n) {
			n = m
		}
	}
	return n
}

// groupMemory is the smallest limit of the cgroups (version 1 and 2) that this process is in; 0 if there is none.
func groupMemory(read func(string) ([]byte, error)) int64 {
	const root = "/sys/fs/cgroup"
	text, _ := read("/proc/self/cgroup") // exists on Linux only
	var limit int64
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		base, file := root, "memory.max"
		switch {
		case parts[1] == "memory":
			base, file = root+"/memory", "memory.limit_in_bytes"
		case parts[0] != "0":
			continue
		}
		// In a container the path may be that on the machine, while the container's own group is at the root.
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			text, _ := read(base + strings.TrimSuffix(at, "/") + "/" + file)
			n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is no limit
			const none = 1 << 60                                              // version 1 has a huge number then
			if n < none {
				limit = least(limit, n)
			}
			if at == "/" {
				break
			}
		}
	}
	return limit
}

// machineMemory is the machine's memory from /proc/meminfo; 0 if it is unknown.
func machineMemory(read func(string) ([]byte, error)) int64 {
	text, _ := read("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}
