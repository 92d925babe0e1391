// Package outage takes the real parts away from htcd, one at a time: stopped, hung, killed in the middle of something,
// or only their volume full. Every test ends with the same question (settled): did each HTCJob become one cluster, did
// its status say so, and was nothing left over when it was deleted?
//
// An outage is everybody's who uses the lab: the tests here run one after the other, and while they do so no other
// package's tests may run in the same lab (go test -p 1).
package outage
