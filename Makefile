# Where the lab of this clone lives; another directory is another lab beside it.
LAB ?= .lab
# The tests have one of their own unless LAB says otherwise.
TEST_LAB := $(if $(filter file,$(origin LAB)),.lab-test,$(LAB))

# Go modules to look at.
MODULES = . test

include tools/tools.mk

.DEFAULT_GOAL := help

# CONDOR in the environment is the major version of the lab's HTCondor: 23 (of Debian trixie) unless it says 25 (of forky).
# A lab with the other one is ended, and begun anew.

.PHONY: up
up: lab ## bring up the real parts and htcd, or what has changed of them; then: . .lab/env; CONDOR=25 for HTCondor 25.14
	@$(LAB)/bin/lab up --clone $(CURDIR)

.PHONY: up-node
up-node: export LAB_NODE = 1
up-node: up ## the same with a Kubernetes node, on which htcd is a pod of deploy/base; in a network of its own

.PHONY: down
down: ## end the lab; nothing of it keeps running
	@if [ -x $(LAB)/bin/lab ]; then $(LAB)/bin/lab down; else echo "no lab in $(LAB)"; fi

.PHONY: demo
demo: up ## bring up the lab and run examples/retcode/zero.yaml in it
	@$(LAB)/bin/lab demo

.PHONY: build
build: ## build bin/htcd, one static binary
	CGO_ENABLED=0 go build -trimpath -o bin/htcd ./cmd/htcd

# What the image calls itself.
VERSION ?= dev

.PHONY: image
image: lab ## build htcd's image into bin/htcd-image.tar, and the list of what is in it
	@$(LAB)/bin/lab image --clone $(CURDIR) --version $(VERSION) \
		$$(git log -1 --format='--revision %H --created %cI' 2>/dev/null)

# One package after the other: some of them take the lab's parts away.
.PHONY: host
host: ## install the few packages that the host itself must have
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)
	@$(TEST_LAB)/bin/lab host

.PHONY: test
test: host ## every test: unit tests, then everything against the real parts in a lab of its own, then the pod on a node; CONDOR=25 for HTCondor 25.14
	go test ./...
	cd test && $(abspath $(TEST_LAB))/bin/lab with --clone $(CURDIR) go test -count=1 -p 1 -parallel 8 -timeout 30m ./...
	@$(MAKE) --no-print-directory test-node

# In a lab of its own, so that neither HTCondor has to make room for the other.
.PHONY: test-condor25
test-condor25: host ## the tests of schedd, e2e and security with HTCondor 25.14
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)-condor25
	cd test && CONDOR=25 $(abspath $(TEST_LAB)-condor25)/bin/lab with --clone $(CURDIR) \
		go test -count=1 -p 1 -parallel 8 -timeout 30m ./schedd ./e2e ./security

# A lab of its own for the tests of the pod, which change what everything else stands on.
.PHONY: test-node
test-node: ## build the image, bring up a node, and test htcd as the pod of deploy/base
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)-node
	cd test && LAB_NODE=1 $(abspath $(TEST_LAB)-node)/bin/lab with --clone $(CURDIR) go test -tags node -count=1 -timeout 15m ./node

# How many HTCJobs chaos runs, and what decides everything else; 0 is the clock.
N ?= 300
CHAOS_SEED ?= 0

.PHONY: chaos
chaos: ## N HTCJobs while everything is killed and disturbed, then compared with HTCondor; CHAOS_SEED repeats a run
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)
	cd test && $(abspath $(TEST_LAB))/bin/lab with --clone $(CURDIR) \
		go test -count=1 -timeout 2h -v ./chaos -run TestNothingIsDoubledLostWrongOrLeftOver -trials $(N) -seed $(CHAOS_SEED)

# What bench measures (all rows when empty; at three sizes where GROWTH is set), and how many minutes soak takes.
ROW ?=
GROWTH ?=
T ?= 30

.PHONY: bench
bench: ## measure htcd beside the raw tools, in a lab of its own; ROW=name one row, GROWTH=1 each at three sizes
	@$(MAKE) --no-print-directory measure WHAT="$(if $(ROW),-row $(ROW)) $(if $(GROWTH),-growth)"

.PHONY: soak
soak: ## a steady mix for T minutes; fails unless memory, file handles, goroutines and ledger level off
	@$(MAKE) --no-print-directory measure WHAT="-soak $(T)"

.PHONY: measure
measure: ## build the program that measures and run it inside the lab; what bench and soak do
	@$(MAKE) --no-print-directory lab LAB=$(TEST_LAB)
	@cd test && CGO_ENABLED=0 go build -trimpath -o $(abspath $(TEST_LAB))/bin/bench ./bench
	@$(TEST_LAB)/bin/lab with --clone $(CURDIR) $(abspath $(TEST_LAB))/bin/lab as root \
		env HTCD_LAB=$(abspath $(TEST_LAB)) $(abspath $(TEST_LAB))/bin/bench $(WHAT)

.PHONY: clean
clean: down ## end the lab and remove all that was built in this clone; the machine's cache stays
	rm -rf $(LAB) bin

.PHONY: lab
lab: ## build the lab's own program, which up, down and demo use
	@mkdir -p $(LAB)/bin
	@cd test && CGO_ENABLED=0 go build -trimpath -o $(abspath $(LAB))/bin/lab ./cmd/lab

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST) | sort
