// Package honcho tests the provider honcho against a real server: the whole conformance kit, and parity with the
// official Python client.
//
// Nothing is started here: Honcho is in no package registry. An operator starts one (docs/backends/honcho.md) and gives
// its address:
//
//	HONCHO_URL=http://127.0.0.1:8000 HONCHO_KEY=... go test -tags live -timeout 60m -run '^TestLive_honcho$' ./internal/test/testenv/honcho/
//
// HONCHO_KEY is an admin key, or empty if the server runs without auth. HONCHO_PYTHON is a Python that has the package
// honcho-ai; default python3.
package honcho
