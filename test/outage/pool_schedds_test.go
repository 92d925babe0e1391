package outage

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func by(pool string) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{Name: pool} }
}

// at waits until an HTCJob's jobs are in HTCondor, and returns its schedd.
func (s site) at(name string) string {
	s.T.Helper()
	return s.Until(
		name,
		"submitted",
		func(job *v1alpha1.HTCJob) bool { return len(job.Status.JobID) > 0 },
	).Status.Schedd
}

func TestOfAPoolsScheddsTheLeastUsedThatAnswersIsChosen(t *testing.T) {
	s := newSite(t)
	pool := s.Pool("", "{schedds: ["+usual+", "+second+"]}")
	s.Create("first", "exit 0\n", by(pool), never, trial.Queue(3))
	one := s.at("first")
	other := map[string]string{usual: second, second: usual}[one]
	require.NotEmpty(t, other, one)
	for _, name := range []string{"second", "third"} { // the other one has fewer open jobs
		s.Create(name, "exit 0\n", by(pool), never)
		require.Equal(t, other, s.at(name), name)
	}
	s.Create("named", "exit 0\n", by(pool), never, func(job *v1alpha1.HTCJob) { job.Spec.Pool.Schedd = one })
	require.Equal(t, one, s.at("named"))

	// What is caught between a schedd's end and its being noticed stays where its intent says.
	s.do(s.part("schedd2").Kill)
	s.metric(`htcd_schedd_reachable{schedd="`+second+`"}`, "0")
	s.Create("fourth", "exit 0\n", by(pool), never)
	require.Equal(t, usual, s.at("fourth"), "the second one does not answer")
	s.do(s.part("schedd").Kill)
	s.metric(`htcd_schedd_reachable{schedd="`+usual+`"}`, "0")
	s.Create("none", "exit 0\n", by(pool))
	s.says("none", v1alpha1.ConditionBackendReachable, "Unreachable")
	says := func(words string) {
		t.Helper()
		said := func() string {
			return s.Kubectl(
				"get",
				"htcpool",
				pool,
				"-o",
				`jsonpath={range .status.conditions[*]}{.type} {.status} {.reason}; {end}`,
			)
		}
		s.Eventually(func() bool { return strings.Contains(said(), words) }, said)
	}
	says("Reachable False Unreachable; Accepting False Unreachable; ")
	s.do(s.part("schedd2").Start)
	require.Equal(t, second, s.at("none"))
	says("Reachable True SomeAnswer; Accepting True Accepting; ")
	s.do(s.part("schedd").Start)
	says("Reachable True Answered; ")
	s.gone()
}

func TestAScheddsLimitConcernsOnlyTheHTCJobsThatItRefuses(t *testing.T) {
	s := newSite(t)
	s.configure("MAX_JOBS_PER_OWNER = 3\n")
	config, err := os.ReadFile(s.Lab.Path("condor", "client.conf"))
	require.NoError(t, err)
	collector := regexp.MustCompile(`(?m)^COLLECTOR_HOST = (.*)$`).FindStringSubmatch(string(config))[1]
	pool := s.Pool("", "{schedd: "+second+", collector: '"+collector+"'}")
	accepting := func(words string) {
		t.Helper()
		said := func() string {
			return s.Kubectl(
				"get",
				"htcpool",
				pool,
				"-o",
				`jsonpath={.status.waiting} {range .status.conditions[?(@.type=="Accepting")]}{.status} {.reason}: {.message}{end}`,
			)
		}
		s.Eventually(func() bool { return strings.Contains(said(), words) }, said)
	}
	s.Create("first", "exit 0\n", by(pool), never, trial.Queue(2))
	require.Equal(t, second, s.at("first"))
	accepting("True Accepting")
	for _, name := range []string{"second", "third"} {
		s.Create(name, "exit 0\n", by(pool), trial.Queue(2))
		require.Contains(t, s.says(name, v1alpha1.ConditionSubmitted, "LimitReached"), "MAX_JOBS_PER_OWNER")
	}
	accepting("2 True Accepting")
	s.Create("small", "exit 0\n", by(pool))
	require.Equal(t, v1alpha1.PhaseSucceeded, s.Ended("small").Status.Phase)
	require.NoError(t, s.Jobs.Delete(t.Context(), "first", metav1.DeleteOptions{}))
	for _, name := range []string{"second", "third"} {
		require.Equal(t, v1alpha1.PhaseSucceeded, s.Ended(name).Status.Phase)
	}
	accepting("0 True Accepting")
	s.gone()
}
