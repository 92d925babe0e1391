// Package security tries against the real parts what a stranger, or a user who wants more than was granted, would try:
// forged callbacks, other people's secrets, other people's jobs.
//
// Some tests restart htcd with other flags, or count what it does: they run one after another, and meanwhile no other
// package's tests may run in the same lab (go test -p 1).
package security
