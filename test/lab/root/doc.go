// Package root makes the world that a lab runs in: a pid namespace, whose end is the end of every process in it, and
// a mount namespace, whose root is the cached Debian with the lab's directory at the path it has outside.
//
// pivot_root is used and not chroot, because inside a chroot the kernel refuses new user namespaces, which apptainer
// needs. The network is the host's.
package root
