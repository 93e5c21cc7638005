// Package conformance reports whether a memory plugin keeps the contract: sixteen clauses, each with a verdict and the
// evidence for it.
//
// A plugin's author calls Test from a Go test, with the module and a configuration block that leads to a backend, real
// or fake:
//
//	func TestConformance(t *testing.T) {
//		server := httptest.NewServer(fake)
//		defer server.Close()
//		conformance.Test(t, conformance.Target{Provider: host.ProviderConfig{
//			Name: "mine", Module: wasm, Block: abi.Raw(`{"url": "` + server.URL + `"}`)}})
//	}
//
// Run gives the Report itself. The command line is `memhost conformance`.
//
// The kit speaks to the plugin as an agent does, through a slot of package host on data folders of its own, in scopes
// of its own, which it resets at the end. It stands between host and backend (host.Options.Intercept): there
// it sees what was sent, injects faults and crashes the host, so that this works with a real backend too. It waits for
// readiness and for nothing else.
//
// Reading order: target.go (what is tested), report.go (verdicts), kit.go (one clause end to end), rig.go (a slot with
// the plugin), outcome.go (what a check finds), wire.go (between host and backend), plant.go (facts and how they are
// looked for), then a file per group of clauses.
package conformance
