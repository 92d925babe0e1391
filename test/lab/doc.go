// Package lab gives tests access to the real parts: a running lab, its commands, its parts and its files.
//
// A lab is one directory (LAB, by default .lab in the clone) and one tree of processes:
//
//	lab up ── starts ──> init        pid 1 of a pid namespace, in a mount namespace whose root is a cached Debian
//	                      └─ supervise   answers on run/control.sock, parent of every part
//	                          ├─ etcd, apiserver, controller-manager
//	                          ├─ kdc, condor (schedd and the rest below its master)
//	                          ├─ registry, receiver-net
//	                          ├─ only for tests that ask for them: schedd2, feed, pool2, prometheus, store, xrootd
//	                          └─ htcd
//
// With LAB_NODE set (make up-node) the lab also has its own network namespace, in which the supervisor starts
// scheduler, proxy, containerd, kubelet and an nginx for the Ingress, and htcd is a pod of deploy/base instead. Pods
// reach the other parts at root.NodeAddress, where jobs also reach htcd, through the Ingress. kubectl and client-go are
// led in there.
//
// When init ends, for whatever reason, the kernel ends every process of the namespace and drops its mounts: there is
// nothing to clean up, and nothing on the host can be hit by mistake. Until the lab is ready it depends on a socket to
// the "lab up" that started it and ends when that closes, so an interrupted start leaves nothing either.
//
// The packages below: cache (what is downloaded and built once for all labs), root (namespaces), ports, parts (one
// file per part), supervisor. The program is test/cmd/lab. State does not outlive a lab: "up" after "down" starts
// with an empty Kubernetes, HTCondor, realm and ledger; the logs of the last run stay until then.
package lab
