// Package registryclients tests memhost push, pull, sign and modules.trust with other people's programs: crane, oras
// and cosign as clients, and the CNCF's distribution as a registry without the referrers API.
//
//	tools/live registry
//
// The programs are built once from their Go modules, into the cache folder of testenv; no module of this repository
// requires them. What they would send to another machine is refused: everything but loopback goes to a proxy that does
// not exist.
package registryclients
