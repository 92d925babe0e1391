//go:build !releases

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

func in(pool string) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{Name: pool} }
}

// attribute returns an attribute of the jobs of an HTCJob's newest attempt, in the queue or the history.
func attribute(b *trial.Bench, job *v1alpha1.HTCJob, name string) string {
	b.T.Helper()
	lines := b.Ads(fmt.Sprintf("%s && HTCJobAttempt == %d", trial.Tagged(job), job.Status.Attempt), name)
	require.NotEmpty(b.T, lines)
	_, value, _ := strings.Cut(lines[0], " ")
	return value
}

// waits waits until an HTCJob waits for that reason, and returns the words.
func waits(b *trial.Bench, name, reason string) string {
	b.T.Helper()
	job := b.Until(
		name,
		"waiting with the reason "+reason,
		func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == reason },
	)
	require.Equal(b.T, v1alpha1.PhasePending, job.Status.Phase)
	return b.Condition(job, v1alpha1.ConditionSubmitted).Message
}

const everyDefault = `
defaults:
  image: centos
  credentials: [{name: atlas, as: X509Proxy, secretKeyRef: {name: atlas-proxy, key: x509up}}]
  resources: {cpus: 1, memory: 40Mi, disk: 10Mi}
  htcopts: |
    +JobFlavour = "longlunch"
    priority = 3
  environment: {SITE: LAB, OWN: pool}
  accountingGroup: group_lab
  retries: 1
  activeDeadlineSeconds: 4000
  idleDeadlineSeconds: 5000
  heldDeadlineSeconds: 6000
  runDeadlineSeconds: 7000
adjust: {cpusPercent: 50, memoryPercent: 110, memoryExtra: 6Mi, diskPercent: 150}
`

func TestAPoolCompletesWhatAnHTCJobDoesNotSay(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	p := b.Pool("", everyDefault)
	b.Script("silent", "echo $SITE $OWN\nsha256sum <$X509_USER_PROXY >digest", in(p), func(job *v1alpha1.HTCJob) {
		job.Spec.Script.Image = ""
		job.Spec.Environment = map[string]v1alpha1.EnvironmentValue{"OWN": "job"}
	})
	b.Script("says", "echo $SITE $OWN\n", in(p), func(job *v1alpha1.HTCJob) {
		job.Spec.HTCOpts = "request_memory = 80\nrequest_cpus = 3\nmax_retries = 0\n+AccountingGroup = \"own\"\n+MaxRuntime = 60\n"
		job.Spec.Priority = new(int32(7))
		job.Spec.ActiveDeadlineSeconds, job.Spec.IdleDeadlineSeconds = new(int64(400)), new(int64(500))
	})
	waiting := b.Until("silent", "waiting for its Secret", func(job *v1alpha1.HTCJob) bool {
		return job.Status.Reason == "SecretNotFound"
	})
	require.Contains(
		t,
		b.Condition(waiting, v1alpha1.ConditionInputsReady).Message,
		"credential atlas of HTCPool "+p+":",
	)
	certificate := proxy(t, time.Now().Add(12*time.Hour))
	jobSecret(b, "atlas-proxy", "x509up", certificate)
	silent, says := b.Ended("silent"), b.Ended("says")
	for _, c := range []struct {
		job       *v1alpha1.HTCJob
		attribute string
		want      string
	}{
		{silent, "HTCPool", p}, {silent, "RequestCpus", "1"}, {silent, "RequestMemory", "50"}, {silent, "RequestDisk", "15360"},
		{silent, "JobFlavour", "longlunch"}, {silent, "JobPrio", "3"}, {silent, "AcctGroup", "group_lab"}, {silent, "JobMaxRetries", "1"},
		{silent, "HTCJobIdleDeadline", "5000"}, {silent, "HTCJobHeldDeadline", "6000"}, {silent, "AllowedExecuteDuration", "7000"},
		{says, "HTCPool", p}, {says, "RequestCpus", "2"}, {says, "RequestMemory", "94"}, {says, "JobFlavour", "undefined"}, {says, "MaxRuntime", "60"},
		{says, "JobPrio", "7"}, {says, "AccountingGroup", "own"}, {says, "AcctGroup", "undefined"}, {says, "JobMaxRetries", "0"},
		{says, "HTCJobIdleDeadline", "500"}, {says, "HTCJobHeldDeadline", "6000"},
	} {
		require.Equal(t, c.want, attribute(b, c.job, c.attribute), "%s: %s", c.job.Name, c.attribute)
	}
	require.Equal(t, "LAB job\n", b.Output(silent, 0))
	require.Equal(t, "LAB pool\n", b.Output(says, 0))
	require.Contains(t, b.File(silent, 0, "digest"), digestOf(certificate))
	text, err := json.Marshal(silent.Status.Effective)
	require.NoError(t, err)
	require.JSONEq(
		t,
		fmt.Sprintf(
			`{"pool": %q, "resources": {"cpus": "1", "memory": "50Mi", "disk": "15Mi"}, "retries": 1, "accountingGroup": "group_lab",
		"activeDeadlineSeconds": 4000, "idleDeadlineSeconds": 5000, "heldDeadlineSeconds": 6000, "runDeadlineSeconds": 7000}`,
			p,
		),
		string(text),
	)
	require.EqualValues(t, 400, *says.Status.Effective.ActiveDeadlineSeconds)
}

