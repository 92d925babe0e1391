// Package reconciler is the engine of the controllers, which knows no kind of objects: queues, back-off, the lock of
// each object, what is remembered of it, and the writing of its status. A kind (Kind) gathers what is known of an
// object into a Case, from which its status and its next step follow. What its objects have in HTCondor, if anything,
// is a matter of Owned.
//
//	informer ─> Changed | Routine ─> Sync: Gather ─> Case.Status ─> status       (never waits for HTCondor)
//	                                           └───> Case.Step ──> Actions ─> Gather ─> Step.Do: submit | ask | remove
//
// Queues hold the keys of objects. Changed is for the fast work: it reads the ledger, decides, and writes .status;
// Ended does the same for objects that have ended, and Routine for objects without news. Whatever needs HTCondor goes
// to the queues of actions, whose workers decide again from the ledger before they act. Each class of actions has its
// own queue and workers; at most one worker acts on an object at a time. In every queue namespaces take turns, and the
// workers of one schedd serve no other (package fairqueue).
package reconciler
