// Package alone keeps processes that use the same folder out of each other's way. A process that ends, or is killed,
// is no longer in anybody's way. Where the system has no such locks everybody goes on at once.
package alone
