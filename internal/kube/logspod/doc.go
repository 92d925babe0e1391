// Package logspod has both ends of a Pod whose log is the output of jobs: the text that is stored for it, and the
// program that prints the text in it.
//
// A text is a sequence of chunks, each a file for one of the two streams, named in the order of printing:
//
//	00000.err  htcd: not all is here ...
//	00001.out  ==> 7.0 <==, standard output of the first job
//	00002.err  its standard error
//	00003.out  ==> 7.1 <==, ...
//
// It is kept in a ConfigMap, and so is small: a long stream is reduced to its end.
//
// A Maker makes both for an HTCJob, step by step:
//
//	ended, output here ──> ConfigMap NAME-logs ──> Pod NAME
//
// After an interruption it continues from the existing objects. Both belong to the HTCJob and are deleted with it.
package logspod
