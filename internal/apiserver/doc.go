// Package apiserver writes to the apiserver what package kube decides: finalizers, statuses and Events of HTCJobs.
//
//	htcjobs.go  HTCJobs, each request bound to one object by its UID
//	events.go   Events, a few at a time
package apiserver
