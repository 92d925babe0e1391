// Package metrics shows Prometheus what htcd does. Nothing in htcd imports it
// but cmd/htcd, which puts it where the parts meet: around the schedd client
// and the ledger, and into the places where kube, schedd and notify say what
// happened.
//
// Three rules hold for everything here:
//
//   - No label grows with the number of HTCJobs or users. What grows with the
//     site (schedds, Secrets) is said in docs/metrics.md, which is written from
//     this package (go test ./internal/metrics -update).
//   - Nobody waits for it. To count is an atomic addition; what has to be looked
//     up is looked up when Prometheus comes, by one read of the ledger and a
//     look at the volume.
//   - Nothing secret is in it. Names of Secrets and schedds are, names of users
//     and of their HTCJobs are not.
package metrics
