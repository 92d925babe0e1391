# Where the lab of this clone lives; another directory is another lab beside it.
LAB ?= .lab
# The tests have one of their own unless LAB says otherwise.
TEST_LAB := $(if $(filter file,$(origin LAB)),.lab-test,$(LAB))

# An empty one would be the machine's own /, and of one with blanks make would take each word for a directory.
ifneq ($(words $(LAB))$(filter /,$(abspath $(LAB))),1)
$(error LAB="$(LAB)" must name one directory, without blanks in its path, and not /)
endif

# Go modules to look at.
MODULES = . test tools/release

# What the targets of tests need first. Empty where that is done: make starts them in the order in which they are named then.
HOST = host

include tools/tools.mk

.DEFAULT_GOAL := help

# CONDOR in the environment is the major version of the lab's HTCondor: 23 (Debian trixie, the default) or 25 (forky).
# A lab with the other one is ended and set up again.

.PHONY: up
up: lab ## bring up the real parts and htcd, or update them; then: . .lab/env; CONDOR=25 for HTCondor 25.14
	@$(LAB)/bin/lab up --clone $(CURDIR)

.PHONY: up-node
up-node: export LAB_NODE = 1
up-node: up ## the same with a Kubernetes node, on which htcd runs as the pod of deploy/base; in a network of its own

.PHONY: down
down: ## stop the lab and everything in it
	@if [ -x $(LAB)/bin/lab ]; then $(LAB)/bin/lab down; else echo "no lab in $(LAB)"; fi

.PHONY: demo
demo: up ## bring up the lab and run examples/retcode/zero.yaml in it; WHAT=workflow: examples/workflow/scan.yaml
	@$(LAB)/bin/lab demo $(WHAT)

.PHONY: build
build: ## build bin/htcd, one static binary
	CGO_ENABLED=0 go build -trimpath -o bin/htcd ./cmd/htcd

# What the image calls itself.
VERSION ?= dev

.PHONY: image
image: lab ## build htcd's image into bin/htcd-image.tar, with a list of its contents
	@$(LAB)/bin/lab image --clone $(CURDIR) --version $(VERSION) \
		$$(git log -1 --format='--revision %H --created %cI' 2>/dev/null)

# Where the image and the files of dist will be, and what they are signed with; see tools/dist.sh.
IMAGE ?=
URL ?=
KEY ?=
DIST = LAB=$(abspath $(LAB)/bin/lab) IMAGE=$(IMAGE) URL=$(URL) KEY=$(if $(KEY),$(abspath $(KEY))) tools/dist.sh $(VERSION)

.PHONY: dist
dist: lab ## make a release in dist/: images, manifests, chart, programs; VERSION=v0.1.0 IMAGE=registry.example.org/htcd KEY=cosign.key URL=...
	rm -rf dist
	$(DIST) dist

# From another directory, zone and umask. What is compiled comes from Go's cache, which knows of no directory (-trimpath).
.PHONY: dist-check
dist-check: dist ## make a release twice and compare them byte by byte
	rm -rf dist-again
	copy=$$(mktemp -d) && trap 'rm -rf "$$copy"' EXIT && git ls-files -z -co --exclude-standard | tar --null -T - -c .git | tar -x -C "$$copy" && \
		cd "$$copy" && umask 077 && TZ=Asia/Kathmandu LC_ALL=C $(DIST) $(CURDIR)/dist-again
	diff -r dist dist-again && rm -rf dist-again

.PHONY: dist-push
dist-push: ## copy the image of dist/ to its registry, with the signatures; VERSION and IMAGE as for dist
	go run -C tools/release . push $(CURDIR)/dist/htcd-image.tar $(IMAGE):$(VERSION)

.PHONY: host
host: ## install the few packages that the host itself needs
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)
	@$(TEST_LAB)/bin/lab host

