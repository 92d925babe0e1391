// Package security tries what a stranger, or a user who wants more than was given, would try against the real parts:
// forged callbacks, other people's secrets, other people's jobs.
//
// Some tests restart htcd with other flags, or count what it does: they run one after the other, and while they do so no
// other package's tests may run in the same lab (go test -p 1).
package security
