// Package v1alpha1 is the API of htcd: the HTCJob as people write it and as
// `kubectl get` shows it, the names that other programs may rely on (condition
// types, phases, annotations, the finalizer), and a small typed client.
//
// What a rule can refuse is refused by the apiserver, at `kubectl apply`, with
// a sentence that says what to write instead: the markers on the types become
// the CRD in deploy/base/crd. The controller does not repeat those checks; the
// renderer of the submit description, which must be safe whatever it is given,
// does its own.
//
// The package knows nothing of HTCondor or the ledger. A type here is a promise
// to existing manifests: fields are added, never renamed or removed.
//
// +kubebuilder:object:generate=true
// +groupName=htc.cern.ch
package v1alpha1
