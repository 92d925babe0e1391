// Package krb keeps Kerberos tickets: a credential cache per identity, fetched with
// kinit and renewed with kinit -R well before its end.
//
// A cache belongs to one user name and one password or keytab: a caller with the same
// name and another password shares nothing. Concurrent callers share one kinit. A cache is
// made beside its place and renamed into it, so that a condor_submit never reads half a one.
//
// The password travels on kinit's standard input, a keytab in a file of mode 0600 that is
// gone when kinit is. Neither is in an argument, an environment, a log line, an error
// or the name of a file.
//
// What the KDC refused is not asked again at once: a wrong password asked a hundred times a
// minute locks the account.
package krb
