package security

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/target/secrets"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// restarted gives htcd these flags for the duration of the test. All tests share htcd, so such tests run alone.
func restarted(t *testing.T, flags ...string) {
	t.Helper()
	htcd := trial.New(t).Lab.Part("htcd")
	require.NoError(t, htcd.Restart(t.Context(), flags...))
	t.Cleanup(func() { require.NoError(t, htcd.Restart(context.WithoutCancel(t.Context()))) })
}

// account gives the namespace its own Secret and returns a function that removes it by force.
func account(b *trial.Bench, username, password string) (takeAway func()) {
	b.T.Helper()
	return accountNamed(b, "kinit-secret", username, password)
}

func accountNamed(b *trial.Bench, name, username, password string) (takeAway func()) {
	b.T.Helper()
	client, err := kubernetes.NewForConfig(trial.Config(b.T))
	require.NoError(b.T, err)
	secrets := client.CoreV1().Secrets(b.Namespace)
	_, err = secrets.Create(b.T.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		StringData: map[string]string{"username": username, "password": password},
	}, metav1.CreateOptions{})
	require.NoError(b.T, err)
	return func() {
		require.NoError(b.T, secrets.Delete(b.T.Context(), name, metav1.DeleteOptions{}))
		_, err := secrets.Patch(
			b.T.Context(),
			name,
			types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{},
		)
		require.True(b.T, err == nil || apierrors.IsNotFound(err), "%v", err)
	}
}

// granted gives htcd deploy/components/namespace-secrets for the duration of the test.
func granted(b *trial.Bench) {
	b.T.Helper()
	overlay, err := filepath.Abs("testdata/namespace-secrets")
	require.NoError(b.T, err)
	_, err = b.Lab.Run(b.T.Context(), "kubectl", "apply", "-k", overlay)
	require.NoError(b.T, err)
	b.T.Cleanup(func() {
		for _, kind := range []string{"clusterrolebinding", "clusterrole"} {
			_, err := b.Lab.Run(
				context.WithoutCancel(b.T.Context()),
				"kubectl",
				"delete",
				kind,
				"htcd-namespace-secrets",
			)
			require.NoError(b.T, err)
		}
	})
}

func owners(b *trial.Bench, job *v1alpha1.HTCJob) []string {
	b.T.Helper()
	var found []string
	for _, line := range b.Ads(trial.Tagged(job), "Owner") {
		found = append(found, strings.Fields(line)[1])
	}
	return found
}