func TestAnEditOfAPoolConcernsLaterAttempts(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	p := b.Pool("", "{defaults: {resources: {memory: 40Mi}, activeDeadlineSeconds: 3000}, keep: {succeeded: 1h}}")
	b.Script("edited", "exit 0\n", in(p))
	b.Script("left", "until [ -e go ]; do sleep 1; done\n", in(p))
	first := b.Ended("edited")
	require.EqualValues(t, 3600, *first.Status.Effective.TTLSecondsAfterFinished)
	left := b.Phase("left", v1alpha1.PhaseRunning)
	b.EditPool(p, "{defaults: {resources: {memory: 50Mi}, activeDeadlineSeconds: 1}, keep: {succeeded: 2h, most: 90m}}")
	b.Until("edited", "kept for as long as the pool says now", func(job *v1alpha1.HTCJob) bool {
		return *job.Status.Effective.TTLSecondsAfterFinished == 5400
	})
	b.Script(
		"edited",
		"exit 0 # again\n",
		in(p),
		func(job *v1alpha1.HTCJob) { job.Spec.ActiveDeadlineSeconds = new(int64(4000)) },
	)
	again := b.Until(
		"edited",
		"ended again",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Attempt == 2 && job.Status.Phase.Terminal() },
	)
	require.Equal(t, "50", attribute(b, again, "RequestMemory"))
	b.Kubectl("delete", "htcpool", p)
	now := b.Get("left")
	require.Equal(t, v1alpha1.PhaseRunning, now.Status.Phase)
	require.Equal(t, left.Status.ClusterID, now.Status.ClusterID)
	require.EqualValues(t, 3000, *now.Status.Effective.ActiveDeadlineSeconds)
	require.Equal(t, "40Mi", now.Status.Effective.Resources.Memory.String())
}

func TestADefaultDeadlineEndsAnAttempt(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	p := b.Pool("", "{defaults: {activeDeadlineSeconds: 3}}")
	b.Script("late", "sleep 1000\n", in(p))
	b.Until("late", "sent", func(job *v1alpha1.HTCJob) bool { return len(job.Status.JobID) > 0 })
	b.Kubectl("delete", "htcpool", p)
	late := b.Ended("late")
	require.Equal(t, "DeadlineExceeded", late.Status.Reason)
	require.Contains(
		t,
		late.Status.Failures[0].Message+b.Condition(late, v1alpha1.ConditionFailed).Message,
		"a default of HTCPool "+p,
	)
}

func TestAnHTCJobWaitsForItsPool(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	name := b.Namespace
	b.Script("early", "exit 0\n", in(name))
	require.Contains(t, waits(b, "early", "PoolMissing"), "there is no HTCPool "+name)

	b.Pool("", `{namespaceSelector: {matchLabels: {e2e: "`+name+`"}}, defaults: {htcopts: "executable = /bin/sh"}}`)
	require.Contains(t, waits(b, "early", "PoolNotAllowed"), "HTCPool "+name+" is not for namespace "+b.Namespace)
	_, err := b.Lab.Run(t.Context(), "kubectl", "label", "namespace", b.Namespace, "e2e="+name)
	require.NoError(t, err)
	require.Contains(
		t,
		waits(b, "early", "PoolInvalid"),
		"defaults: htcopts, line 1, column 1: executable is not allowed",
	)
	keptPool{b, name}.until(func(p *v1alpha1.HTCPool) bool {
		return hasReason(p, v1alpha1.PoolAccepting, metav1.ConditionFalse, "PoolInvalid")
	})
	b.EditPool(name, `{defaults: {htcopts: "+WantOS = \"el9\""}}`)
	early := b.Ended("early")
	require.Equal(t, v1alpha1.PhaseSucceeded, early.Status.Phase)
	require.EqualValues(t, 1, early.Status.Attempt)
	require.Equal(t, "el9", attribute(b, early, "WantOS"))
}

