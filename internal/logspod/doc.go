// Package logspod knows both ends of a Pod whose log is the output of jobs: what is written down for it, and how that is
// printed in it.
//
// A text is a number of chunks, each a file for one of the two streams, named so that their order is that of printing:
//
//	00000.err  htcd: not all is here ...
//	00001.out  ==> 7.0 <==, standard output of the first job
//	00002.err  its standard error
//	00003.out  ==> 7.1 <==, ...
//
// It is kept in a ConfigMap, and so is small: of a stream that is too long, the end.
//
// A Maker makes both for an HTCJob, step by step:
//
//	ended, output here ──> ConfigMap NAME-logs ──> Pod NAME
//
// Broken off anywhere, it begins by looking at what is there. Both belong to the HTCJob and go with it.
package logspod
