package plugin

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
)

func TestAStateIsOneStableWord(t *testing.T) {
	for phase, want := range map[v1alpha1.Phase]state{
		"": isPending, v1alpha1.PhasePending: isPending, v1alpha1.PhaseSubmitting: isPending, v1alpha1.PhaseIdle: isPending, v1alpha1.PhaseHeld: isPending,
		v1alpha1.PhaseRunning: isRunning, v1alpha1.PhaseSuspended: isSuspended,
		v1alpha1.PhaseSucceeded: isSucceeded, v1alpha1.PhaseFailed: isFailed, v1alpha1.PhaseRemoved: isFailed,
	} {
		require.Equal(t, want, stateOf(objectOf(job(phase))), phase)
		require.Contains(t, stateCodes, want)
	}
	edited := job(v1alpha1.PhaseFailed)
	edited.Generation++
	require.Equal(t, isPending, stateOf(objectOf(edited)), "the changed spec is still to be sent")
	again := job(v1alpha1.PhaseSucceeded)
	again.Annotations = map[string]string{v1alpha1.RerunAnnotation: "2"}
	require.Equal(t, isPending, stateOf(objectOf(again)), "it is to run again")
}

func TestASelectionNarrows(t *testing.T) {
	now := time.Now()
	old := func(phase v1alpha1.Phase, age time.Duration) *object {
		j := job(phase)
		j.CreationTimestamp = metav1.NewTime(now.Add(-age))
		return objectOf(j)
	}
	yesterday, lost := old(v1alpha1.PhaseSucceeded, 25*time.Hour), old(v1alpha1.PhaseFailed, time.Hour)
	held := old(v1alpha1.PhaseHeld, time.Minute)
	for name, c := range map[string]struct {
		s                     selection
		yesterday, lost, held bool
	}{
		"all":                 {selection{}, true, true, true},
		"failed":              {selection{failed: true}, false, true, false},
		"finished":            {selection{finished: true}, true, true, false},
		"active":              {selection{active: true}, false, false, true},
		"since a day":         {selection{since: 24 * time.Hour}, false, true, true},
		"failed since 30 min": {selection{failed: true, since: 30 * time.Minute}, false, false, false},
	} {
		require.NoError(t, c.s.check(), name)
		require.Equal(
			t,
			[]bool{c.yesterday, c.lost, c.held},
			[]bool{c.s.has(yesterday, now), c.s.has(lost, now), c.s.has(held, now)},
			name,
		)
	}
	require.ErrorAs(t, selection{active: true, finished: true}.check(), &setting.Usage{})
	cancelled := old(v1alpha1.PhaseSuspended, time.Minute)
	require.False(t, selection{finished: true}.has(cancelled, now))
	require.True(t, selection{finished: true, suspended: true}.has(cancelled, now))
	require.True(t, selection{finished: true, suspended: true}.has(yesterday, now))
}

func TestEachFormatHasOneLinePerHTCJob(t *testing.T) {
	j := job(v1alpha1.PhaseFailed)
	j.Namespace, j.Name, j.CreationTimestamp = "ns", "scan", metav1.Now()
	j.Status.Message, j.Status.ExitCode = "a <b> & \"c\"\n\x1b[31md", new(int32(64))
	for format, want := range map[string]string{
		"word": "failed\n", "name": "htcjob.htc.cern.ch/scan\n",
		"table": "NAME   STATE    PHASE    ACTIVE   SUCCEEDED   FAILED   AGE\nscan   failed   Failed   0        0           0        0s\n",
	} {
		var out bytes.Buffer
		require.NoError(t, show(&out, format, []*object{objectOf(j)}))
		require.Equal(t, want, out.String(), format)
	}
	var out bytes.Buffer
	require.NoError(t, show(&out, "json", []*object{objectOf(j)}))
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
	require.Contains(
		t,
		out.String(),
		`"state":"failed","phase":"Failed","message":"a <b> & \"c\"\n\u001b[31md","exitCode":64`,
	)
	out.Reset()
	require.NoError(t, show(&out, "wide", []*object{objectOf(j)}))
	require.Contains(t, out.String(), "EXIT   JOBID   SCHEDD   USER   TIME   REASON")
	require.NotContains(t, out.String(), "\x1b", "a message is no column")
}

func TestTheTimeIsThatOfTheJobs(t *testing.T) {
	now := time.Now()
	j := job(v1alpha1.PhaseRunning)
	require.Empty(t, runTime(objectOf(j), now), "none has started")
	j.Status.StartedAt, j.Status.Active = &metav1.Time{Time: now.Add(-90 * time.Second)}, 1
	require.Equal(t, "90s", runTime(objectOf(j), now))
	j.Status.Active = 0
	require.Empty(t, runTime(objectOf(j), now), "HTCondor has not said when the last one ended")
	j.Status.Duration = "1h2m3s"
	require.Equal(t, "62m", runTime(objectOf(j), now))
	require.Equal(t, "62m", runTime(objectOf(j), now.Add(time.Hour)))
}

func TestWhatCannotBeMeantIsRefused(t *testing.T) {
	for line, words := range map[string]string{
		"status":                        "want the name of an HTCJob or",
		"status a b":                    "not 2 arguments",
		"status a -o yaml":              "--output yaml: want word, table, wide, name or json",
		"status pod/a":                  "want the name of an HTCJob or an HTCWorkflow",
		"status job.batch/a":            "want the name of an HTCJob or an HTCWorkflow",
		"wait":                          "want the name of an HTCJob or HTCWorkflow, or several",
		"wait a --timeout=-1s":          "--timeout",
		"cancel":                        "want the name of an HTCJob or HTCWorkflow, or several",
		"delete":                        "want the name of an HTCJob or HTCWorkflow, or several",
		"delete a --finished":           "not both",
		"delete --since 24h":            "narrow --finished, --failed or --suspended",
		"delete a --suspended":          "not both",
		"wait a -l study=w":             "not both",
		"cancel a -l study=w":           "not both",
		"cancel -l study=w --proc 3":    "--proc is for one name",
		"list --suspended --active":     "exclude each other",
		"delete --finished --since=-1h": "--since",
		"list a":                        "want no argument",
		"list --failed --active":        "exclude each other",
		"completion powershell":         "bash, zsh or fish",
		"completion":                    "bash, zsh or fish",
	} {
		words, args := words, strings.Fields(line)
		for _, c := range Commands() {
			if c.Name() != args[0] {
				continue
			}
			c.SetArgs(args[1:])
			c.SilenceUsage, c.SilenceErrors = true, true
			err := c.Execute()
			require.ErrorAs(t, err, &setting.Usage{}, line)
			require.ErrorContains(t, err, words, line)
		}
	}
}

func TestARefusalIsAFailureWithoutAJob(t *testing.T) {
	refused, failed := job(v1alpha1.PhaseFailed), job(v1alpha1.PhaseFailed)
	failed.Status.JobID = []string{"7.0"}
	require.True(t, wasRefused(objectOf(refused)))
	require.False(t, wasRefused(objectOf(failed)))
	require.False(t, wasRefused(objectOf(job(v1alpha1.PhasePending))))
}