func TestTheDefaultPoolIsForThoseThatNameNone(t *testing.T) {
	t.Parallel()
	b, other := trial.New(t), trial.New(t)
	p := b.Pool(
		"",
		"{default: true, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+b.Namespace+"}}, defaults: {resources: {memory: 40Mi}}}",
	)
	b.Eventually(func() bool {
		b.Create("none", "exit 0\n")
		job := b.Ended("none")
		if job.Status.Effective != nil {
			require.Equal(t, p, job.Status.Effective.Pool)
			return true
		}
		b.Kubectl("delete", "htcjob", "none")
		return false
	}, func() string { return "the default pool was never used" })
	other.Script("elsewhere", "exit 0\n")
	require.Nil(t, other.Ended("elsewhere").Status.Effective, "its namespace may not use the default pool")

	younger := keptPool{
		b,
		b.Pool(
			"younger",
			"{default: true, namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+b.Namespace+"}}}",
		),
	}
	younger.until(func(p *v1alpha1.HTCPool) bool {
		return hasReason(p, v1alpha1.PoolDefault, metav1.ConditionFalse, "OlderDefault")
	})
	keptPool{b, p}.until(func(p *v1alpha1.HTCPool) bool {
		return hasReason(p, v1alpha1.PoolDefault, metav1.ConditionTrue, "InUse")
	})
}

func TestAPoolsRulesRefuse(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	p := b.Pool(
		"",
		`{schedds: [one@lab, two@lab], images: ["docker://registry.example.org/**"], account: {from: Common}, max: {memory: 100Mi}}`,
	)
	image := func(job *v1alpha1.HTCJob) { job.Spec.Script.Image = "registry.example.org/any" }
	b.Script("image", "exit 0\n", in(p))
	b.Script("schedd", "exit 0\n", in(p), image, func(job *v1alpha1.HTCJob) { job.Spec.Pool.Schedd = "three@lab" })
	b.Script("account", "exit 0\n", in(p), image, func(job *v1alpha1.HTCJob) { job.Spec.Pool.SecretName = "mine" })
	b.Script(
		"memory",
		"exit 0\n",
		in(p),
		image,
		func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "request_memory = 1GB\n" },
	)
	for name, words := range map[string]string{
		"memory":  "HTCPool " + p + " allows a job at most 100 MiB of request_memory (max.memory), found 1024 MiB",
		"image":   "/centos is not among those that HTCPool " + p + " allows: docker://registry.example.org/**",
		"schedd":  "spec.pool.schedd: HTCPool " + p + " has no schedd three@lab, but one@lab, two@lab",
		"account": "spec.pool.secretName: HTCPool " + p + " sends all jobs as htcd's own account: leave it out",
	} {
		job := b.Ended(name)
		require.Equal(t, "Refused", job.Status.Reason, name)
		require.Contains(t, b.Condition(job, v1alpha1.ConditionSubmitted).Message, words, name)
	}
	huge := b.Pool("huge", "{adjust: {memoryPercent: 1000}}")
	b.Script("huge", "exit 0\n", in(huge), func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "request_memory = 1000T\n" })
	require.Contains(
		t,
		b.Condition(b.Ended("huge"), v1alpha1.ConditionSubmitted).Message,
		"with the adjustments of HTCPool "+huge,
	)
}

