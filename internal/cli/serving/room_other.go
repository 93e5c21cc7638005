//go:build !unix

package serving

import "syscall"

// fullDisk lists the errors of a full disk: on Windows ERROR_HANDLE_DISK_FULL and ERROR_DISK_FULL.
func fullDisk() []syscall.Errno { return []syscall.Errno{39, 112} }
