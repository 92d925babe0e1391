//go:build dask

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
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
	makeRoom(n, workers)
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

// makeRoom gives the pool a slot for each worker, whatever the machine has, until the test has ended. What it adds to
// their cores and memory is for the slots of the other types in test/lab/parts/condor_config.server.
func makeRoom(n notebook, workers string) {
	n.T.Helper()
	many, err := strconv.Atoi(workers)
	require.NoError(n.T, err)
	if many <= 16 {
		return // it has as many slots of 2 GiB
	}
	file := n.Lab.Path("condor", "server.conf")
	was, err := os.ReadFile(file)
	require.NoError(n.T, err)
	restart := func(config []byte) {
		condor, ctx := n.Lab.Part("condor"), context.WithoutCancel(n.T.Context())
		require.NoError(n.T, condor.Stop(ctx))
		require.NoError(n.T, os.WriteFile(file, config, 0o644))
		require.NoError(n.T, condor.Start(ctx))
	}
	n.T.Cleanup(func() { restart(was) })
	restart(fmt.Appendf(
		was[:len(was):len(was)],
		"\nNUM_CPUS = %d\nMEMORY = %d\nSLOT_TYPE_1 = cpus=%d, memory=%d, disk=65%%, gpus=2\n",
		many+27,
		many*2048+6912,
		many,
		many*2048,
	))
}

// TestADaskClusterKeepsItsWorkers runs testdata/dask.py, which stops where this test has its part to do.
func TestADaskClusterKeepsItsWorkers(t *testing.T) {
	n := newDaskNotebook(t)
	program, err := os.ReadFile("testdata/dask.py")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		said, err := n.runs(fmt.Sprintf("namespace, image = %q, %q\n%s", n.Namespace, n.image, program))
		t.Log(said)
		ended <- err
	}()
	at := func(step string) (done func()) {
		file := filepath.Join(n.home(), step)
		n.Eventually(func() bool {
			select {
			case err := <-ended:
				require.NoError(t, err)
				require.FailNow(t, "the notebook has ended before "+step)
			default:
			}
			_, err := os.Stat(file)
			return err == nil
		}, func() string {
			return "the notebook has not come to " + step + ":\n" + n.Kubectl("describe", "htcjobs")
		})
		return func() { require.NoError(t, os.Remove(file)) }
	}

	done := at("mapping")
	job := n.dask()
	worker := 0
	for way, evict := range evictions {
		pid := wrapper(n.Bench, fmt.Sprint(n.Namespace, "-", worker))
		t.Log(way)
		ad := ofProcess(n.Bench, pid, "cwd/.job.ad")
		require.Equal(t, fmt.Sprint(worker), field(ad, "ProcId"))
		evict(n.Bench, pid, field(ad, "ClusterId")+"."+field(ad, "ProcId"))
		worker++
	}
	n.Eventually(func() bool {
		return len(n.Condor("condor_q", trial.Tagged(job)+" && JobStatus == 2 && NumJobStarts >= 2")) == worker
	}, func() string {
		return fmt.Sprint(n.Condor("condor_q", trial.Tagged(job), "JobStatus", "NumJobStarts", "HoldReason"))
	})
	done()

	done = at("two of six")
	n.Eventually(func() bool {
		return len(n.Queued(trial.Tagged(job)+" && HTCJobLauncher =!= true")) == 2
	}, func() string { return fmt.Sprint(n.Queued(trial.Tagged(job))) })
	done()

	done = at("adapted to none")
	n.nothingIsLeft()
	done()

	require.NoError(t, <-ended)
	n.nothingIsLeft()
}

// dask returns the HTCJob of the notebook's workers.
func (n notebook) dask() *v1alpha1.HTCJob {
	n.T.Helper()
	list, err := n.Jobs.List(n.T.Context(), metav1.ListOptions{})
	require.NoError(n.T, err)
	require.Len(n.T, list.Items, 1)
	return &list.Items[0]
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
