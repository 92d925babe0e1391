# Generators and linters, pinned in tools/go.mod. The Makefile includes this.
TOOL = go tool -modfile=$(CURDIR)/tools/go.mod
TYPES = api/v1alpha1
CONTROLLER_GEN = $(TOOL) controller-gen object crd:crdVersions=v1,allowDangerousTypes=true paths=./$(TYPES)
# The pattern that controller-gen gives a quantity would be all that a user is told. In the specs of HTCJobs and HTCPools rules say it in words: there
# each quantity needs one with isQuantity, without which htcd could not read the object. For steps, of which there are many, such rules cost too much:
# theirs add words to what the pattern says of the usual mistakes, and read no more of a text than its end.
WORDS = sed -i '/^          spec:$$/,/^          status:$$/{/^ *pattern: .*numkMGTPE/d}'

# An exponent has two digits at most: to read 1e-50000000, or compare 1e50000000, takes minutes.
EXPONENTS = sed -i '/^ *pattern: .*numkMGTPE/s/\[eE\].*/[eE](\\+|-)?[0-9]{1,2}))?$$/'

# The flags of GO_TEST: what go vet and staticcheck need of a package is compiled once, too.
lint check-generated: export CGO_ENABLED = 0
lint check-generated: export GOFLAGS = -trimpath -gcflags=all=-dwarf=false

.PHONY: lint
lint: $(HOST) check-generated ## gofmt, go vet, staticcheck, gosec, module checksums, shellcheck, and whether generated files are current
	@files=$$(gofmt -l api clients cmd internal test tools) && test -z "$$files" || { echo "run gofmt -w on: $$files" >&2; exit 1; }
	@for m in $(MODULES); do \
		echo "lint $$m"; (cd $$m && go vet -tags node,argo,kueue,renewals,workflows,jupyter,dask ./... && $(TOOL) staticcheck -tags node,argo,kueue,renewals,workflows,jupyter,dask ./... && go mod verify) || exit 1; \
	done
# What make test-condor25 runs, without the files that its tag leaves out.
	cd test && go vet -tags releases ./schedd ./e2e
	cd tools && go mod verify
	cd test/parts/kubernetes && go mod verify
	cd test/parts/containerd && go mod verify
	cd test/parts/helm && go mod verify
# Only what ships: the lab runs as root on a machine of its own and starts programs by design.
	$(TOOL) gosec -quiet -exclude-generated ./api/... ./cmd/... ./internal/...
# Most follow a rendered head, and use each other's variables.
	shellcheck tools/dist.sh tools/lab.sh deploy/image/*.sh examples/*/*/*.sh .ci/run
	shellcheck --shell=sh --exclude=SC2154,SC2034,SC2317 internal/schedd/submit/*.sh
	shellcheck --shell=bash --exclude=SC2154,SC2013,SC2016 internal/schedd/join.sh

# The pages of htcd ui.
PAGES = internal/cli/ui
TEMPL = $(TOOL) templ

.PHONY: generate
generate: ## write the CRD and the deep copies from the API types, the Python types from the CRD, docs/settings.md from the flags, and the pages' code
	$(TEMPL) fmt -log-level warn $(PAGES)
	$(TEMPL) generate -log-level warn -path $(PAGES)
	$(CONTROLLER_GEN) output:crd:dir=deploy/base/crd
	$(WORDS) deploy/base/crd/htc.cern.ch_htcjobs.yaml deploy/base/crd/htc.cern.ch_htcpools.yaml
	$(EXPONENTS) deploy/base/crd/*.yaml
	go run ./cmd/htcd settings >docs/settings.md
	go run ./clients/python/generate >clients/python/htc/types.py

.PHONY: check-generated
check-generated: ## fail when make generate would change a file
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	$(CONTROLLER_GEN) output:crd:dir=$$dir output:object:dir=$$dir && $(WORDS) $$dir/htc.cern.ch_htcjobs.yaml $$dir/htc.cern.ch_htcpools.yaml && $(EXPONENTS) $$dir/*.yaml && \
	diff -u $(TYPES)/zz_generated.deepcopy.go $$dir/zz_generated.deepcopy.go && \
	diff -u deploy/base/crd/htc.cern.ch_htcjobs.yaml $$dir/htc.cern.ch_htcjobs.yaml && \
	diff -u deploy/base/crd/htc.cern.ch_htcpools.yaml $$dir/htc.cern.ch_htcpools.yaml && \
	diff -u deploy/base/crd/htc.cern.ch_htcworkflows.yaml $$dir/htc.cern.ch_htcworkflows.yaml && \
	go run ./cmd/htcd settings >$$dir/settings.md && diff -u docs/settings.md $$dir/settings.md && \
	go run ./clients/python/generate >$$dir/types.py && diff -u clients/python/htc/types.py $$dir/types.py && \
	$(TEMPL) generate -check -log-level warn -path $(PAGES) || \
	{ echo "generated files are out of date: run make generate" >&2; exit 1; }
