// Package output stores the output of jobs and reads it:
//
//	<root>/<namespace>/<name>/<attempt>/<proc>/
//
// The content of a proc's directory was made by a job, which is a stranger's program: every
// read goes through an os.Root of that directory, so that no symbolic link leads out
// of it, and nothing is opened that could block. A proc's directory exists only if its
// output is complete: a fetch writes into a directory of its own below <root>/.incoming until
// Keep moves the files, and dropped output is moved there before it is removed. Both are one
// rename, so that a transaction of the ledger may do them.
//
// The package decides neither who may read nor what to fetch or drop.
package output
