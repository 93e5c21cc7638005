// Package releasetest tests what `make release` made, as users meet it, and `go install` from the module's
// zip.
//
//	tools/live release
package releasetest
