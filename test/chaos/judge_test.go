package chaos

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// sound returns the evidence of a correct HTCJob of two jobs that exit with 0 and 3.
func sound() Evidence {
	spec := Spec{Queue: 2, Source: "exit $(( 3 * $1 ))", Codes: []int{0, 3}}
	ad := func(proc, code int) Ad {
		return Ad{
			Queued:       true,
			ClusterID:    8,
			ProcID:       proc,
			JobStatus:    completed,
			ExitBySignal: new(false),
			ExitCode:     &code,
			NumJobStarts: 1,
			UID:          "u",
			Attempt:      1,
		}
	}
	return Evidence{
		Sent: []Sent{{Trial: Trial{Name: "trial-000", Shape: Shape{Name: "two", Spec: spec, Edited: &spec}}, UID: "u"}},
		Objects: map[string]v1alpha1.HTCJob{"u": {
			ObjectMeta: metav1.ObjectMeta{Name: "trial-000", UID: types.UID("u"), Generation: 1},
			Status: v1alpha1.HTCJobStatus{
				Phase:              v1alpha1.PhaseFailed,
				Attempt:            1,
				ObservedGeneration: 1,
				ClusterID:          8,
				Succeeded:          1,
				Failed:             1,
				JobID:              []string{"8.0", "8.1"},
			},
		}},
		Ads:  []Ad{ad(0, 0), ad(1, 3)},
		Runs: []Run{{UID: "u", Attempt: 1, Generation: 1, State: "Submitted", Cluster: 8}},
		Rows: []Row{
			{UID: "u", Attempt: 1, Proc: 0, Status: rowSucceeded},
			{UID: "u", Attempt: 1, Proc: 1, Status: rowFailed},
		},
		Staged: []string{"u-1"},
	}
}

// another adds a cluster that is a copy of the first.
func another(e *Evidence, cluster, attempt int, change ...func(*Ad)) {
	for _, ad := range e.Ads[:2] {
		ad.ClusterID, ad.Attempt = cluster, attempt
		for _, f := range change {
			f(&ad)
		}
		e.Ads = append(e.Ads, ad)
	}
}

// again lets the second job run once more.
func again(e *Evidence) {
	e.Sent[0].Trial.Shape.Again, e.Sent[0].Trial.Shape.Edited = true, nil
	failed := e.Ads[1]
	failed.ClusterID, failed.ProcID, failed.Attempt, failed.Own = 9, 0, 2, new(1)
	e.Ads = append(e.Ads, failed)
	e.Runs = append(e.Runs, Run{UID: "u", Attempt: 2, Generation: 1, State: "Submitted", Cluster: 9})
	for _, row := range e.Rows[:2] {
		row.Attempt = 2
		e.Rows = append(e.Rows, row)
	}
	status(e, func(job *v1alpha1.HTCJob) {
		job.Annotations, job.Status.Rerun = map[string]string{v1alpha1.RerunAnnotation: "1"}, "1"
		job.Status.Attempt, job.Status.ClusterID, job.Status.JobID = 2, 9, []string{"9.0"}
	})
}

func halfSpooled(ad *Ad) {
	ad.JobStatus, ad.NumJobStarts, ad.RemoveReason = removed, 0, "Staging of job files failed (by user robot)"
}

func status(e *Evidence, change func(*v1alpha1.HTCJob)) {
	job := e.Objects["u"]
	change(&job)
	e.Objects["u"] = job
}

func deleted(e *Evidence) {
	e.Sent[0].Deleted = true
	e.Objects, e.Runs, e.Rows, e.Staged = nil, nil, nil, nil
	for i := range e.Ads {
		e.Ads[i].Queued, e.Ads[i].JobStatus, e.Ads[i].LastJobStatus = false, removed, completed
	}
}

func refused(e *Evidence) {
	e.Sent[0].Trial.Shape.Spec.Codes = nil
	e.Ads, e.Rows, e.Staged = nil, nil, nil
	e.Runs[0].State = "Refused"
	status(e, func(job *v1alpha1.HTCJob) {
		job.Status = v1alpha1.HTCJobStatus{Phase: v1alpha1.PhaseFailed, Attempt: 1, ObservedGeneration: 1, Failed: 2}
	})
}

