package outage

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/output"
)

// A backup of the volume does not know what was sent since. The HTCJobs and the schedd overrule it.
func TestAnOlderLedgerThatIsPutBackRepeatsNothing(t *testing.T) {
	o := begin(t, "--reconcile-schedule=@every 5s")
	htcd := o.part("htcd")
	names := []string{"ended", "wiped", "running"}
	for _, name := range names {
		o.Script(name, "echo first\n")
	}
	for _, name := range names {
		o.Fetched(name)
	}
	o.do(htcd.Stop)
	backup := o.ledgerFiles()
	o.do(htcd.Start)

	o.Script("ended", "echo second\n")
	o.Script("wiped", "echo second\n")
	o.Script("running", "sleep 600\n")
	before := map[string]v1alpha1.HTCJobStatus{}
	for _, name := range names {
		o.Until(name, "sent again", func(job *v1alpha1.HTCJob) bool { return job.Status.Attempt == 2 })
		if name == "running" {
			o.running(name)
			before[name] = o.Phase(name, v1alpha1.PhaseRunning).Status
		} else {
			before[name] = o.Fetched(name).Status
		}
	}

	o.do(htcd.Stop)
	o.putBack(backup)
	_, err := o.Jobs.Patch(
		t.Context(),
		"wiped",
		types.MergePatchType,
		[]byte(`{"status":null}`),
		metav1.PatchOptions{},
		"status",
	)
	require.NoError(t, err)
	o.do(htcd.Start)

	for _, name := range names {
		job := o.Until(name, "told as before", func(job *v1alpha1.HTCJob) bool {
			return job.Status.Attempt == 2 && job.Status.Phase == before[name].Phase && o.attempts(job) == "1 2"
		})
		require.Equal(t, before[name].JobID, job.Status.JobID, name)
		require.Equal(t, before[name].Succeeded, job.Status.Succeeded, name)
		require.Len(t, o.clusters(job), 2, "%s: one cluster for each attempt", name)
	}
	for _, name := range []string{"ended", "wiped"} {
		text, err := os.ReadFile(filepath.Join(o.Kept(o.Get(name)), "0", output.Stdout))
		require.NoError(t, err)
		require.Equal(t, "second\n", string(text), "%s: its output stays", name)
	}

	// The next attempt has its own number, cluster and output.
	o.Script("ended", "echo third\n")
	third := o.Until("ended", "sent once more", func(job *v1alpha1.HTCJob) bool { return job.Status.Attempt > 2 })
	require.EqualValues(t, 3, third.Status.Attempt)
	require.Equal(t, "third\n", o.Output(third, 0))
	require.Len(t, o.clusters(third), 3)
	o.gone()
}

// What a user did after the backup also stands: a suspension lifted since, and an edit unknown to the ledger, and then
// to the status.
func TestAnOlderLedgerForgetsNeitherASuspensionNorAnEdit(t *testing.T) {
	o := begin(t, "--reconcile-schedule=@every 5s")
	htcd := o.part("htcd")
	o.Script("resumed", "sleep 600\n")
	o.running("resumed")
	o.do(htcd.Stop)
	backup := o.ledgerFiles()
	o.do(htcd.Start)

	o.Script("edited", "echo first\n")
	before := o.Fetched("edited")
	o.merge("resumed", `{"spec":{"suspend":true}}`)
	o.Phase("resumed", v1alpha1.PhaseSuspended)

	o.do(htcd.Stop)
	o.merge("resumed", `{"spec":{"suspend":false}}`)
	_, err := o.Jobs.Patch(
		t.Context(),
		"edited",
		types.MergePatchType,
		[]byte(`{"status":null}`),
		metav1.PatchOptions{},
		"status",
	)
	require.NoError(t, err)
	o.merge("edited", `{"spec":{"script":{"source":"echo second\n"}}}`)
	o.putBack(backup)
	o.do(htcd.Start)

	for name, phase := range map[string]v1alpha1.Phase{"resumed": v1alpha1.PhaseRunning, "edited": v1alpha1.PhaseSucceeded} {
		job := o.Until(
			name,
			"run again",
			func(job *v1alpha1.HTCJob) bool { return job.Status.Attempt == 2 && job.Status.Phase == phase },
		)
		require.Len(t, o.clusters(job), 2, "%s: one cluster for each attempt", name)
	}
	after := o.Fetched("edited")
	require.Equal(t, "second\n", o.Output(after, 0))
	require.NotEqual(t, before.Status.JobID, after.Status.JobID)
	o.gone()
}

// No older ledger was put back, so a status that knows more was edited.
func TestAnEndedStatusThatIsEditedWhileNoHtcdRunsIsNotBelieved(t *testing.T) {
	o := begin(t)
	htcd := o.part("htcd")
	o.Script("edited", "echo first\n")
	before := o.Fetched("edited").Status
	o.do(htcd.Stop)
	_, err := o.Jobs.Patch(
		t.Context(),
		"edited",
		types.MergePatchType,
		[]byte(`{"status":{"attempt":99,"phase":"Failed","failed":1,"succeeded":0,"jobid":["1.0"]}}`),
		metav1.PatchOptions{},
		"status",
	)
	require.NoError(t, err)
	o.do(htcd.Start)
	job := o.Until("edited", "told as before", func(job *v1alpha1.HTCJob) bool { return job.Status.Attempt == 1 })
	require.Equal(t, before.Phase, job.Status.Phase)
	require.Equal(t, before.JobID, job.Status.JobID)
	o.Script("edited", "echo second\n")
	again := o.Until("edited", "sent again", func(job *v1alpha1.HTCJob) bool { return job.Status.Attempt != 1 })
	require.EqualValues(t, 2, again.Status.Attempt)
	o.gone()
}

func (o outage) merge(name, patch string) {
	o.T.Helper()
	_, err := o.Jobs.Patch(o.T.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(o.T, err)
}

// putBack restores the ledger. htcd must not be running.
func (o outage) putBack(backup map[string][]byte) {
	o.T.Helper()
	for path := range o.ledgerFiles() {
		if _, kept := backup[path]; !kept {
			require.NoError(o.T, os.Remove(path))
		}
	}
	for path, content := range backup { // into the existing files, which stay htcd's own
		require.NoError(o.T, os.WriteFile(path, content, 0o600))
	}
}

// ledgerFiles returns the ledger and what SQLite keeps beside it. htcd must not be running.
func (o outage) ledgerFiles() map[string][]byte {
	o.T.Helper()
	paths, err := filepath.Glob(o.Lab.Ledger() + "*")
	require.NoError(o.T, err)
	files := map[string][]byte{}
	for _, path := range paths {
		if strings.Contains(path, ".damaged-") { // another test's
			continue
		}
		files[path], err = os.ReadFile(path)
		require.NoError(o.T, err)
	}
	require.Contains(o.T, slices.Collect(maps.Keys(files)), o.Lab.Ledger())
	return files
}

// attempts returns an HTCJob's attempts in the ledger.
func (o outage) attempts(job *v1alpha1.HTCJob) string {
	o.T.Helper()
	return o.SQL(
		fmt.Sprintf(
			"SELECT group_concat(attempt, ' ') FROM (SELECT attempt FROM runs WHERE uid = '%s' ORDER BY attempt)",
			job.UID,
		),
	)
}
