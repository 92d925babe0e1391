// Package follow finds what a job has written, wherever it is by now:
//
//	waiting ──> running ──────> ending ──────────> kept
//	nothing     on its node,    on its way back    in htcd's directory
//	            condor_tail
//
// and goes with it from one place to the next, so that who follows a job gets every byte once. What is fetched at the
// end is the same file that condor_tail has shown the beginning of: a position in the one is a position in the other.
// HTCondor that runs a job a second time begins that file anew, and so does what is shown.
//
// The node's starter does nothing else while it sends to condor_tail, not even see its job end. So what comes is taken
// at once, into a file without a name, and whoever reads slowly reads from there.
package follow
