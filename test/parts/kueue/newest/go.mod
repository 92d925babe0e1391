// Module newest names the newest Kueue that the tests run. It is built with the dependencies of its own go.mod.
module htc.cern.ch/htcd/test/parts/kueue/newest

go 1.26.0

require sigs.k8s.io/kueue v0.19.2
