//go:build unix

package cli

import "syscall"

// fullDisk lists what a system says where nothing can be written any more: no space, no quota, or a limit of the size
// of files.
func fullDisk() []syscall.Errno {
	return []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
}
