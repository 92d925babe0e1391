// Module newest names the newest Argo Workflows that the tests run. It is built with the dependencies of its own go.mod.
module htc.cern.ch/htcd/test/parts/argo/newest

go 1.26.0

require github.com/argoproj/argo-workflows/v4 v4.0.5