func TestAPoolKeepsEndedHTCJobs(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	p := b.Pool("", "{keep: {succeeded: 1s, failed: 1h, removed: 1s, most: 2h}}")
	b.Script("good", "exit 0\n", in(p))
	b.Script("bad", "exit 1\n", in(p))
	b.Script(
		"own",
		"exit 0\n",
		in(p),
		func(job *v1alpha1.HTCJob) { job.Spec.TTLSecondsAfterFinished = new(int32(1000000)) },
	)
	require.EqualValues(t, 3600, *b.Ended("bad").Status.Effective.TTLSecondsAfterFinished)
	require.EqualValues(t, 7200, *b.Ended("own").Status.Effective.TTLSecondsAfterFinished)
	b.Eventually(
		func() bool { return !strings.Contains(b.Kubectl("get", "htcjobs", "-o", "name"), "/good") },
		func() string { return "it is still there" },
	)
	b.Script("removed", "sleep 1000\n", in(p))
	_, err := b.Lab.Run(t.Context(), "condor_rm", b.Phase("removed", v1alpha1.PhaseRunning).Status.JobID[0])
	require.NoError(t, err)
	b.Eventually(
		func() bool { return !strings.Contains(b.Kubectl("get", "htcjobs", "-o", "name"), "/removed") },
		func() string { return "it is still there" },
	)
	b.EditPool(p, "{keep: {failed: 1s, most: 1s}}")
	b.Eventually(
		func() bool { return b.Kubectl("get", "htcjobs", "-o", "name") == "" },
		func() string { return b.Kubectl("get", "htcjobs") },
	)
}

// The most that a pool's administrator may write reaches HTCondor as it is.
func TestAPoolMayHave64KiBOfHTCOpts(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	pool := func(suffix, htcopts string) string {
		spec, err := json.Marshal(map[string]any{"defaults": map[string]any{"htcopts": htcopts}})
		require.NoError(t, err)
		return b.Pool(suffix, string(spec))
	}
	text := `"` + strings.Repeat("t", 4<<10-2) + `"`
	expression := "true" + strings.Repeat(" && true", (4<<10-4)/8)
	most := "requirements = " + expression + "\nrank = " + expression + "\nperiodic_hold = !" + expression + "\n"
	names := []string{
		"JobFlavour",
		"WantOS",
		"BigMemJob",
		"ProjectName",
		"DESIRED_Sites",
		"DESIRED_CMS_Sites",
		"UNDESIRED_Sites",
		"REQUIRED_OS",
		"Experiment",
		"JobDescription",
	}
	for _, name := range names {
		most += "+" + name + " = " + text + "\n"
	}
	most += "#" + strings.Repeat("c", 64<<10-len(most)-1)
	b.Script("most", "exit 0\n", in(pool("most", most)))
	job := b.Ended("most")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, b.Kubectl("describe", "htcjob", "most"))
	for _, name := range names {
		require.Equal(t, strings.Trim(text, `"`), attribute(b, job, name))
	}

	p := pool("long", "+JobDescription = "+text+"+x")
	b.Script("long", "exit 0\n", in(p))
	const words = "htcopts, line 1, column 19: JobDescription: found a value of 4098 bytes, expected at most 4 KiB"
	require.Contains(t, waits(b, "long", "PoolInvalid"), words)
	keptPool{b, p}.until(func(p *v1alpha1.HTCPool) bool {
		return hasReason(p, v1alpha1.PoolAccepting, metav1.ConditionFalse, "PoolInvalid")
	})
	_, err := b.Lab.Run(
		t.Context(),
		"kubectl",
		"patch",
		"htcpool",
		p,
		"--type=merge",
		"-p",
		`{"spec": {"defaults": {"htcopts": "`+strings.Repeat("é", 40<<10)+`"}}}`,
	)
	require.ErrorContains(t, err, "htcopts must be at most 64 KiB of UTF-8")
}

func TestRenderShowsWhatIsSent(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	p := b.Pool("", everyDefault)
	jobSecret(b, "atlas-proxy", "x509up", proxy(t, time.Now().Add(12*time.Hour)))
	b.Script("sent", "exit 0\n", in(p))
	job := b.Ended("sent")
	text, err := yaml.Marshal(
		trial.Manifest("sent", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Namespace = b.Namespace }),
	)
	require.NoError(t, err)
	out, err := b.Lab.RunInput(t.Context(), string(text), "htcd", "render", "-f", "-", "--pool", p)
	require.NoError(t, err)
	require.Contains(t, out, "memory: 50Mi")
	for _, line := range []string{"request_memory = 50", "accounting_group = group_lab", "My.HTCPool = \"" + p + "\"", "SITE=LAB", "max_retries = 1"} {
		require.Contains(t, out, line+"\n")
	}
	require.Equal(t, "50", attribute(b, job, "RequestMemory"))
	_, err = b.Lab.RunInput(t.Context(), string(text), "htcd", "render", "-f", "-", "--pool", "none")
	require.ErrorContains(t, err, "there is no HTCPool none")
	_, err = b.Lab.Run(t.Context(), "htcd", "render", "-f", filepath.Join(t.TempDir(), "absent"))
	require.ErrorContains(t, err, "no such file")
}
