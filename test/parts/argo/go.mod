// Module argo names the Argo Workflows that the tests run. It is built with the dependencies of its own go.mod.
module htc.cern.ch/htcd/test/parts/argo

go 1.26.0

require github.com/argoproj/argo-workflows/v3 v3.6.5
