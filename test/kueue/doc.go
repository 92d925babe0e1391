// Package kueue tests htcd with the real Kueue: its manager, webhooks included, is a pod of the lab's node, as is htcd.
// The tests have the build tag kueue, since they need a lab with a node, and Kueue's program: make test-kueue.
package kueue
