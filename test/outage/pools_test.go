package outage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd/programtest"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

const (
	usual  = "127-0-0-1." + parts.Domain
	second = parts.Schedd2Name
)

// site is a lab with a second schedd, and a site's command that names the usual one.
type site struct {
	outage
	named string // the file with the command's answer
}

func newSite(t *testing.T, flags ...string) site {
	t.Helper()
	running := trial.New(t).Lab
	s := site{named: running.Path("run", "usual-schedd")}
	command := running.Path("run", "myschedd")
	programtest.Write(t, command, "#!/bin/sh\ntest \"$1\" = show && cat "+s.named+"\n")
	s.answer(t, "export _condor_SCHEDD_HOST="+usual+"\n")
	require.NoError(t, running.Part("schedd2").Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, running.Part("schedd2").Stop(context.WithoutCancel(t.Context()))) })
	s.outage = begin(t, append(flags, "--schedd-command="+command+" show", "--allow-pools="+second)...)
	return s
}

func (s site) answer(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(s.named, []byte(text), 0o644))
}

// atSecond returns what the second schedd's queue or history says.
func (s site) atSecond(tool string, job *v1alpha1.HTCJob, attribute string) []string {
	s.T.Helper()
	args := []string{"-name", second, "-constraint", trial.Tagged(job), "-af", attribute}
	out, err := s.Lab.Run(s.T.Context(), tool, args...)
	require.NoError(s.T, err)
	return strings.Fields(out)
}

// anew gives the second schedd an empty queue that starts with this cluster number.
func (s site) anew(cluster int32) {
	s.T.Helper()
	s.do(s.part("schedd2").Stop)
	left, err := filepath.Glob(s.Lab.Path("condor", "spool2", "job_queue.log*"))
	require.NoError(s.T, err)
	for _, file := range left {
		require.NoError(s.T, os.Remove(file))
	}
	s.configure("SCHEDD_CLUSTER_INITIAL_VALUE = " + strconv.Itoa(int(cluster)) + "\n")
}

// configure restarts the second schedd with another setting, for the duration of the test.
func (s site) configure(line string) {
	s.T.Helper()
	file := s.Lab.Path("condor", "schedd2.conf")
	before, err := os.ReadFile(file)
	require.NoError(s.T, err)
	s.do(s.part("schedd2").Stop)
	require.NoError(s.T, os.WriteFile(file, append(slices.Clone(before), line...), 0o644))
	s.T.Cleanup(func() { require.NoError(s.T, os.WriteFile(file, before, 0o644)) })
	s.do(s.part("schedd2").Start)
}

func atSecond(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{Schedd: second} }

func TestHTCJobsGoToTheScheddTheyName(t *testing.T) {
	s := newSite(t)
	s.Create("here", "exit 0\n")
	s.Create("there", "exit 3\n", atSecond, trial.Queue(2))
	s.Create("kept", "sleep 1000\n", atSecond)
	s.Create("nowhere", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{Schedd: "third@lab"} })
	here, there := s.Ended("here"), s.Ended("there")
	require.Equal(t, usual, here.Status.Schedd)
	require.Equal(t, second, there.Status.Schedd)
	require.EqualValues(t, 2, there.Status.Failed)
	require.EqualValues(t, 3, *there.Status.Failures[0].ExitCode)
	require.Equal(t, "callback", s.Source(there))
	require.Empty(t, s.Condor("condor_q", trial.Tagged(there)), "nothing of it is at the usual schedd")
	refused := s.Ended("nowhere")
	require.Contains(
		t,
		s.Condition(refused, v1alpha1.ConditionSubmitted).Message,
		"schedd third@lab is not one that htcd may send jobs to",
	)

	kept := s.Until("kept", "submitted", func(job *v1alpha1.HTCJob) bool { return len(job.Status.JobID) > 0 })
	require.NotEmpty(t, s.atSecond("condor_q", kept, "ClusterId"))
	require.NoError(t, s.Jobs.Delete(t.Context(), "kept", metav1.DeleteOptions{}))
	s.gone()
	require.Empty(t, s.atSecond("condor_q", kept, "ClusterId"))
	require.Empty(t, s.atSecond("condor_q", there, "ClusterId"))
}

