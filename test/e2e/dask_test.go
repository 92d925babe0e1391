//go:build dask

package e2e

import (
	"cmp"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// newDaskNotebook has Dask and no other rights than docs/python.md names. Its image has bytecode, as those have that
// are made with pip or apt.
func newDaskNotebook(t *testing.T) notebook {
	n := newNotebook(t, "dask")
	onHost(t, "chroot", n.image, "python3", "-m", "compileall", "-q", "/usr/lib/python3", "/usr/lib/python3.13")
	n.Kubectl("create", "role", "dask", "--verb=create", "--resource=secrets")
	n.Kubectl("create", "rolebinding", "dask", "--role=dask", "--serviceaccount="+n.Namespace+":anna")
	return n
}

// TestTheDaskClusterOfTheDocsRunsToItsResult runs what docs/python.md shows, with so many WORKERS.
func TestTheDaskClusterOfTheDocsRunsToItsResult(t *testing.T) {
	n := newDaskNotebook(t)
	program := session(t, "not run: make test-dask runs it with Debian's Dask")
	workers := cmp.Or(os.Getenv("WORKERS"), "4")
	for page, here := range map[string]string{
		"example.org/group/dask:2024.12": n.image,
		"scale(100)":                     "scale(" + workers + ")",
		"wait_for_workers(10)":           "wait_for_workers(" + workers + "); said('workers')",
	} {
		require.Contains(t, program, page)
		program = strings.ReplaceAll(program, page, here)
	}
	said, err := n.runs("import time; began = time.monotonic()\n" +
		"def said(what): print(what, 'after', round(time.monotonic() - began, 1), 's')\n" + program +
		"said('end')\nassert squares == [x * x for x in range(1000)], squares\n")
	require.NoError(t, err, said)
	t.Log(said)
	n.nothingIsLeft()
}

// nothingIsLeft waits until there is neither an HTCJob nor a Secret of workers.
func (n notebook) nothingIsLeft() {
	n.T.Helper()
	left := ""
	n.Eventually(func() bool {
		left = n.Kubectl("get", "htcjobs,secrets", "-o", "name")
		return left == ""
	}, func() string { return left })
}

// TestADaskClusterOnOneMachine runs clients/python/dask_test.py.
func TestADaskClusterOnOneMachine(t *testing.T) {
	n := newDaskNotebook(t)
	said, err := n.python("-m", "unittest", "-v", "dask_test")
	require.NoError(t, err, said)
}
