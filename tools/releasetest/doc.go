// Package releasetest tests what `make release-snapshot` made, as users meet it, and `go install` from the module's
// zip.
//
//	make test-release
package releasetest
