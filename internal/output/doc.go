// Package output knows where the output of jobs is kept and how to read it there:
//
//	<root>/<namespace>/<name>/<attempt>/<proc>/
//
// What stands in a proc's directory was made by a job, which is a stranger's program: every
// read goes through an os.Root of that directory, so that no symbolic link leads out
// of it, and nothing is opened that could block. A proc's directory exists only when its
// output is whole: what is being fetched stands in a directory of its own below <root>/.incoming until
// Keep moves it, and what is dropped is moved there before it is removed. Both are one rename, so
// that a transaction of the ledger may do them.
//
// The package decides neither who may read nor what is to be fetched or dropped.
package output
