// Package releasetest tests the output of `make release` as users install it, and `go install` from the module's zip.
//
//	tools/live release
package releasetest
