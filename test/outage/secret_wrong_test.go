package outage

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

const (
	secretUsable = `htcd_secret_usable{secret="default/kinit-secret"}`
	ticketEnds   = `htcd_ticket_expiry_timestamp_seconds{secret="default/kinit-secret"}`
)

// The earlier ticket would last for a day: neither it, nor the fact that nothing currently needs the account, hides
// that the Secret is wrong or gone.
func TestASecretThatBecomesWrongIsToldWhileJobsRun(t *testing.T) {
	o := begin(t)
	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	secrets := client.CoreV1().Secrets("default")
	write := func(ctx context.Context, password string) {
		text := fmt.Sprintf(
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"kinit-secret"},"stringData":{"username":"robot","password":%q}}`,
			password,
		)
		_, err := o.Lab.RunInput(ctx, text, "kubectl", "-n", "default", "apply", "-f", "-")
		require.NoError(t, err)
	}
	mend := func(ctx context.Context) { write(ctx, parts.Passwords["robot"]) }
	t.Cleanup(func() { mend(context.WithoutCancel(t.Context())) })
	o.Create("runs", "until [ -e stop ]; do sleep 1; [ $((i = i + 1)) -gt 600 ] && exit 9; done\n", trial.Queue(2))
	o.running("runs")
	o.metric(secretUsable, "1")
	require.NotEmpty(t, o.metrics()[ticketEnds])
	before := o.asked()

	write(t.Context(), "not it")
	require.Contains(t, o.says("runs", v1alpha1.ConditionCredentials, "BadPassword"), "Password incorrect")
	o.metric(secretUsable, "0")
	require.Empty(t, o.metrics()[ticketEnds], "that ticket is no longer the Secret's")
	o.Create("waits", "exit 0\n")
	o.says("waits", v1alpha1.ConditionCredentials, "BadPassword")
	o.metric(`htcd_waiting_htcjobs{reason="BadPassword"}`, "1")
	require.NotEmpty(t, o.metrics()[`htcd_waiting_since_timestamp_seconds{reason="BadPassword"}`])
	o.Kubectl("-n", "default", "annotate", "secret", "kinit-secret", "touched=yes")
	o.says("waits", v1alpha1.ConditionCredentials, "BadPassword")
	require.Equal(t, before+1, o.asked(), "the KDC was asked once, however many need the account: it might lock it")

	require.NoError(t, secrets.Delete(t.Context(), "kinit-secret", metav1.DeleteOptions{}))
	o.says("runs", v1alpha1.ConditionCredentials, "SecretMissing")
	o.metric(secretUsable, "0")

	mend(t.Context())
	o.metric(secretUsable, "1")
	o.Until("runs", "with credentials", func(job *v1alpha1.HTCJob) bool {
		return o.Condition(job, v1alpha1.ConditionCredentials).Status == metav1.ConditionTrue
	})
	o.running("runs")
	o.succeeded("waits")
	o.metric(`htcd_waiting_htcjobs{reason="BadPassword"}`, "")
	o.gone()
}

// asked returns how often the KDC was asked for an initial ticket for robot.
func (o outage) asked() (n int) {
	o.T.Helper()
	log, err := os.ReadFile(o.Lab.Log("kdc"))
	require.NoError(o.T, err)
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "AS_REQ") && strings.Contains(line, " robot@") {
			n++
		}
	}
	require.Positive(o.T, n, string(log))
	return n
}

// Without the right to write it, the status stays empty: the jobs are still sent, and end.
func TestAStatusThatIsRefusedIsTold(t *testing.T) {
	o := begin(t)
	kubectl := func(ctx context.Context, input string, args ...string) string {
		out, err := o.Lab.RunInput(ctx, input, "kubectl", args...)
		require.NoError(t, err)
		return out
	}
	var role map[string]any
	require.NoError(
		t,
		json.Unmarshal([]byte(kubectl(t.Context(), "", "get", "clusterrole", "htcd", "-o", "json")), &role),
	)
	right, err := json.Marshal(map[string]any{"rules": role["rules"]})
	require.NoError(t, err)
	var less []any
	for _, rule := range role["rules"].([]any) {
		if !strings.Contains(fmt.Sprint(rule.(map[string]any)["resources"]), "htcjobs/status") {
			less = append(less, rule)
		}
	}
	require.Len(t, less, len(role["rules"].([]any))-1)
	wrong, err := json.Marshal(map[string]any{"rules": less})
	require.NoError(t, err)
	patch := func(ctx context.Context, rules []byte) {
		kubectl(ctx, "", "patch", "clusterrole", "htcd", "--type=merge", "-p", string(rules))
	}
	t.Cleanup(func() { patch(context.WithoutCancel(t.Context()), right) })

	patch(t.Context(), wrong)
	o.Create("unseen", "exit 0\n")
	const refused = `htcd_status_writes_total{result="Forbidden"}`
	o.Eventually(
		func() bool { n := o.metrics()[refused]; return n != "" && n != "0" },
		func() string { return refused + " never grew" },
	)
	o.metric(`htcd_waiting_htcjobs{reason="NoStatus"}`, "1")
	require.NotEmpty(t, o.metrics()[`htcd_waiting_since_timestamp_seconds{reason="NoStatus"}`])
	require.Contains(t, o.log(), "status not written")
	require.Empty(t, o.Get("unseen").Status.Conditions)

	patch(t.Context(), right)
	o.succeeded("unseen")
	o.metric(`htcd_waiting_htcjobs{reason="NoStatus"}`, "")
	o.gone()
}

// metric waits until htcd shows this value; empty: none.
func (o outage) metric(series, value string) {
	o.T.Helper()
	var is string
	o.Eventually(func() bool { is = o.metrics()[series]; return is == value },
		func() string { return fmt.Sprintf("%s is %q instead of %q", series, is, value) })
}

// metrics returns what htcd shows to Prometheus, by series.
func (o outage) metrics() map[string]string {
	o.T.Helper()
	world, err := parts.Open(o.Lab)
	require.NoError(o.T, err)
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/metrics", world.Ports.Health))
	require.NoError(o.T, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	require.NoError(o.T, err)
	series := map[string]string{}
	for line := range strings.Lines(string(page)) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && !strings.HasPrefix(line, "#") {
			series[line[:i]] = strings.TrimSpace(line[i:])
		}
	}
	return series
}
