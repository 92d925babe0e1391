// Package output knows where the output of jobs is kept and how to read it there:
//
//	<root>/<namespace>/<name>/<attempt>/<proc>/
//
// What stands in a proc's directory was made by a job, which is a stranger's program: every
// read goes through an os.Root of that directory, so that no symbolic link leads out
// of it, and nothing is opened that could block. A proc's directory exists only when its
// output is whole; what is still being fetched stands in <attempt>/.incoming/<proc> until it
// is moved with Keep.
//
// The package decides neither who may read nor what is to be fetched or dropped.
package output