func TestTheNextAttemptAtAnotherScheddMayHaveTheSameNumber(t *testing.T) {
	s := newSite(t)
	s.Create("moves", "exit 1\n")
	first := s.Ended("moves")
	require.Equal(t, v1alpha1.PhaseFailed, first.Status.Phase)
	s.anew(first.Status.ClusterID)
	s.Script("moves", "exit 0\n", atSecond)
	again := s.Until(
		"moves",
		"ended again",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Attempt == 2 && job.Status.Phase.Terminal() },
	)
	require.Equal(t, v1alpha1.PhaseSucceeded, again.Status.Phase)
	require.Equal(t, second, again.Status.Schedd)
	require.Equal(t, first.Status.JobID, again.Status.JobID)

	report, err := s.Lab.Run(t.Context(), "htcd", "reconcile", "--once", "--namespace", s.Namespace)
	require.NoError(t, err)
	require.NotContains(t, report, "moves", "each schedd is asked about its own")
	s.gone()
}

func TestASecondScheddThatIsDownConcernsNobodyElse(t *testing.T) {
	s := newSite(t)
	s.Create("there", "exit 0\n", atSecond)
	s.Ended("there")
	s.do(s.part("schedd2").Kill)
	var waiting []string
	for i := range 6 { // more than there are submitters
		waiting = append(waiting, fmt.Sprintf("there-%d", i))
		s.Create(waiting[i], "exit 0\n", atSecond)
	}
	for _, name := range waiting {
		s.says(name, v1alpha1.ConditionBackendReachable, "Unreachable")
	}
	s.Create("here", "exit 0\n")
	here := s.Ended("here")
	require.Equal(t, metav1.ConditionTrue, s.Condition(here, v1alpha1.ConditionBackendReachable).Status)
	require.Equal(t, "stopped", s.state("schedd2"))

	s.do(s.part("schedd2").Start)
	for _, name := range waiting {
		require.Equal(t, v1alpha1.PhaseSucceeded, s.Ended(name).Status.Phase)
	}
	s.gone()
}

// The test removes from the ledger what htcd might not have recorded yet when it was killed.
func TestARunIsFoundAgainWhereItWasSent(t *testing.T) {
	s := newSite(t)
	s.Create("killed", "exit 0\n", trial.Queue(3), never, atSecond)
	before := s.Phase("killed", v1alpha1.PhaseIdle)
	s.do(s.part("htcd").Kill)
	s.SQL(
		fmt.Sprintf(
			"UPDATE runs SET state = 'Intent', cluster = 0, submitted = 0, checked = 0 WHERE uid = '%s'",
			before.UID,
		),
	)
	s.SQL(fmt.Sprintf("DELETE FROM htcjobs WHERE run = (SELECT id FROM runs WHERE uid = '%s')", before.UID))
	s.do(s.part("htcd").Start)

	s.Eventually(func() bool {
		return s.SQL(fmt.Sprintf("SELECT state, cluster, schedd FROM runs WHERE uid = '%s'", before.UID)) ==
			fmt.Sprintf("Submitted|%d|%s", before.Status.ClusterID, second)
	}, func() string { return s.Kubectl("describe", "htcjob", "killed") })
	require.Empty(t, s.Condor("condor_q", trial.Tagged(before)))
	require.Len(t, s.atSecond("condor_q", before, "ProcId"), 3, "one cluster of it")
	s.gone()
}

func TestAScheddWhoseNameIsMistypedIsToldFromOneThatHasStopped(t *testing.T) {
	s := newSite(t)
	s.answer(t, "nowhere.example.org")
	s.Create("waiting", "exit 0\n")
	said := s.says("waiting", v1alpha1.ConditionBackendReachable, "Unreachable")
	require.Regexp(
		t,
		`the collector \S+ has no record of schedd nowhere.example.org: it is stopped, or it has another name; it has not answered since htcd began`,
		said,
	)
	s.metric(`htcd_schedd_reachable{schedd="nowhere.example.org"}`, "0")
	s.metric(`htcd_schedd_reachable{schedd="usual"}`, "") // it has a name
	require.Equal(t, "Unreachable", s.column("waiting"))

	s.answer(t, usual)
	s.succeeded("waiting")
	s.gone()
}

