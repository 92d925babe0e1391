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

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// The nodes of a step fetch from servers, those that want to see a proxy or a token among them, and read a token that
// is renewed while they run.
func TestNodesFetchFromServersAndReadARenewedToken(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	s := serve(b)
	urls, dirs := demanding(b)
	end := time.Now().Add(12 * time.Hour)
	atlas, serial := shown(b, end)
	renewed, keytab := jwt(end), "\x05\x02\x00 a keytab\xff\n\n"
	for file, text := range map[string]string{
		filepath.Join(s.store, "calib"): "by https\n", filepath.Join(s.xrootd, "field"): "by root\n",
		filepath.Join(dirs["proxies"], "in"): "by davs\n", filepath.Join(dirs["tokens"], "guarded"): "with a token\n",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	jobSecret(b, "atlas-proxy", "x509up", atlas)
	jobSecret(b, "wlcg", "token", parts.StoreToken)
	jobSecret(b, "eos", "keytab", keytab)
	running := "running-" + b.Namespace
	f := flowIn(b, "urls", fmt.Sprintf(`
  sequences: {count: 2}
  steps:
  - name: reads
    job:
      script:
        image: centos
        command: sh
        source: |
          cat calib field proxied tokened; sha256sum <"$HTC_CREDENTIALS/eos"
          : >digests; touch %[1]s-$jobid
          last=
          while [ "$(wc -l <digests)" -lt 2 ]; do
            now=$(sha256sum <"$BEARER_TOKEN_FILE" | cut -d ' ' -f 1)
            [ "$now" = "$last" ] || echo "$now" >>digests
            last=$now
            sleep 0.5
          done
      inputs:
      - {name: calib, url: %[2]q}
      - {name: field, url: %[3]q}
      - {name: proxied, url: %[4]q}
      - {name: tokened, url: %[5]q}
      credentials:
      - {name: atlas, secretKeyRef: {name: atlas-proxy, key: x509up}, as: X509Proxy}
      - {name: wlcg, secretKeyRef: {name: wlcg, key: token}, as: BearerToken}
      - {name: eos, secretKeyRef: {name: eos, key: keytab}, as: File}
  - name: after
    job: {script: {image: centos, command: sh, source: "ls; echo :$HTC_CREDENTIALS:$BEARER_TOKEN_FILE:$X509_USER_PROXY:"}}
`, running, s.https+"calib", s.root+"field", "davs"+urls["proxies"]+"in", "wlcg+https"+urls["tokens"]+"guarded"))
	for _, jobid := range []string{"job_0", "job_1"} {
		f.Eventually(func() bool {
			text, _ := os.ReadFile(filepath.Join(b.ScratchWith(running+"-"+jobid), "digests"))
			return strings.Contains(string(text), digestOf(parts.StoreToken))
		}, func() string {
			return jobid + " has not read its token: " + b.Kubectl("describe", "htcworkflow", "urls")
		})
	}
	jobSecret(b, "wlcg", "token", renewed)
	w := f.ended()
	require.Equal(t, v1alpha1.PhaseSucceeded, w.Status.Phase, w.Status)
	for _, jobid := range []string{"job_0", "job_1"} {
		require.Equal(
			t,
			"by https\nby root\nby davs\nwith a token\n"+digestOf(keytab)+"  -\n",
			f.output(w, "reads/"+jobid, "_condor_stdout"),
		)
		require.Equal(t, digestOf(parts.StoreToken)+"\n"+digestOf(renewed)+"\n", f.output(w, "reads/"+jobid, "digests"))
		require.NoFileExists(
			t,
			f.Lab.Path("htcd", "data", "workflows", f.Namespace, f.name, "1", "reads", jobid, "calib"),
			"inputs are not brought back",
		)
		require.Regexp(t, "(?m)^:+$", f.output(w, "after/"+jobid, "_condor_stdout"), "credentials of another step")
	}
	require.Equal(t, []string{"GET 200 " + serial, "GET 200 " + serial}, requests(b, "proxies/"+b.Namespace+"/in"))
	ads := fmt.Sprint(
		f.Condor(
			"condor_history",
			fmt.Sprintf("HTCWorkflowUID =?= %q || HTCJobUID =?= %[1]q", w.UID),
			"Env",
			"Environment",
			"Args",
			"Arguments",
			"TransferInput",
		),
	)
	for _, secret := range []string{strings.Split(atlas, "\n")[1], parts.StoreToken, renewed} {
		require.NotContains(t, ads, secret)
	}
	f.gone(w)

	f = flowIn(b, "unknown", fmt.Sprintf(`
  steps:
  - name: a
    job:
      script: {image: centos, command: sh, source: "true"}
      inputs: [{name: in, url: %q}]
`, "another+https"+urls["tokens"]+"in"))
	w = f.ended()
	require.Equal(t, "Refused", w.Status.Reason)
	require.Contains(
		t,
		meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionFailed).Message,
		"another before the + is not the name",
	)
}
