package security

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// grant is one verb on one resource, with the object's name if the rule has one.
type grant struct{ group, resource, verb, name string }

// shipped returns what files of deploy grant to htcd.
func shipped(t *testing.T, files ...string) map[grant]bool {
	t.Helper()
	grants := map[grant]bool{}
	for _, file := range files {
		text, err := os.ReadFile("../../deploy/" + file)
		require.NoError(t, err)
		var role rbacv1.ClusterRole
		require.NoError(t, yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(&role)) // the role comes first
		require.NotEmpty(t, role.Rules)
		for _, rule := range role.Rules {
			names := rule.ResourceNames
			if len(names) == 0 {
				names = []string{""}
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						for _, name := range names {
							require.NotContains(t, group+resource+verb, "*", "%s grants what nobody has named", file)
							grants[grant{group, resource, verb, name}] = true
						}
					}
				}
			}
		}
	}
	return grants
}

// audited is a line of the apiserver's audit log, which covers only htcd's account and exec.
type audited struct {
	Verb      string `json:"verb"`
	URI       string `json:"requestURI"`
	ObjectRef struct {
		APIGroup, Resource, Subresource, Name string
	} `json:"objectRef"`
	Annotations map[string]string `json:"annotations"`
}

// asked returns htcd's requests since the log had that length.
func asked(b *trial.Bench, since int) []audited {
	b.T.Helper()
	text, err := os.ReadFile(b.Lab.Log("audit"))
	require.NoError(b.T, err)
	require.Greater(b.T, len(text), since)
	var all []audited
	for line := range bytes.Lines(text[since:]) {
		var a audited
		if bytes.HasSuffix(line, []byte("\n")) { // the last may still be written
			require.NoError(b.T, json.Unmarshal(line, &a))
			all = append(all, a)
		}
	}
	return all
}

