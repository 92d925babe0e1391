// Package push pushes outputs that go to registries, as artifacts, once they have been brought back.
//
//	queue ─> next ─────> files ──────> push ──────────> record
//	         a row of    of the proc   to a registry    one transaction
//	         the ledger
//
// Its keys, those of HTCJobs, have their own queue, and workers for each registry, so that nothing waits for a registry
// but what goes there; namespaces take turns (package fairqueue). One step pushes the artifact of one proc.
//
// The digest of an artifact that somebody may delete is in the ledger before its reference names it, so no interruption
// leaves one of which nobody knows.
//
// What is to be pushed is in the ledger, so an interrupted push is made again; equal files make an equal artifact. Only
// the newest attempt of an HTCJob is pushed: an older one must not replace what it has left.
//
// A pass over an HTCJob's rows goes by the numbers of their outputs, and passes over the rest of an output that has
// failed. After a pass with a failure there is a pause. What can never be pushed, such as a file with an odd name, is
// recorded with the reason.
//
// The package knows rows, the store and registries, but no HTCJob: messages for users go to an Observer.
package push
