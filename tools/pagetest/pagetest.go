// Package pagetest opens memhost's pages in a real Chromium: `make test-page`. It has no code of its own besides its
// tests.
package pagetest
