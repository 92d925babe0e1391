// Package site says what an HTCJob is in HTCondor's terms at this site: the administrator's settings, and the
// description of an attempt that they, the spec and the pool make together. It sends nothing.
//
//	site.go         the settings
//	describe.go     an attempt's description and sandbox
//	preview.go      the same without the content of its credentials
//	items.go        the variables of each of its jobs
//	credentials.go  what of spec.credentials its jobs get
package site
