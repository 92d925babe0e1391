// Package cache holds what is downloaded and built once per machine and used by every clone and lab: the Debian root,
// the Kubernetes programs, the images' layers.
//
// Each artifact is a directory named after the content of its recipe, so a changed recipe is a new artifact and an
// old one is never altered under a running lab. It is built beside its place, under a file lock, then renamed into it.
package cache