# What test and test-condor25 leave to test-all: the tests that a file names for their release.
RELEASE = $(if $(filter 25,$(CONDOR)),25,23)
LEFT = $(shell awk '$$1 == "all" || $$1 == "$(RELEASE)" { print $$2 }' test/left-to-test-all.txt | paste -sd '|')
SKIP ?= -skip '^($(LEFT))$$'

# With the flags of what the lab builds (test/lab/cache), so that each package is compiled once; and make lint has go vet look at all of it.
GO_TEST = env CGO_ENABLED=0 go test -vet=off -trimpath -gcflags all=-dwarf=false

# Side by side, since most tests wait for something to be noticed: LANES at a time, the longest first. ALSO names further targets
# to run with them.
ALSO =
LANES ?= 3
.PHONY: test
test: host ## the tests: unit tests, those against the real parts in labs of their own, the pod on a node; test-all runs those left out, too
	@$(MAKE) --no-print-directory -j$(LANES) --output-sync=line HOST= test-outage test-lab $(ALSO) test-unit test-node

.PHONY: test-unit
test-unit: ## the tests that need no real part
	$(GO_TEST) -timeout 80m ./...
	cd tools/release && $(GO_TEST) ./...
	cd clients/python && python3 -m unittest

# One package after the other: each may restart htcd with other flags.
.PHONY: test-lab
test-lab: $(HOST) ## the tests in a lab, except those of test-outage
	cd test && $(abspath $(TEST_LAB))/bin/lab with --clone $(CURDIR) \
		$(GO_TEST) -count=1 -p 1 -parallel 4 -timeout 80m $(SKIP) $$(go list ./... | grep -vE '/(outage|chaos|security)$$')

.PHONY: test-outage
test-outage: $(HOST) ## the tests in which the lab's parts are stopped, damaged and attacked: outage, chaos, security
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)-outage
	cd test && $(abspath $(TEST_LAB)-outage)/bin/lab with --clone $(CURDIR) \
		$(GO_TEST) -count=1 -p 1 -parallel 4 -timeout 80m $(SKIP) ./outage ./chaos ./security

# Also those of them that test leaves to test-all.
.PHONY: test-security
test-security: NAMED = $(shell grep -oE '\bTest[A-Z][A-Za-z0-9]+' SECURITY.md | sort -u | paste -sd '|')
test-security: $(HOST) ## the tests of what SECURITY.md promises, in a lab; CONDOR=25 for HTCondor 25.14
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)
	cd test && $(abspath $(TEST_LAB))/bin/lab with --clone $(CURDIR) sh -ec ' \
		$(GO_TEST) -count=1 -parallel 8 -timeout 30m ./security; \
		$(GO_TEST) -count=1 -p 1 -parallel 8 -timeout 60m -run "^($(NAMED))$$" ./schedd ./e2e ./outage'

# In a lab of its own, so that neither HTCondor replaces the other. The tag leaves out the tests that ask nothing of HTCondor in which its
# releases could differ.
.PHONY: test-condor25
test-condor25: RELEASE = 25
test-condor25: $(HOST) ## with HTCondor 25.14, the tests of schedd and those of e2e that depend on HTCondor
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)-condor25
	cd test && CONDOR=25 $(abspath $(TEST_LAB)-condor25)/bin/lab with --clone $(CURDIR) \
		$(GO_TEST) -tags releases -count=1 -p 1 -parallel 4 -timeout 80m $(SKIP) ./schedd ./e2e

.PHONY: test-all
test-all: export TEST_ALL = 1
test-all: ## every test with both releases of HTCondor, one release after the other
	$(MAKE) --no-print-directory SKIP= test
	CONDOR=25 $(MAKE) --no-print-directory SKIP= test

# SUITE is a package of test, RUN a pattern of its tests.
SUITE ?= e2e
RUN ?= .
.PHONY: test-cost
test-cost: $(HOST) ## what each test of SUITE takes, one after the other: seconds, seconds of CPU, processes; RUN=pattern for some
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)-cost
	cd test && CGO_ENABLED=0 go build -trimpath -o $(abspath $(TEST_LAB)-cost)/bin/cost ./cmd/cost && \
		$(abspath $(TEST_LAB)-cost)/bin/cost $(abspath $(TEST_LAB)-cost)/bin/lab with --clone $(CURDIR) \
		$(GO_TEST) -json -count=1 -p 1 -parallel 1 -timeout 180m -run '$(RUN)' ./$(SUITE)