// htcd does everything it ever does in Kubernetes, as the account and with the rules that deploy/base ships. No request
// is forbidden, and every rule is used.
func TestTheShippedRulesAreEnoughAndNoneIsUnused(t *testing.T) {
	b := trial.New(t)
	ctx := t.Context()
	htcd := b.Lab.Part("htcd")
	before, err := os.ReadFile(b.Lab.Log("audit"))
	require.NoError(t, err)

	// The Lease: created, renewed, released.
	require.NoError(t, htcd.Stop(ctx))
	_, err = b.Lab.Run(ctx, "kubectl", "-n", "default", "delete", "lease", "htcd")
	require.NoError(t, err)
	require.NoError(t, htcd.Start(ctx))

	// The label on the active htcd's pod. There are no nodes here, so nothing runs in this pod.
	_, err = b.Lab.Run(ctx, "kubectl", "-n", "default", "run", "stand-in", "--image=none", "--restart=Never")
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := b.Lab.Run(
			context.WithoutCancel(t.Context()),
			"kubectl",
			"-n",
			"default",
			"delete",
			"pod",
			"stand-in",
			"--force",
		)
		require.NoError(t, err)
	})
	require.NoError(t, htcd.Restart(ctx, "--pod-name=stand-in"))
	label, err := b.Lab.Run(
		ctx,
		"kubectl",
		"-n",
		"default",
		"get",
		"pod",
		"stand-in",
		"-o",
		`jsonpath={.metadata.labels.htc\.cern\.ch/leads}`,
	)
	require.NoError(t, err)
	require.Equal(t, "true", label)
	require.NoError(t, htcd.Restart(ctx))

	// A job: refused, corrected, run again, deleted while it runs.
	b.Script("job", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.HTCOpts = "executable = /bin/id\n" })
	b.Phase("job", v1alpha1.PhaseFailed)
	b.Script("job", "exit 0\n")
	b.Phase("job", v1alpha1.PhaseSucceeded)
	b.Script("job", "sleep 1000\n")
	b.Phase("job", v1alpha1.PhaseRunning)
	b.Kubectl("delete", "htcjob", "job", "--timeout="+trial.Patience.String())

	// One whose time has expired.
	b.Script("expired", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.TTLSecondsAfterFinished = new(int32(1)) })
	b.Eventually(func() bool { return !strings.Contains(b.Kubectl("get", "htcjob", "-o", "name"), "expired") },
		func() string { return b.Kubectl("describe", "htcjob", "expired") })

	// One that leaves a Pod, and then should not.
	b.Script("left", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.LogsPod = true })
	b.Until("left", "left as a Pod", func(job *v1alpha1.HTCJob) bool {
		return meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionLogsPod)
	})
	b.Kubectl("patch", "htcjob", "left", "--type=merge", "-p", `{"spec":{"logsPod":false}}`)
	b.Until("left", "without its Pod", func(job *v1alpha1.HTCJob) bool {
		return meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionLogsPod) == nil
	})

	// The Secret changes.
	right := b.InDefault(ctx, "get", "secret", "kinit-secret", "-o", "jsonpath={.data.password}")
	write := func(ctx context.Context, encoded string) {
		b.InDefault(ctx, "patch", "secret", "kinit-secret", "-p", `{"data":{"password":"`+encoded+`"}}`)
	}
	t.Cleanup(func() { write(context.WithoutCancel(t.Context()), right) })
	write(ctx, base64.StdEncoding.EncodeToString([]byte("not it")))
	b.Eventually(func() bool {
		name := fmt.Sprintf("try-%d", len(b.Kubectl("get", "htcjob", "-o", "name")))
		b.Create(name, "exit 0\n")
		job := b.Until(name, "submitted or refused", func(job *v1alpha1.HTCJob) bool {
			return len(job.Status.JobID) > 0 ||
				meta.IsStatusConditionFalse(job.Status.Conditions, v1alpha1.ConditionCredentials)
		})
		return len(job.Status.JobID) == 0
	}, func() string { return "the wrong password was never noticed" })
	write(ctx, right)

	// htcd reconcile, beside the running htcd and without it. Its client-go asks as if the apiserver could not answer a
	// list with a watch.
	_, err = b.Lab.Run(ctx, "htcd", "reconcile", "--once")
	require.NoError(t, err)
	require.NoError(t, htcd.Stop(ctx))
	_, err = b.Lab.RunAs(
		ctx,
		"htcd",
		"env",
		"KUBE_FEATURE_WatchListClient=false",
		b.Lab.Path("htcd", "bin", "htcd"),
		"reconcile",
		"--once",
		"--kubeconfig="+b.Lab.Path(
			"kube",
			"htcd.kubeconfig",
		),
		"--data="+b.Lab.Path("htcd", "data"),
		"--ticket-dir=/dev/shm/htcd",
		"--condor-config="+b.Lab.Path(
			"condor",
			"client.conf",
		),
		"--krb5-config="+b.Lab.Path("krb", "krb5.conf"),
		"--pod-namespace=default",
	)
	require.NoError(t, err)
	require.NoError(t, htcd.Start(ctx))
	repeatEvent(b)
	listFrontProxy(b)
	usePools(b)
	useWorkflows(b)
	askForAShell(b)

	used := map[grant]bool{}
	for _, a := range asked(b, len(before)) {
		require.Equal(
			t,
			"allow",
			a.Annotations["authorization.k8s.io/decision"],
			"%s %s: %v",
			a.Verb,
			a.URI,
			a.Annotations,
		)
		resource := a.ObjectRef.Resource
		if a.ObjectRef.Subresource != "" {
			resource += "/" + a.ObjectRef.Subresource
		}
		for _, name := range []string{"", a.ObjectRef.Name} {
			used[grant{a.ObjectRef.APIGroup, resource, a.Verb, name}] = true
		}
	}
	granted := shipped(
		t,
		"base/rbac/clusterrole.yaml",
		"base/rbac/role.yaml",
		"components/logs-pod/clusterrole.yaml",
		"components/output/clusterrole.yaml",
	)
	for _, g := range slices.Collect(maps.Keys(granted)) {
		require.True(t, used[g], "granted and not used: %+v", g)
	}
}

