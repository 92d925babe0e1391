// Package daemon is htcd at work: it builds the parts, and knows the order in which they start and stop. It asks for
// the Lease, lets nothing happen without it, answers the probes, and replaces its own process when that must not
// continue.
package daemon
