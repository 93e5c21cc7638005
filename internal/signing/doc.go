// Package signing signs modules in registries, and checks signatures, in the form of cosign 3: a Sigstore bundle 0.3
// that holds a DSSE envelope with an in-toto statement about the digest of the module's OCI manifest.
//
// Keys are cosign's key pairs: ECDSA on P-256, the private half encrypted with a password. Keyless signatures, with a
// certificate of Sigstore, are checked with a trusted root that is given, without a connection; they are not made.
package signing