// useWorkflows has a workflow run and expire, and another vanish without htcd's consent.
func useWorkflows(b *trial.Bench) {
	b.T.Helper()
	apply := func(name, more string) {
		b.T.Helper()
		_, err := b.Lab.RunInput(b.T.Context(), `
apiVersion: htc.cern.ch/v1alpha1
kind: HTCWorkflow
metadata: {name: `+name+`}
spec: {steps: [{name: one, job: {script: {image: centos, command: bash, source: "exit 0"}}}]`+more+`}
`, "kubectl", "-n", b.Namespace, "apply", "-f", "-")
		require.NoError(b.T, err)
	}
	apply("expired", ", ttlSecondsAfterFinished: 1")
	b.Eventually(func() bool { return b.Kubectl("get", "htcworkflow", "-o", "name") == "" },
		func() string { return b.Kubectl("describe", "htcworkflow", "expired") })
	apply("vanished", "")
	b.Kubectl("wait", "--for=condition=Complete", "htcworkflow/vanished", "--timeout="+trial.Patience.String())
	b.Kubectl("patch", "htcworkflow", "vanished", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	b.Kubectl("delete", "htcworkflow", "vanished")
	b.Eventually(func() bool {
		return strings.TrimSpace(b.SQL("SELECT count(*) FROM runs WHERE name = 'vanished'")) == "0"
	}, func() string { return "the rows of a workflow that vanished are kept" })
}

// askForAShell has htcd ask whether somebody may have one.
func askForAShell(b *trial.Bench) {
	b.T.Helper()
	var err error
	b.Eventually(func() bool { // the apiserver finds htcd again
		_, err = b.Lab.Run(
			b.T.Context(),
			"kubectl",
			"get",
			"--raw",
			"/apis/output.htc.cern.ch/v1alpha1/namespaces/"+b.Namespace+"/htcjobs/job/exec?command=id",
		)
		return err != nil && strings.Contains(err.Error(), "use htcd exec")
	}, func() string { return fmt.Sprint(err) })
}

// listFrontProxy asks as the active htcd does if the apiserver cannot answer a list with a watch.
func listFrontProxy(b *trial.Bench) {
	b.T.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", b.Lab.Path("kube", "htcd.kubeconfig"))
	require.NoError(b.T, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(b.T, err)
	found, err := client.CoreV1().ConfigMaps(
		"kube-system",
	).List(
		b.T.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=extension-apiserver-authentication"},
	)
	require.NoError(b.T, err)
	require.Len(b.T, found.Items, 1)
}

// usePools lets htcd watch the labels of namespaces for an HTCPool, and asks for both as htcd does if the apiserver
// cannot answer a list with a watch.
func usePools(b *trial.Bench) {
	b.T.Helper()
	pool := b.Pool("", "{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+b.Namespace+"}}}")
	b.Script("pooled", "exit 0\n", func(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{Name: pool} })
	b.Ended("pooled")
	config, err := clientcmd.BuildConfigFromFlags("", b.Lab.Path("kube", "htcd.kubeconfig"))
	require.NoError(b.T, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(b.T, err)
	_, err = client.CoreV1().Namespaces().List(b.T.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(b.T, err)
}

// repeatEvent reports the same about one object twice, as htcd would, and client-go makes it one Event with a count.
func repeatEvent(b *trial.Bench) {
	b.T.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", b.Lab.Path("kube", "htcd.kubeconfig"))
	require.NoError(b.T, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(b.T, err)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	require.NoError(b.T, broadcaster.StartRecordingToSinkWithContext(b.T.Context()))
	defer broadcaster.Shutdown()
	scheme := runtime.NewScheme()
	require.NoError(b.T, v1alpha1.AddToScheme(scheme))
	recorder := broadcaster.NewRecorder(scheme, "htcd")
	object := b.Create("told", "exit 0\n")
	b.Ended("told")
	for range 3 {
		recorder.Eventf(object, nil, corev1.EventTypeNormal, "Repeated", "Run", "said again")
	}
	b.Eventually(func() bool {
		out := b.Kubectl(
			"get",
			"events.events.k8s.io",
			"-o",
			`jsonpath={range .items[?(@.reason=="Repeated")]}{.series.count}{end}`,
		)
		return strings.TrimSpace(out) != ""
	}, func() string { return "the event was never counted" })
}