func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Evidence)
		is     []Fault
	}{
		"one whole cluster with the same ends everywhere is sound": {func(*Evidence) {}, nil},
		"what has failed runs again under its number":              {again, nil},
		"what has succeeded runs again, too": {func(e *Evidence) {
			again(e)
			e.Ads = append(e.Ads, Ad{ClusterID: 9, ProcID: 1, JobStatus: completed, ExitBySignal: new(false), ExitCode: new(0), NumJobStarts: 1, UID: "u", Attempt: 2, Own: new(0)})
			status(e, func(job *v1alpha1.HTCJob) { job.Status.JobID = []string{"9.0", "9.1"} })
		}, []Fault{Doubled}},
		"one that nobody has asked to run again is sound": {func(e *Evidence) { e.Sent[0].Trial.Shape.Again = true }, nil},
		"one that was asked to run again and has not is lost": {func(e *Evidence) {
			status(e, func(job *v1alpha1.HTCJob) { job.Annotations = map[string]string{v1alpha1.RerunAnnotation: "1"} })
		}, []Fault{Lost}},
		"all run again instead of some": {func(e *Evidence) {
			again(e)
			e.Ads = e.Ads[:2]
			another(e, 9, 2)
			status(e, func(job *v1alpha1.HTCJob) { job.Status.JobID = []string{"9.0", "9.1"} })
		}, []Fault{Doubled}},
		"a completed job that was taken out of the queue is a completed one": {func(e *Evidence) {
			for i := range e.Ads {
				e.Ads[i].Queued, e.Ads[i].JobStatus, e.Ads[i].LastJobStatus = false, removed, completed
			}
		}, nil},
		"a cluster whose files never arrived is no run": {func(e *Evidence) { another(e, 7, 1, halfSpooled) }, nil},
		"one that htcd removed as half-spooled is none either": {func(e *Evidence) {
			another(e, 7, 1, halfSpooled, func(ad *Ad) { ad.RemoveReason = "htcd: never completely spooled (by user robot)" })
		}, nil},
		"a cluster that was removed as half-spooled and yet had started is a run": {func(e *Evidence) {
			another(e, 7, 1, halfSpooled, func(ad *Ad) { ad.NumJobStarts = 1 })
		}, []Fault{Doubled}},
		"two clusters of one attempt are doubled": {func(e *Evidence) { another(e, 9, 1) }, []Fault{Doubled}},
		"a cluster beside its launcher is one": {func(e *Evidence) {
			e.Ads = append(e.Ads, Ad{ClusterID: 7, JobStatus: completed, UID: "u", Attempt: 1, Launcher: true})
		}, nil},
		"two launchers of one attempt are doubled": {func(e *Evidence) {
			launcher := Ad{ClusterID: 6, JobStatus: completed, UID: "u", Attempt: 1, Launcher: true}
			e.Ads = append(e.Ads, launcher)
			launcher.ClusterID = 7
			e.Ads = append(e.Ads, launcher)
		}, []Fault{Doubled}},
		"a second attempt of the same spec is doubled": {func(e *Evidence) { another(e, 9, 2) }, []Fault{Doubled}},
		"a second attempt after a suspension is sound": {func(e *Evidence) {
			e.Sent[0].Trial.Shape.Paused = true
			another(e, 7, 2, func(ad *Ad) { ad.Queued, ad.JobStatus = false, removed })
		}, nil},
		"a third attempt after one suspension is doubled": {func(e *Evidence) {
			e.Sent[0].Trial.Shape.Paused = true
			another(e, 9, 2)
			another(e, 10, 3)
		}, []Fault{Doubled}},
		"a cluster of a refused HTCJob is doubled":         {func(e *Evidence) { refusedWith(e) }, []Fault{Doubled}},
		"a refused HTCJob has no cluster":                  {refused, nil},
		"a staged directory of a refused one is left over": {func(e *Evidence) { refused(e); e.Staged = []string{"u-1"} }, []Fault{LeftOver}},
		"a refused one that counts too few as failed is wrong": {func(e *Evidence) {
			refused(e)
			status(e, func(job *v1alpha1.HTCJob) { job.Status.Failed = 1 })
		}, []Fault{Wrong}},
		"no cluster is lost":                       {func(e *Evidence) { e.Ads = nil }, []Fault{Lost}},
		"an object that is gone by itself is lost": {func(e *Evidence) { e.Objects = nil }, []Fault{Lost}},
		"one that never ended is lost": {func(e *Evidence) {
			status(e, func(job *v1alpha1.HTCJob) { job.Status.Phase = v1alpha1.PhaseSubmitting })
		}, []Fault{Lost}},
		"an edit that was never run is lost": {func(e *Evidence) {
			e.Sent[0].Edited = true
			status(e, func(job *v1alpha1.HTCJob) { job.Generation = 2 })
		}, []Fault{Lost}},
		"an edit that ran as the second attempt is sound": {func(e *Evidence) {
			e.Sent[0].Edited = true
			another(e, 9, 2)
			for _, r := range e.Rows[:2] {
				r.Attempt = 2
				e.Rows = append(e.Rows, r)
			}
			status(e, func(job *v1alpha1.HTCJob) {
				job.Generation, job.Status.ObservedGeneration, job.Status.Attempt = 2, 2, 2
				job.Status.ClusterID, job.Status.JobID = 9, []string{"9.0", "9.1"}
			})
		}, nil},
		"a row that says otherwise than the ad is wrong": {func(e *Evidence) { e.Rows[0].Status = rowFailed }, []Fault{Wrong}},
		"a missing row is wrong":                         {func(e *Evidence) { e.Rows = e.Rows[:1] }, []Fault{Wrong, Wrong}},
		"counts that say otherwise are wrong": {func(e *Evidence) {
			status(e, func(job *v1alpha1.HTCJob) { job.Status.Succeeded, job.Status.Failed = 2, 0 })
		}, []Fault{Wrong}},
		"another cluster in the status is wrong": {func(e *Evidence) {
			status(e, func(job *v1alpha1.HTCJob) { job.Status.ClusterID = 5 })
		}, []Fault{Wrong}},
		"a job that ended otherwise than its script is wrong": {func(e *Evidence) {
			e.Ads[1].ExitCode = new(4)
		}, []Fault{Wrong}},
		"a job whose files never arrived while another of its cluster ran has failed as that": {func(e *Evidence) {
			halfSpooled(&e.Ads[1])
			e.Rows[1].Reason = "StagingFailed"
		}, nil},
		"and as nothing else": {func(e *Evidence) { halfSpooled(&e.Ads[1]) }, []Fault{Wrong}},
		"the exit code of a removed job means nothing": {func(e *Evidence) {
			e.Ads[0].JobStatus, e.Ads[0].LastJobStatus = removed, 2
		}, []Fault{Wrong, Wrong, Wrong}},
		"a job that still runs though the HTCJob has ended is left over": {func(e *Evidence) {
			another(e, 7, 1, halfSpooled, func(ad *Ad) { ad.JobStatus = 5 })
		}, []Fault{Doubled, LeftOver, LeftOver}},
		"a file that is kept whole is sound":   {func(e *Evidence) { leaves(e, "text", "text") }, nil},
		"a file that is kept in part is wrong": {func(e *Evidence) { leaves(e, "text", "te") }, []Fault{Wrong, Wrong}},
		"something may follow where it is said so": {func(e *Evidence) {
			leaves(e, "text", "text, and more")
			e.Sent[0].Trial.Shape.Spec.Leaves[0].Begins = true
		}, nil},
		"a file that is not kept is lost": {func(e *Evidence) {
			leaves(e, "text", "text")
			delete(e.Kept, "trial-000/1/0/a b")
		}, []Fault{Lost}},
		"a deleted one of which nothing is left is sound": {deleted, nil},
		"what is left of a deleted one is told thing by thing": {func(e *Evidence) {
			deleted(e)
			whole := sound()
			e.Objects, e.Runs, e.Rows, e.Staged = whole.Objects, whole.Runs, whole.Rows[:1], whole.Staged
			e.Ads[0].Queued = true
		}, []Fault{LeftOver, LeftOver, LeftOver, LeftOver, LeftOver}},
		"a run that belongs to no trial is left over": {func(e *Evidence) {
			e.Runs = append(e.Runs, Run{UID: "other", Attempt: 1})
		}, []Fault{LeftOver}},
	} {
		t.Run(name, func(t *testing.T) {
			e := sound()
			c.change(&e)
			var is []Fault
			for _, f := range Judge(e) {
				is = append(is, f.Fault)
			}
			require.Equal(t, c.is, is, "%v", Judge(e))
		})
	}
}

