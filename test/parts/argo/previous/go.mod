// Module previous names the Argo Workflows before the newest that the tests run. It is built with the dependencies of its own go.mod.
module htc.cern.ch/htcd/test/parts/argo/previous

go 1.26.0

require github.com/argoproj/argo-workflows/v3 v3.7.14
