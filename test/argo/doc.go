// Package argo tests htcd with the real Argo Workflows: its controller and its agents are pods of the lab's node, as is
// htcd. The tests have the build tag argo, since they need a lab with a node, and Argo's programs: make test-argo.
package argo
