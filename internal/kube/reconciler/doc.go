// Package reconciler is the engine of the controllers, which knows no kind of objects: queues, back-off, the lock of
// each object, and what is remembered of it. A kind (Kind) decides, acts and writes statuses.
//
//	informer ─> Changed | Routine ─> Kind.Sync: status           (never waits for HTCondor)
//	                                    │
//	                                    └─> Actions ─> Kind.Next ─> Step.Do: submit | ask | remove
//
// Queues hold the keys of objects. Changed is for the fast work: it reads the ledger, decides, and writes .status;
// Ended does the same for objects that have ended, and Routine for objects without news. Whatever needs HTCondor goes
// to the queues of actions, whose workers decide again from the ledger before they act. Each class of actions has its
// own queue and workers; at most one worker acts on an object at a time. In every queue namespaces take turns, and the
// workers of one schedd serve no other (package fairqueue).
package reconciler
