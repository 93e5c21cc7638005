// Package signing signs modules in registries, and checks signatures, in the form of cosign 3: a Sigstore bundle 0.3
// that holds a DSSE envelope with an in-toto statement about the digest of the module's OCI manifest.
//
// Keys are cosign's key pairs: ECDSA on P-256, the private half encrypted with a password. Keyless signatures, with a
// certificate of Sigstore, are checked with a trusted root that is given, without a connection; they are not made.
//
// # What is checked of a keyless signature
//
// The checks of cosign, in the order in which they are made here, each with the test that fails without it:
// C is TestAChangedKeylessSignatureIsRefused, E TestEachPartOfAKeylessSignatureCounts, K TestAClocksCertificateCounts,
// M TestACertificateCountsInItsMinutes, O TestOnlyASignatureIsASignature, R TestWhatTheRootDoesNotHaveDoesNotCount,
// W TestAKeylessSignatureIsForOneDigestAndOneIdentity.
//
//	the envelope has one signature, by the certificate's key      verifyBundle, envelope   C E
//	there are log entries, at most 32 of them and of timestamps   timesOf                  C
//	the log is one of the root's                                  verifyEntry              C R W
//	its checkpoint is signed by that log's key                    checkpointKey            C
//	the proof leads from the entry to the checkpoint's tree       checkIncluded            C
//	the entry has this signature, certificate and payload         checkBody                C E
//	the log has signed its time, its index and the entry (SET)    isPromised               C
//	a clock of the root has seen this signature                   verifyTimestamp          C E R
//	the clock's certificate is for clocks and was valid then      Sigstore's verification  K
//	a log or a clock says when                                    timesOf                  C
//	the log counted at each of the times, by the root             timesOf                  R
//	the issuer did, too                                           chainAt                  R
//	issuer and certificate were valid at each of the times        chainAt                  M E
//	the certificate is for signing code                           options                  E
//	it is in a log of certificates of the root (SCT)              checkLogged, sctsOf      E R
//	it has one name, and says who checked it                      identityOf               E
//	name and issuer are those that are wanted                     Keyless.Verify           W
//	the statement is a signature, and of this digest              checkStatement           O W
//
// Stricter than cosign: every entry and every timestamp has to be right, where cosign leaves out those of logs and
// clocks that the root does not have; each entry needs a proof, also where the log has signed its time; a log's period
// in the root binds entries of Rekor's version 2, too. Not checked: that a checkpoint's name is that of the log's URL,
// since only the log's own key signs it; the algorithms that an SCT names, since the log's key says which one it is.
// Entries of kind intoto, and certificates for a user name (otherName), are refused.
package signing
