// Package compat tests the program with what earlier releases made: their modules, manifests, data folders and
// cassettes are in testdata, one folder per release.
//
// Every old module loads and passes the conformance kit. Every old cassette replays with the module of then. Every old
// data folder opens with the module of then and with the module of today, and what was recorded in it is found.
//
// testdata/README.md says what is in a release's folder, how it is made, and which rules hold.
package compat
