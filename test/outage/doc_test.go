// Package outage takes the real parts away from htcd, one at a time: stopped, hung, killed in the middle of something,
// or with a full volume. Every test ends with the same question (settled): did each HTCJob become one cluster, did its
// status say so, and was nothing left over when it was deleted?
//
// An outage affects everybody who uses the lab: the tests here run one after another, and meanwhile no other package's
// tests may run in the same lab (go test -p 1).
package outage
