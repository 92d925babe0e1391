// Package plugin is what users call: the commands that need a kubeconfig and RBAC rights on HTCJobs, and nothing of the
// operator. They are part of htcd, and the whole of it where it is installed as kubectl-htcjob.
//
// What they read comes over connections that break: the apiserver is restarted, htcd is. Then they ask again, for what
// they do not have yet.
package plugin