func TestWhenTheUsualScheddIsGoneTheSitesCommandMayNameAnother(t *testing.T) {
	s := newSite(t)
	s.Create("old", "sleep 30\n")
	s.running("old")
	s.do(s.part("schedd").Stop)
	s.Create("caught", "exit 0\n") // its intent is written by the time the schedd is known not to answer
	s.says("caught", v1alpha1.ConditionBackendReachable, "Unreachable")
	s.answer(t, `{"currentschedd": "`+second+`"}`)
	s.Create("new", "exit 0\n")
	// HTCondor starts it later: its negotiator waits for the vanished schedd.
	require.Equal(t, second, s.Phase("new", v1alpha1.PhaseIdle).Status.Schedd)

	s.do(s.part("schedd").Start)
	for _, name := range []string{"old", "caught", "new"} {
		require.Equal(t, v1alpha1.PhaseSucceeded, s.Ended(name).Status.Phase)
	}
	require.Equal(t, usual, s.Get("old").Status.Schedd)
	s.gone()
}

// credentials returns HTCondor's configuration at a site where condor_submit asks a program for the credentials of
// jobs.
func credentials(t *testing.T, script string) string {
	t.Helper()
	running := trial.New(t).Lab
	usual, err := os.ReadFile(running.Path("condor", "client.conf"))
	require.NoError(t, err)
	producer, config := running.Path("run", "producer"), running.Path("run", "site.conf")
	programtest.Write(t, producer, "#!/bin/sh\n"+script)
	require.NoError(
		t,
		os.WriteFile(
			config,
			fmt.Appendf(usual, "SEC_CREDENTIAL_PRODUCER = %s\nCREDD_HOST = $(SCHEDD_HOST)\n", producer),
			0o644,
		),
	)
	return config
}

func TestWhereTheSiteGivesJobsATicketTheyHaveItAndNobodyElse(t *testing.T) {
	s := newSite(t, "--condor-config="+credentials(t, `cat "${KRB5CCNAME#FILE:}"`+"\n"))
	s.answer(t, `{"currentschedd": "`+usual+`"}`)
	s.Create(
		"elsewhere",
		`test -s "${KRB5CCNAME#FILE:}"`+"\n",
		func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "MY.SendCredential = True\n" },
	)
	s.succeeded("elsewhere")
	job := s.Until("elsewhere", "fetched", func(job *v1alpha1.HTCJob) bool {
		return meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionOutputFetched)
	})
	kept, err := filepath.Glob(s.Lab.Path("htcd", "data", "out", s.Namespace, job.Name, "1", "0", "*"))
	require.NoError(t, err)
	for i, file := range kept {
		kept[i] = filepath.Base(file)
	}
	require.ElementsMatch(t, []string{"_condor_stdout", "_condor_stderr"}, kept, "the ticket is none of its output")
	s.gone()
}

func TestAtAScheddsLimitOneHTCJobAsksAndTheOthersWait(t *testing.T) {
	s := newSite(t)
	s.configure("MAX_JOBS_PER_OWNER = 2\n")
	s.Create("first", "exit 0\n", atSecond, never, trial.Queue(2)) // idle jobs leave the queue immediately
	s.Until("first", "submitted", func(job *v1alpha1.HTCJob) bool { return len(job.Status.JobID) > 0 })
	waiting := []string{"second", "third", "fourth"}
	for _, name := range waiting {
		s.Create(name, "exit 0\n", atSecond)
	}
	for _, name := range waiting {
		require.Contains(t, s.says(name, v1alpha1.ConditionSubmitted, "LimitReached"), "MAX_JOBS_PER_OWNER")
	}
	require.Equal(t, metav1.ConditionTrue, s.Condition(s.Get("second"), v1alpha1.ConditionBackendReachable).Status)
	require.NoError(t, s.Jobs.Delete(t.Context(), "first", metav1.DeleteOptions{}))
	for _, name := range waiting {
		require.Equal(t, v1alpha1.PhaseSucceeded, s.Ended(name).Status.Phase)
	}
	s.gone()
}
