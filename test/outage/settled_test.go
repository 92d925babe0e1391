package outage

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/trial"
)

// outage is one test's use of the lab, whose parts all work again when the test is over.
type outage struct {
	*trial.Bench
	logged int64 // the length of htcd's log when the test began
}

// begin restarts htcd with these flags, if there are any.
func begin(t *testing.T, flags ...string) outage {
	t.Helper()
	o := outage{Bench: trial.New(t)}
	if info, err := os.Stat(o.Lab.Log("htcd")); err == nil {
		o.logged = info.Size()
	}
	// It runs before the namespace is deleted.
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		// The schedd before condor, which is not ready without it.
		for _, name := range []string{"etcd", "apiserver", "controller-manager", "kdc", "schedd", "condor", "receiver-net"} {
			require.NoError(t, o.Lab.Part(name).Start(ctx))
		}
		if len(flags) > 0 {
			require.NoError(t, o.Lab.Part("htcd").Restart(ctx))
		}
		require.NoError(t, o.Lab.Part("htcd").Start(ctx))
	})
	if len(flags) > 0 {
		require.NoError(t, o.Lab.Part("htcd").Restart(t.Context(), flags...))
	}
	return o
}

// do does something to a part.
func (o outage) do(what func(context.Context) error) {
	o.T.Helper()
	require.NoError(o.T, what(o.T.Context()))
}

func (o outage) part(name string) lab.Part { return o.Lab.Part(name) }

// status returns a part's status in the lab.
func (o outage) status(part string) lab.Status {
	o.T.Helper()
	event, err := o.Lab.Ask(o.T.Context(), lab.Request{Op: lab.OpStatus}, nil)
	require.NoError(o.T, err)
	for _, p := range event.Parts {
		if p.Part == part {
			return p
		}
	}
	require.FailNow(o.T, "no part "+part)
	return lab.Status{}
}

func (o outage) state(part string) string { return o.status(part).State }

// log returns what htcd has logged since the test began.
func (o outage) log() string {
	o.T.Helper()
	text, err := os.ReadFile(o.Lab.Log("htcd"))
	require.NoError(o.T, err)
	return string(text[o.logged:])
}

// never makes a job that no machine accepts.
func never(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "requirements = false\n" }

// running waits until the script of every job of an HTCJob runs: before that, its shadow still needs the schedd.
func (o outage) running(name string) {
	o.T.Helper()
	job := o.Until(name, "submitted", func(job *v1alpha1.HTCJob) bool { return len(job.Status.JobID) > 0 })
	o.Eventually(func() bool {
		return len(
			o.Condor("condor_q", trial.Tagged(job)+" && JobStatus == 2 && JobCurrentStartExecutingDate > 0"),
		) == job.Jobs()
	},
		func() string { return name + " never ran" })
}

// says waits for a condition to be false with this reason and returns its message.
func (o outage) says(name, condition, reason string) string {
	o.T.Helper()
	job := o.Until(name, fmt.Sprintf("%s %s", condition, reason), func(job *v1alpha1.HTCJob) bool {
		c := meta.FindStatusCondition(job.Status.Conditions, condition)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == reason
	})
	require.Zero(o.T, job.Status.Failed)
	require.False(o.T, job.Status.Phase.Terminal())
	return o.Condition(job, condition).Message
}

// column returns what kubectl get -o wide shows for an HTCJob under REASON.
func (o outage) column(name string) string {
	o.T.Helper()
	lines := strings.Split(o.Kubectl("get", "htcjob", name, "-o", "wide"), "\n")
	require.Greater(o.T, len(lines), 1)
	from := strings.Index(lines[0], "REASON")
	require.Positive(o.T, from)
	words := strings.Fields(lines[1][from:])
	if len(words) == 1 { // the age alone
		return ""
	}
	return words[0]
}

// doctor returns the finding of one of htcd doctor's checks, and its advice.
func (o outage) doctor(check string, args ...string) (message, do string) {
	o.T.Helper()
	out, err := o.Lab.Run(o.T.Context(), "htcd", append([]string{"doctor", "-o", "json"}, args...)...)
	var said struct {
		Findings []struct{ Check, Verdict, Message, Do string }
	}
	require.NoError(o.T, json.Unmarshal([]byte(out), &said), "%s %v", out, err)
	for _, f := range said.Findings {
		if f.Check == check {
			return f.Message, f.Do
		}
	}
	require.FailNow(o.T, "no check "+check)
	return "", ""
}

// clusters returns the HTCJob's clusters whose files all arrived, in the queue or in the history: the others can never
// run.
func (o outage) clusters(job *v1alpha1.HTCJob) map[string]int {
	o.T.Helper()
	procs := map[string]int{}
	for _, line := range o.Ads(trial.Tagged(job) + " && StageInFinish > 0") {
		cluster, _, _ := strings.Cut(line, ".")
		procs[cluster]++
	}
	return procs
}

// once checks that the HTCJob became exactly one cluster, the one its status names, with all its procs.
func (o outage) once(job *v1alpha1.HTCJob) {
	o.T.Helper()
	wanted := map[string]int{fmt.Sprint(job.Status.ClusterID): job.Jobs()}
	var found map[string]int
	// Files arrive up to a second after condor_submit ends.
	o.Eventually(func() bool {
		found = o.clusters(job)
		return len(found) > 0 && maps.Equal(found, wanted) || len(found) > 1
	},
		func() string { return fmt.Sprintf("%s: clusters %v instead of %v", job.Name, found, wanted) })
	require.Equal(o.T, wanted, found, job.Name)
}

// succeeded waits until the HTCJobs have succeeded, each once.
func (o outage) succeeded(names ...string) {
	o.T.Helper()
	for _, name := range names {
		job := o.Ended(name)
		require.Equal(o.T, v1alpha1.PhaseSucceeded, job.Status.Phase, "%s: %+v", name, job.Status)
		require.EqualValues(
			o.T,
			[]int32{0, int32(job.Jobs()), 0},
			[]int32{job.Status.Active, job.Status.Succeeded, job.Status.Failed},
			name,
		)
		o.once(job)
	}
}

// gone deletes every HTCJob and checks that nothing of them is left: no object, no job, no row, no staged file.
func (o outage) gone() {
	o.T.Helper()
	list, err := o.Jobs.List(o.T.Context(), metav1.ListOptions{})
	require.NoError(o.T, err)
	for i := range list.Items {
		require.NoError(o.T, ignoreGone(o.Jobs.Delete(o.T.Context(), list.Items[i].Name, metav1.DeleteOptions{})))
	}
	for _, job := range list.Items {
		o.Eventually(func() bool {
			_, err := o.Jobs.Get(o.T.Context(), job.Name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}, func() string { return "never gone:\n" + o.Kubectl("describe", "htcjob", job.Name) })
		require.Empty(o.T, o.Condor("condor_q", trial.Tagged(&job), "JobStatus"))
		staged, err := filepath.Glob(o.Lab.Path("htcd", "data", "staging", string(job.UID)+"*"))
		require.NoError(o.T, err)
		require.Empty(o.T, staged)
	}
	require.Equal(o.T, "0", o.SQL(fmt.Sprintf("SELECT count(*) FROM runs WHERE namespace = '%s'", o.Namespace)))
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