# Not part of test: Debian's Jupyter is 200 packages.
.PHONY: test-jupyter
test-jupyter: ## use a notebook in a job's container in headless Chromium, through htcd port-forward
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)
	cd test && $(abspath $(TEST_LAB))/bin/lab with --clone $(CURDIR) \
		$(GO_TEST) -tags jupyter -count=1 -timeout 30m -v -run 'TestANotebookInAJobIsUsedInABrowser$$' ./ui

# Not part of test: each start of a worker takes seconds of CPU. CONDOR=25 has HTCondor 25.14. WORKERS is how many the session of the docs has.
WORKERS ?= 4
.PHONY: test-dask
test-dask: ## have the workers of Debian's Dask in the pool, as docs/python.md shows, and run the tests of clients/python that need Dask
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)
	cd test && WORKERS=$(WORKERS) $(abspath $(TEST_LAB))/bin/lab with --clone $(CURDIR) \
		$(GO_TEST) -tags dask -count=1 -timeout 60m -v -run 'DaskCluster' ./e2e

.PHONY: renewals
renewals: ## run a job of 10 minutes whose proxy is renewed twice; CONDOR=25 for HTCondor 25.14
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)
	cd test && $(abspath $(TEST_LAB))/bin/lab with --clone $(CURDIR) \
		$(GO_TEST) -tags renewals -count=1 -timeout 30m -v -run 'TestAJobOfTenMinutesSurvivesTwoRenewals$$' ./e2e

# In a lab of its own: these tests change what all others depend on.
.PHONY: test-node
test-node: ## build the image, bring up a node, and test htcd as the pod of deploy/base
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)-node
	cd test && LAB_NODE=1 $(abspath $(TEST_LAB)-node)/bin/lab with --clone $(CURDIR) $(GO_TEST) -tags node -count=1 -timeout 60m ./node

# Not part of test: Argo and Kueue are built first, once for this machine. PEER is newest (the default) or previous.
.PHONY: test-argo
test-argo: ## bring up a node, and test htcd with real Argo Workflows on it: examples/argo and the executor plugin; PEER=previous for the release before
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)-node
	cd test && LAB_NODE=1 $(abspath $(TEST_LAB)-node)/bin/lab with --clone $(CURDIR) $(GO_TEST) -tags argo -count=1 -timeout 120m ./argo

.PHONY: test-kueue
test-kueue: ## bring up a node, and test htcd with real Kueue on it; PEER=previous for the release before
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)-node
	cd test && LAB_NODE=1 $(abspath $(TEST_LAB)-node)/bin/lab with --clone $(CURDIR) $(GO_TEST) -tags kueue -count=1 -timeout 120m ./kueue

# Kueue's programs run beside the labs, so none of them needs a node.
.PHONY: test-multikueue
test-multikueue: ## send HTCJobs from one lab to another with real Kueue, MultiKueue; PEER=previous for the release before
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)-worker
	cd test && $(abspath $(TEST_LAB))/bin/lab with --clone $(CURDIR) sh -c 'HTCD_LAB_MANAGER=$$HTCD_LAB exec \
		$(abspath $(TEST_LAB)-worker)/bin/lab with --clone $(CURDIR) $(GO_TEST) -tags kueue -count=1 -timeout 120m ./multikueue'

.PHONY: test-peers
test-peers: $(HOST) ## test-kueue and test-argo, each with the newest release and the one before
	@for m in argo/newest argo/previous kueue/newest kueue/previous; do (cd test/parts/$$m && go mod verify) || exit 1; done
	@for peer in newest previous; do for test in test-kueue test-argo; do \
		PEER=$$peer $(MAKE) --no-print-directory $$test || exit 1; \
	done; done

