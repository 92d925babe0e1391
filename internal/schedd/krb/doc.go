// Package krb keeps Kerberos tickets: one credential cache per identity, fetched with kinit and renewed with kinit -R
// well before it expires.
//
// A cache belongs to one user name and one password or keytab: a caller with the same name and another password shares
// nothing. Concurrent callers share one kinit. A cache is made beside its place and renamed into it, so that a
// condor_submit never reads a partial one.
//
// The password travels on kinit's standard input, a keytab in a file of mode 0600 that is removed when kinit ends.
// Neither appears in an argument, an environment, a log line, an error or a file name.
//
// Whoever writes a Secret chooses the realm of its account. Only KDCs of realms that the administrator names are asked,
// so that nobody has htcd talk to a server of his own.
//
// After a refusal the KDC is not asked again at once: trying a wrong password a hundred times a minute locks the
// account.
package krb
