//go:build !unix

package cli

import "syscall"

// fullDisk lists what a system says where nothing can be written any more: on Windows ERROR_HANDLE_DISK_FULL and
// ERROR_DISK_FULL.
func fullDisk() []syscall.Errno { return []syscall.Errno{39, 112} }
