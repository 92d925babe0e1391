// Package recovery determines what became of attempts whose submission was interrupted or whose outcome is not
// recorded.
//
//	tries.go     results of the submissions of an open intent
//	lookup.go    one query of queue and history for many open intents
//	absences.go  when a run was first not found; it is sent again only after a second such answer
//	judge.go     the verdict on the jobs found under one tag
//
// It decides; package kube asks, adopts, removes and sends. Its state is in memory only: after a restart the schedd is
// asked.
package recovery