func TestANamespacesOwnAccountIsItsAlone(t *testing.T) {
	common, hers, guesser := trial.New(t), trial.New(t), trial.New(t)
	ctx := t.Context()
	before, err := os.ReadFile(hers.Lab.Log("audit"))
	require.NoError(t, err)
	granted(common)
	restarted(t, "--namespace-secrets", "--pool-secrets=pool-account")
	takeAway := account(hers, "alice", parts.Passwords["alice"])
	account(guesser, "alice", "a guess")
	accountNamed(common, "pool-account", "alice", parts.Passwords["alice"])
	named := func(name string) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{SecretName: name} }
	}

	theirs := common.Create("job", "exit 3\n")
	alices := hers.Create("job", "exit 3\n", trial.Unpacked)
	kept := hers.Create("kept", "sleep 1000\n", trial.Unpacked)
	guesser.Create("job", "exit 3\n")
	chosen := common.Create("chosen", "exit 3\n", trial.Unpacked, named("pool-account"))
	guesser.Create("chosen", "exit 3\n", named("pool-account"))
	common.Create("another", "exit 3\n", named("token"))
	for _, b := range []*trial.Bench{common, hers} {
		ended := b.Ended("job")
		require.EqualValues(t, 3, *ended.Status.Failures[0].ExitCode)
		require.Equal(t, "callback", b.Source(ended))
	}
	hers.Phase("kept", v1alpha1.PhaseRunning)
	require.Equal(t, []string{"robot"}, owners(common, theirs))
	require.Equal(t, []string{"alice"}, owners(hers, alices))
	require.Equal(t, []string{"alice"}, owners(hers, kept))

	// A Secret that an HTCJob names is in its own namespace, with a name that htcd may read.
	common.Ended("chosen")
	require.Equal(t, []string{"alice"}, owners(common, chosen))
	absent := guesser.Until("chosen", "without a Secret", func(job *v1alpha1.HTCJob) bool {
		return meta.IsStatusConditionFalse(job.Status.Conditions, v1alpha1.ConditionCredentials)
	})
	require.Equal(t, "SecretMissing", guesser.Condition(absent, v1alpha1.ConditionCredentials).Reason)
	require.Contains(
		t,
		common.Condition(common.Ended("another"), v1alpha1.ConditionSubmitted).Message,
		"kinit-secret, pool-account only",
	)

	// Knowing her name is not enough, and does not lead to the common account either.
	guessed := guesser.Until("job", "refused", func(job *v1alpha1.HTCJob) bool {
		return meta.IsStatusConditionFalse(job.Status.Conditions, v1alpha1.ConditionCredentials)
	})
	require.Equal(t, "BadPassword", guesser.Condition(guessed, v1alpha1.ConditionCredentials).Reason)
	require.Empty(t, owners(guesser, guessed))
	caches(hers, "alice", "robot")

	// Without her Secret htcd uses the common account in her namespace, which may not touch her jobs.
	takeAway()
	// htcd watches Secrets and HTCJobs side by side, so it may hear of what is done next before it hears of this.
	tries := 0
	hers.Eventually(func() bool {
		tries++
		next := hers.Ended(hers.Create(fmt.Sprintf("without-%d", tries), "exit 0\n", trial.Unpacked).Name)
		return slices.Equal(owners(hers, next), []string{"robot"})
	}, func() string { return "htcd goes on with the Secret that was taken away" })
	require.NoError(t, hers.Jobs.Delete(ctx, "kept", metav1.DeleteOptions{}))
	stuck := hers.Until("kept", "not removed", func(job *v1alpha1.HTCJob) bool {
		return meta.IsStatusConditionFalse(job.Status.Conditions, v1alpha1.ConditionCredentials)
	})
	said := hers.Condition(stuck, v1alpha1.ConditionCredentials)
	require.Equal(t, "OtherAccount", said.Reason)
	require.Contains(t, said.Message, "1 job of the account alice")
	require.Contains(t, hers.Kubectl("describe", "htcjob", "kept"), "OtherAccount")
	require.Len(t, hers.Condor("condor_q", trial.Tagged(kept)+" && JobStatus == 2"), 1)
	// Once it is back, the deletion succeeds by itself.
	account(hers, "alice", parts.Passwords["alice"])
	hers.Eventually(func() bool { return hers.Kubectl("get", "htcjob", "kept", "--ignore-not-found") == "" },
		func() string { return hers.Kubectl("describe", "htcjob", "kept") })
	require.Empty(t, hers.Condor("condor_q", trial.Tagged(kept)))
	// While htcd may read the Secrets, and so releases them.
	for _, b := range []*trial.Bench{common, hers} {
		b.Kubectl("delete", "htcjob", "--all", "--timeout="+trial.Patience.String())
		b.Eventually(func() bool {
			return !strings.Contains(b.Kubectl("get", "secrets", "-o", "yaml"), secrets.Finalizer)
		},
			func() string { return b.Kubectl("get", "secrets", "-o", "yaml") })
	}

	// The grant is for these names.
	for _, a := range asked(hers, len(before)) {
		require.Equal(t, "allow", a.Annotations["authorization.k8s.io/decision"], "%s %s", a.Verb, a.URI)
		if a.ObjectRef.Resource == "secrets" {
			require.Contains(t, []string{"kinit-secret", "pool-account"}, a.ObjectRef.Name, a.URI)
		}
	}
	hers.Kubectl("delete", "rolebinding", "htcd-job-secrets") // which every namespace of the tests has
	for _, what := range [][]string{{"list", "secrets", "-A"}, {"get", "secrets/kinit-secret"}, {"watch", "secrets/other"}} {
		out, err := hers.Lab.Run(
			ctx,
			"kubectl",
			append([]string{"-n", hers.Namespace, "auth", "can-i", "--as=" + parts.HTCdUser}, what...)...)
		require.Error(t, err)
		require.Equal(t, "no", strings.TrimSpace(out), what)
	}
}

