// Package aggregate serves a group of the Kubernetes API, output.htc.cern.ch/v1alpha1, with which users read their
// jobs' output:
//
//	GET /apis/output.htc.cern.ch/v1alpha1/namespaces/NS/htcjobs/NAME/log           one stream of one job
//	GET /apis/output.htc.cern.ch/v1alpha1/namespaces/NS/htcjobs/NAME/log/archive   files of ended jobs, as tar
//	GET /apis/output.htc.cern.ch/v1alpha1/namespaces/NS/htcjobs/NAME/log/procs     the jobs, a line of JSON each
//	GET /apis/output.htc.cern.ch/v1alpha1/namespaces/NS/htcjobs/NAME/log/attempts  the attempts, a line of JSON each
//	GET /apis/output.htc.cern.ch/v1alpha1/namespaces/NS/htcworkflows/NAME/log        one stream of one node
//	GET /apis/output.htc.cern.ch/v1alpha1/namespaces/NS/htcworkflows/NAME/log/nodes  the nodes, a line of JSON each
//	GET /apis/output.htc.cern.ch/v1alpha1/namespaces/NS/htcworkflows/NAME/log/archive  files of nodes, as tar: NUMBER/PATH; the
//	                                                                               comment of each NUMBER/ is the node's name
//	GET /apis/output.htc.cern.ch/v1alpha1/namespaces/NS/history                    the attempts, also of what was deleted, a line of
//	                                                                               JSON each; without /namespaces/NS of all
//
//	GET, PATCH, DELETE .../namespaces/NS/uploads[/sha256:DIGEST]                   files for the inputs of jobs, see serveUploads
//
// log/files lists the files of an archive, a line of JSON each. With file the archive of an HTCJob has that file of
// each job alone. htcjobs/NAME/log/usage is one object: what the jobs have used; of an HTCWorkflow it is a line for
// each step. log/procs and log/nodes are asked for in pages by limit, with from or after.
//
//	user ── kubeconfig ──> kube-apiserver ── front proxy's certificate ──> htcd
//	                       authenticates,                                 trusts nobody else
//	                       asks RBAC: get htcjobs/log, htcworkflows/log; list history; list, patch, delete uploads
//
// All are the subresource log, which the apiserver treats as long-running; requests for any other, such as archive, it
// cuts off after a minute. It has already authorised every request that arrives, so only names are checked here. A
// client without the front proxy's certificate does not get beyond the handshake.
//
// A Source knows what can be read, and where it is.
package aggregate