// leaves makes each job leave a file that contains text; the kept file contains is.
func leaves(e *Evidence, text, is string) {
	e.Sent[0].Trial.Shape.Spec.Leaves = []Leaf{{Name: "a b", Text: text}}
	e.Kept = map[string]string{"trial-000/1/0/a b": is, "trial-000/1/1/a b": is}
}

// refusedWith makes the HTCJob refused although HTCondor has ads.
func refusedWith(e *Evidence) {
	ads := e.Ads
	refused(e)
	e.Ads = ads
}

func TestSettledSaysWhatMoves(t *testing.T) {
	e := sound()
	require.NoError(t, settled(e))
	e.Ads[0].JobStatus = 2
	require.ErrorContains(t, settled(e), "8.0")
	e = sound()
	e.Sent[0].Deleted = true
	require.ErrorContains(t, settled(e), "trial-000 is being deleted")
}

func TestTheTableCountsTrialsNotFindings(t *testing.T) {
	e := sound()
	e.Sent[0].Trial.Shape = Shapes[3]
	e.Sent[0].Trial.At = time.Second
	var out bytes.Buffer
	require.NoError(t, Print(&out, shapeNames(), e.shapes(), []Finding{
		{
			Wrong,
			"trial-000",
			Shapes[3].Name,
			"one",
		}, {Wrong, "trial-000", Shapes[3].Name, "two"}, {Lost, "trial-000", Shapes[3].Name, "three"},
	}))
	require.Regexp(t, `(?m)^three jobs +1 +0 +1 +1 +0$`, out.String())
	require.Regexp(t, `(?m)^all +1 +0 +1 +1 +0$`, out.String())
}
