// Package signing signs modules in registries, and verifies signatures, in the format of cosign 3: a Sigstore bundle
// 0.3 that holds a DSSE envelope with an in-toto statement about the digest of the module's OCI manifest.
//
// Keys are cosign's key pairs: ECDSA on P-256, the private half encrypted with a password. Keyless signatures, with a
// certificate from Sigstore, are verified offline with a trusted root from the caller. The package cannot create them.
//
// # How keyless signatures are verified
//
// sigstore-go makes the checks that cosign makes. This package only adds stricter checks. The table names the function
// and the test that fails without the check: C is TestAChangedKeylessSignatureIsRefused, E
// TestEachPartOfAKeylessSignatureCounts, K TestAClockIsNamedByTheRoot, O TestOnlyASignatureIsASignature, R
// TestWhatTheRootDoesNotHaveDoesNotCount, S TestASingleChangeIsRefused, W TestEachWitnessCounts.
//
//	the envelope has one signature, by the certificate's key    verifySignature, readBundle  C E
//	the certificate's key is of ECDSA on P-256                  verifySignature              E
//	it has one name, and says who checked it                    identityOf                   E
//	every log entry is of a log of the root                     checkEntry                   C R
//	each has a proof, which leads from its body to the tree
//	of the checkpoint                                           checkEntry                   C S
//	an entry is of kind dsse 0.0.1 or hashedrekord 0.0.2, has
//	one signature, and is of its log's version                  checkEntry                   C E
//	every log entry and every timestamp is right, where cosign
//	leaves out those that it cannot check                       verifyWitnesses              C W
//	every log was valid at each of the times, also with
//	version 2 of Rekor                                          verifySignature              R
//	one issuer was valid at all of them                         verifySignature              W
//	the trusted root names the clock, not only its authority    readRoot                     K
//	the statement is a signature, and of this digest            checkStatement               O
//
// So entries of kind intoto, and certificates for a user name (otherName), are rejected.
package signing
