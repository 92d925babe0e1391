// Package aggregate serves a group of the Kubernetes API, output.htc.cern.ch/v1alpha1, with which users read what their
// jobs have written:
//
//	GET /apis/output.htc.cern.ch/v1alpha1/namespaces/NS/htcjobs/NAME/log           one stream of one job
//	GET /apis/output.htc.cern.ch/v1alpha1/namespaces/NS/htcjobs/NAME/log/archive   what ended jobs brought back, as tar
//
//	user ── kubeconfig ──> kube-apiserver ── front proxy's certificate ──> htcd
//	                       knows who it is,                               believes nobody else
//	                       asks RBAC: get htcjobs/log
//
// Both are the subresource log, of which the apiserver knows that it takes long; of any other, archive say, it breaks
// off what is not through in a minute. All that comes through has been allowed by then, so names are all that is looked
// at here. Whoever connects without the front proxy's certificate does not get beyond the handshake.
//
// What there is to read, and where it is, is somebody else's to know: see Source.
package aggregate
