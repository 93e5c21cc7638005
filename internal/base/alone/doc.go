// Package alone locks a folder against other processes that use it. The lock ends with its process, even if that is
// killed. On systems without such locks, no process waits.
package alone