// Kubernetes deletes a namespace's contents in no particular order, and only her account may remove her jobs.
func TestANamespaceWithAnAccountOfItsOwnCanBeDeleted(t *testing.T) {
	b := trial.New(t)
	ctx := t.Context()
	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	jobs, err := v1alpha1.NewClient(trial.Config(t))
	require.NoError(t, err)
	hers, err := client.CoreV1().Namespaces().Create(
		ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "hers-"}},
		metav1.CreateOptions{},
	)
	require.NoError(t, err)
	granted(b)
	restarted(t, "--namespace-secrets", "--pool-secrets=pool-account")
	b.Namespace, b.Jobs = hers.Name, jobs.HTCJobs(hers.Name)
	account(b, "alice", parts.Passwords["alice"])
	accountNamed(b, "pool-account", "alice", parts.Passwords["alice"])

	usual := b.Create("usual", "sleep 1000\n", trial.Unpacked)
	named := b.Create(
		"named",
		"sleep 1000\n",
		trial.Unpacked,
		func(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{SecretName: "pool-account"} },
	)
	b.Phase("usual", v1alpha1.PhaseRunning)
	b.Phase("named", v1alpha1.PhaseRunning)
	require.Equal(t, []string{"alice"}, owners(b, usual))

	// Only the Secret waits for them, and nothing new is sent with it.
	b.Kubectl("delete", "secret", "kinit-secret", "--wait=false")
	b.Create("late", "exit 0\n", trial.Unpacked)
	refused := b.Until("late", "refused", func(job *v1alpha1.HTCJob) bool {
		return meta.IsStatusConditionFalse(job.Status.Conditions, v1alpha1.ConditionCredentials)
	})
	require.Equal(t, "SecretBeingDeleted", b.Condition(refused, v1alpha1.ConditionCredentials).Reason)
	require.Len(t, b.Condor("condor_q", trial.Tagged(usual)+" && JobStatus == 2"), 1)

	require.NoError(t, client.CoreV1().Namespaces().Delete(ctx, hers.Name, metav1.DeleteOptions{}))
	b.Eventually(func() bool {
		_, err := client.CoreV1().Namespaces().Get(ctx, hers.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, func() string { return b.Kubectl("get", "htcjobs,secrets", "-o", "yaml") })
	for _, job := range []*v1alpha1.HTCJob{usual, named} {
		require.Empty(t, b.Condor("condor_q", trial.Tagged(job)), job.Name)
	}
}

// caches checks that each of these accounts has a ticket cache, and that none is for two of them.
func caches(b *trial.Bench, accounts ...string) {
	b.T.Helper()
	out, err := b.Lab.RunAs(
		b.T.Context(),
		"root",
		"find",
		"/dev/shm/htcd",
		"-type",
		"f",
		"-path",
		"*/keeper-*/*",
		"-not",
		"-name",
		"*lock*",
	)
	require.NoError(b.T, err)
	found := map[string]bool{}
	for _, file := range strings.Fields(out) {
		list, err := b.Lab.RunAs(b.T.Context(), "root", "klist", "-c", "FILE:"+file)
		if err != nil {
			continue // not a cache
		}
		for _, account := range accounts {
			found[account] = found[account] || strings.Contains(list, "Default principal: "+account+"@")
		}
	}
	for _, account := range accounts {
		require.True(b.T, found[account], "no cache of %s in %s", account, out)
	}
}

func TestLimitsOfASite(t *testing.T) {
	b := trial.New(t)
	restarted(t, "--allow-images=docker://127.0.0.1:*/centos", "--max-queue=3", "--max-open-per-namespace=3")
	b.Create("image", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.Script.Image = "python" })
	b.Create("large", "exit 0\n", trial.Queue(4))
	b.Create("first", "sleep 15\n", trial.Queue(3))
	b.Until("first", "submitted", func(job *v1alpha1.HTCJob) bool { return len(job.Status.JobID) > 0 })
	b.Create("second", "exit 0\n", trial.Queue(3))

	require.Contains(
		t,
		b.Condition(b.Phase("image", v1alpha1.PhaseFailed), v1alpha1.ConditionSubmitted).Message,
		"docker://127.0.0.1:*/centos",
	)
	require.Contains(
		t,
		b.Condition(b.Phase("large", v1alpha1.PhaseFailed), v1alpha1.ConditionSubmitted).Message,
		"--max-queue",
	)
	waits := b.Until("second", "waiting", func(job *v1alpha1.HTCJob) bool {
		c := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionSubmitted)
		return c != nil && c.Reason == "NamespaceLimit"
	})
	require.Equal(t, v1alpha1.PhasePending, waits.Status.Phase)
	require.Contains(t, b.Kubectl("describe", "htcjob", "second"), "NamespaceLimit")
	first, second := b.Ended("first"), b.Ended("second")
	require.EqualValues(t, 3, second.Status.Succeeded)
	require.False(t, second.Status.StartTime.Before(first.Status.CompletionTime), "it waited for room")
}
