// Package pagetest opens memhost's pages in a real Chromium: `tools/page test`. It has no code of its own besides its
// tests.
package pagetest
