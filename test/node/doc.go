// Package node tests htcd as an administrator installs it: its image, and deploy/base on a real Kubernetes node. Its
// tests have the build tag node, since they need a lab with one: make test-node.
package node
