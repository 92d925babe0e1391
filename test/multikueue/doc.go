// Package multikueue tests htcd with Kueue's MultiKueue: two labs, each with its apiserver, HTCondor and htcd, and a
// Kueue for each, which runs on this machine. The tests have the build tag kueue, since they need a second lab and
// Kueue's program: make test-multikueue.
package multikueue
