// Package follow finds a job's output, wherever it currently is:
//
//	waiting ──> running ──────> ending ──────────> kept
//	nothing     on its node,    on its way back    in htcd's directory
//	            condor_tail
//
// and follows it from one place to the next, so that a reader gets every byte once. The file that is fetched at the
// end begins with what condor_tail has shown: a position in one is a position in the other. When HTCondor runs a job
// a second time, that file starts over, and so does what is shown.
//
// The node's starter does nothing else while it sends to condor_tail, and does not even notice its job's end. So data
// is taken at once into an unlinked file, from which slow readers read.
package follow
