// Package metrics shows Prometheus what htcd does. Only internal/daemon imports it, and
// puts it where the parts meet: around the schedd client and the ledger, and into
// the hooks of kube, schedd and notify.
//
// Three rules hold for everything here:
//
//   - No label grows with the number of HTCJobs or users. What grows with the
//     site (schedds, Secrets, pools, and namespaces up to a fixed number) is listed
//     in docs/metrics.md, which is written from this package (go test
//     ./internal/metrics -update).
//   - Nobody waits for it. Counting is an atomic addition; everything else is
//     looked up when Prometheus asks, by one read of the ledger and of the
//     volume's free space.
//   - It contains no secrets: names of namespaces, HTCPools, schedds and Secrets,
//     but not of users or their HTCJobs.
package metrics
