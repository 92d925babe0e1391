// Package ui serves a page on which a user looks at HTCJobs, HTCWorkflows and HTCPools, and does to them what kubectl
// would do.
//
//	browser ── loopback, cookie ──> this package ── the user's kubeconfig ──> kube-apiserver ──> htcd (output.htc.cern.ch)
//
// It has no rights of its own: it is one more client of the user, and RBAC decides what it shows. A store follows the
// objects by watches; every page is made of them, and of what htcd knows besides, by pure functions and compiled
// templates (templ), and sent again when it has changed. The browser morphs what it shows into what has come, with
// idiomorph (assets, version 0.8.0 of the npm package, unchanged).
//
// Others on this machine, and other pages in the same browser, can reach the port: guard.go decides who is answered.
package ui
