//go:build !releases

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/trial"
)

// apply writes an object of a namespace.
func apply(b *trial.Bench, text string) {
	b.T.Helper()
	b.ApplyText(text)
}

func TestStepsGetTheInputsThatTheyNameAndNoOthers(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	at := b.Registry() + "/" + b.Namespace
	b.Push(at+"/model:v1", map[string][]byte{"model.pt": []byte("weights\n")})
	f := flowIn(b, "inputs", fmt.Sprintf(`
  sequences: {count: 3}
  steps:
  - name: first
    job:
      script: {image: centos, command: sh, source: "cat fit model prep; stat -c %%a pass; wc -c < pass; cp pass passed; ls"}
      inputs:
      - {name: fit, configMapKeyRef: {name: fit, key: k}}
      - {name: pass, secretKeyRef: {name: db, key: pass}}
      - {name: model, artifact: %[1]q}
      - {name: prep, jobRef: {name: prep, path: made}}
      - {name: none, configMapKeyRef: {name: none, key: k}, optional: true}
  - name: second
    job:
      script: {image: centos, command: sh, source: "cat model; ls; ls -A .htcd 2>/dev/null || true"}
      inputs: [{name: model, artifact: %[1]q}]
  - name: third
    pairing: All
    job:
      script: {image: centos, command: sh, source: "cat fit"}
      inputs: [{name: fit, configMapKeyRef: {name: fit, key: k}}]
`, at+"/model:v1"))
	w := f.until(
		"waiting for its inputs",
		func(w *v1alpha1.HTCWorkflow) bool { return w.Status.Reason == "ConfigMapNotFound" },
	)
	require.Empty(t, w.Status.JobID)
	apply(b, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fit}\ndata: {k: \"of the fit\\n\"}")
	jobSecret(b, "db", "pass", "the-password-of-the-database")
	b.Script("prep", "echo prepared > made\n")
	w = f.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, w.Status)
	for i := range 3 {
		text := f.output(w, fmt.Sprintf("first/job_%d", i), "_condor_stdout")
		require.True(t, strings.HasPrefix(text, "of the fit\nweights\nprepared\n600\n28\n"), text)
		require.NotContains(t, text, "none")
		text = f.output(w, fmt.Sprintf("second/job_%d", i), "_condor_stdout")
		require.True(t, strings.HasPrefix(text, "weights\n"), text)
		require.NotRegexp(t, `(?m)^(fit|pass|prep)$`, text, "inputs of another step")
		require.NoFileExists(
			t,
			f.Lab.Path("htcd", "data", "workflows", f.Namespace, f.name, "1", fmt.Sprintf("first/job_%d", i), "pass"),
		)
	}
	require.Equal(t, "of the fit\n", f.output(w, "third/all", "_condor_stdout"))
	require.Regexp(t, "^sha256:", w.Status.InputsDigest)
	require.Equal(
		t,
		metav1.ConditionTrue,
		meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionInputsReady).Status,
	)
	constraint := fmt.Sprintf("HTCWorkflowUID =?= %q || HTCJobUID =?= %q", w.UID, w.UID)
	require.NotContains(
		t,
		fmt.Sprint(f.Condor("condor_history", constraint, "Env", "Args", "TransferInput", "Environment", "Arguments")),
		"password",
	)
	f.gone(w)
}

func TestACredentialOfAStepIsRenewedInItsNodesAlone(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	end := time.Now().Add(12 * time.Hour)
	proxies := []string{proxy(t, end), proxy(t, end)}
	jobSecret(b, "atlas-proxy", "x509up", proxies[0])
	running := "running-" + b.Namespace
	f := flowIn(b, "fresh", fmt.Sprintf(`
  steps:
  - name: without
    needs: []
    job:
      script: {image: centos, command: sh, source: "echo :$HTC_CREDENTIALS:$X509_USER_PROXY:; find . -name '*credential*' -o -name '*token*'; true"}
  - name: with
    needs: []
    job:
      script:
        image: centos
        command: sh
        source: |
          touch %s; : >digests; find . -name '*token*'; stat -c %%a "$X509_USER_PROXY"
          last=
          while [ "$(wc -l <digests)" -lt 2 ]; do
            now=$(sha256sum <"$X509_USER_PROXY" | cut -d ' ' -f 1)
            [ "$now" = "$last" ] || echo "$now" >>digests
            last=$now
            sleep 0.5
          done
      credentials:
      - {name: atlas, secretKeyRef: {name: atlas-proxy, key: x509up}, as: X509Proxy}
`, running))
	var scratch string
	f.Eventually(func() bool {
		if scratch == "" {
			scratch = b.ScratchWith(running)
		}
		text, _ := os.ReadFile(filepath.Join(scratch, "digests"))
		return scratch != "" && strings.Contains(string(text), digestOf(proxies[0]))
	}, func() string { return "the first proxy was not read: " + b.Kubectl("describe", "htcworkflow", "fresh") })
	f.until("known to have fresh credentials", func(w *v1alpha1.HTCWorkflow) bool {
		return meta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionCredentialsFresh)
	})
	jobSecret(b, "atlas-proxy", "x509up", proxies[1])
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, w.Status)
	require.Equal(t, digestOf(proxies[0])+"\n"+digestOf(proxies[1])+"\n", f.output(w, "with/job_0", "digests"))
	require.Equal(t, "600\n", f.output(w, "with/job_0", "_condor_stdout"))
	require.Equal(t, "::\n", strings.ReplaceAll(f.output(w, "without/job_0", "_condor_stdout"), ":::", "::"))
	require.Nil(t, meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionCredentialsFresh))
	for _, secret := range proxies {
		require.NotContains(
			t,
			fmt.Sprint(
				f.Condor(
					"condor_history",
					fmt.Sprintf("HTCWorkflowUID =?= %q", w.UID),
					"Env",
					"Environment",
					"Args",
					"Arguments",
				),
			),
			secret,
		)
	}
	f.gone(w)
}
