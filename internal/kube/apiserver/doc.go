// Package apiserver writes to the apiserver what packages kube and workflow decide: finalizers, statuses and Events.
//
//	objects.go  finalizers and statuses, each request bound to one object by its UID
//	events.go   Events, a few at a time
package apiserver
