// Package recovery knows what became of attempts whose submission was broken off, or whose outcome is not recorded.
//
//	tries.go     what the submissions of an open intent have shown
//	lookup.go    one question to queue and history about many open intents
//	absences.go  when a run was first not found: it is sent again only after a second such answer
//	judge.go     what the jobs found under one tag amount to
//
// It decides; package kube asks, adopts, removes and sends. Its state is kept in memory: after a restart the schedd is asked.
package recovery