# How many HTCJobs chaos runs, and its random seed; 0 means the clock. FEED is empty, or anything for htcd feed at the schedd.
N ?= 300
CHAOS_SEED ?= 0
FEED ?=

.PHONY: chaos
chaos: ## run N HTCJobs while everything is killed and disturbed, and compare them with HTCondor; FEED=1 with htcd feed; CHAOS_SEED repeats a run
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)
	cd test && $(abspath $(TEST_LAB))/bin/lab with --clone $(CURDIR) \
		$(GO_TEST) -count=1 -timeout 2h -v ./chaos -run TestNothingIsDoubledLostWrongOrLeftOver -trials $(N) -seed $(CHAOS_SEED) $(if $(FEED),-feed)

.PHONY: chaos-pools
chaos-pools: ## have N HTCJobs compete for the limits of HTCPools while htcd and the schedd are killed
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)
	cd test && $(abspath $(TEST_LAB))/bin/lab with --clone $(CURDIR) \
		$(GO_TEST) -count=1 -timeout 2h -v ./chaos -run TestLimitsHold -trials $(N) -seed $(CHAOS_SEED)

.PHONY: chaos-workflows
chaos-workflows: ## run N HTCWorkflows of 3 to 30 nodes while htcd, the schedd and DAGMan are killed, and compare each node with HTCondor
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)
	cd test && $(abspath $(TEST_LAB))/bin/lab with --clone $(CURDIR) \
		$(GO_TEST) -tags workflows -count=1 -timeout 2h -v ./chaos -run TestEveryNodeRunsOnce -trials $(N) -seed $(CHAOS_SEED)

# What bench measures (all rows when empty; at three sizes where GROWTH is set, or at SIZE), and how many minutes soak takes.
ROW ?=
GROWTH ?=
SIZE ?=
T ?= 30

.PHONY: bench
bench: ## measure htcd and the raw tools, in a lab of its own; ROW=name for one row, GROWTH=1 for three sizes each, SIZE=n for one
	@$(MAKE) --no-print-directory measure WHAT="$(if $(ROW),-row $(ROW)) $(if $(GROWTH),-growth) $(if $(SIZE),-size $(SIZE))"

.PHONY: soak
soak: ## run a steady mix for T minutes; fail unless memory, file handles, goroutines and ledger level off
	@$(MAKE) --no-print-directory measure WHAT="-soak $(T)"

.PHONY: day
day: ## run 50,000 HTCJobs of several kinds in 200 namespaces, in bursts, in at most 2 hours, and judge each; N=n for n of them
	@$(MAKE) --no-print-directory measure WHAT="-day $(if $(filter file default undefined,$(origin N)),50000,$(N))"

.PHONY: measure
measure: ## build the measuring program and run it in the lab; used by bench and soak
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)
	@cd test && CGO_ENABLED=0 go build -trimpath -o $(abspath $(TEST_LAB))/bin/bench ./bench
	@$(TEST_LAB)/bin/lab with --clone $(CURDIR) $(abspath $(TEST_LAB))/bin/lab as root \
		env HTCD_LAB=$(abspath $(TEST_LAB)) $(abspath $(TEST_LAB))/bin/bench $(WHAT)

.PHONY: clean
clean: down ## stop the lab and remove everything built in this clone; the machine's cache stays
	rm -rf $(LAB) bin dist dist-again

.PHONY: lab
lab: ## build the lab's own program, used by up, down and demo
	@[ $(words $(CURDIR)) = 1 ] || { echo "a lab needs a clone without blanks in its path: $(CURDIR)" >&2; exit 1; }
	@mkdir -p $(LAB)/bin
	@[ -x $(LAB)/bin/lab ] || echo "building the lab's own program into $(LAB)/bin: a minute where nothing of it has been compiled yet"
	@tools/lab.sh $(abspath $(LAB))/bin/lab

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST) | sort
