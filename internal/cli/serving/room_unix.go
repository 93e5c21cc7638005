//go:build unix

package serving

import "syscall"

// fullDisk lists the errors that mean that nothing can be written: no space, no quota, or a limit on file size.
func fullDisk() []syscall.Errno {
	return []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
}
