// Package plugin has the users' commands, which need only a kubeconfig and RBAC rights on HTCJobs, and nothing of the
// operator. They are part of htcd, and all of it where it is installed as kubectl-htcjob.
//
// Their connections may break: the apiserver or htcd is restarted. Then they reconnect and ask for the missing part.
package plugin
