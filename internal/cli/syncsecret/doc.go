// Package syncsecret keeps a Secret equal to files whose owner renews them, such as proxies and tokens: it runs where
// they are made and needs nothing but the right to get, create and update that Secret.
//
//	file.go    which file becomes which key, and what it contains
//	decide.go  which of two contents is kept
//	sync.go    one look at the files, and its repetition
package syncsecret
