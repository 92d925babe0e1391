// Package uploads stores the files that users upload for the inputs of their jobs. One is named by the SHA-256 of its
// content, so that the same file is uploaded once in a namespace, and what an input names never changes.
//
//	<root>/<namespace>/<digest>              whole
//	<root>/<namespace>/<digest>.<size>.part  unfinished; its length is where to go on
//
// Begin says where an upload stands, Append adds to it and is answered when that is on disk. With the last byte the
// content is held against the digest; a file with another one is dropped.
//
// A file that no HTCJob or HTCWorkflow names stays for a time, counted from the last Begin or Append. A whole one that
// was named is dropped with the last of its users: Sweep sets its time back when it sees that it is named.
package uploads
