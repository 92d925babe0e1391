# Generators and linters, pinned in tools/go.mod. Included by the Makefile.
TOOL := go tool -modfile=tools/go.mod
V1ALPHA1 := internal/kube/v1alpha1

.PHONY: generate check-generated vet staticcheck

generate: ## write the CRD and the deep copies anew from internal/kube/v1alpha1
	$(TOOL) controller-gen object crd:crdVersions=v1 paths=./$(V1ALPHA1) output:crd:dir=deploy/base/crd

check-generated: ## fail when the committed CRD or deep copies are not what the types say
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	$(TOOL) controller-gen object crd:crdVersions=v1 paths=./$(V1ALPHA1) output:crd:dir=$$dir output:object:dir=$$dir && \
	diff -u $(V1ALPHA1)/zz_generated.deepcopy.go $$dir/zz_generated.deepcopy.go && \
	diff -u deploy/base/crd/htc.cern.ch_htcjobs.yaml $$dir/htc.cern.ch_htcjobs.yaml || \
	{ echo "the generated files are not current: run 'make generate'" >&2; exit 1; }

vet: ## go vet and gofmt over both modules
	go vet ./...
	cd test && go vet ./...
	@files=$$(gofmt -l cmd internal test) && test -z "$$files" || { echo "not gofmt'ed: $$files" >&2; exit 1; }

staticcheck: ## staticcheck over both modules
	$(TOOL) staticcheck ./...
	cd test && go tool -modfile=../tools/go.mod staticcheck ./...
