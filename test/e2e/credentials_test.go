package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
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

// proxy makes a certificate with its key, as a proxy has them, with an end.
func proxy(t *testing.T, end time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	certificate := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "proxy"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     end,
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, certificate, &key.PublicKey, key)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// jwt makes a token with an end.
func jwt(end time.Time) string {
	part := func(v any) string {
		text, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	return part(
		map[string]string{"alg": "none"},
	) + "." + part(
		map[string]any{"exp": end.Unix(), "jti": rand.Text()},
	) + ".c2lnbmVk"
}

// jobSecret writes a Secret that is marked for jobs.
func jobSecret(b *trial.Bench, name, key, value string, labels ...string) {
	b.T.Helper()
	marks := map[string]string{"htc.cern.ch/jobs": "true"}
	if len(labels) > 0 {
		marks = map[string]string{"htc.cern.ch/jobs": labels[0]}
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "labels": marks},
		"data": map[string][]byte{key: []byte(value)},
	})
	require.NoError(b.T, err)
	b.ApplyText(string(text))
}

// credentials gives an HTCJob some: "NAME SECRET KEY KIND" each.
func credentials(lines ...string) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) {
		for _, line := range lines {
			w := strings.Fields(line)
			job.Spec.Credentials = append(
				job.Spec.Credentials,
				v1alpha1.Credential{
					Name:         w[0],
					SecretKeyRef: v1alpha1.KeyRef{Name: w[1], Key: w[2]},
					As:           v1alpha1.CredentialKind(w[3]),
				},
			)
		}
	}
}

func digestOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// The script writes the digest of each proxy that it finds, and ends after the third.
const digests = `
touch "$1"
ls -lA "$HTC_CREDENTIALS" | grep -v ' \.' >modes
echo "$X509_USER_PROXY $BEARER_TOKEN_FILE" >paths
cat "$HTC_CREDENTIALS/eos" >eos.copied && sha256sum <eos.copied >eos.digest && rm eos.copied
sha256sum <"$BEARER_TOKEN_FILE" >token.digest
last=
while [ "$(wc -l <digests)" -lt 3 ]; do
	now=$(sha256sum <"$X509_USER_PROXY" | cut -d ' ' -f 1)
	[ "$now" = "$last" ] || echo "$now" >>digests
	last=$now
	sleep 0.5
done
`

func TestARunningJobReadsRenewedCredentials(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	end := time.Now().Add(12 * time.Hour)
	proxies := []string{proxy(t, end), proxy(t, end), proxy(t, end)}
	token, keytab := jwt(end), "\x05\x02\x00 a keytab\xff\n\n"
	jobSecret(b, "atlas-proxy", "x509up", proxies[0])
	jobSecret(b, "wlcg", "token", token)
	jobSecret(b, "eos", "keytab", keytab)
	running := "running-" + b.Namespace
	b.Create("fresh", "set -e; : >digests; set -- "+running+digests,
		credentials("atlas atlas-proxy x509up X509Proxy", "wlcg wlcg token BearerToken", "eos eos keytab File"))

	var scratch string
	written := func() string {
		text, _ := os.ReadFile(filepath.Join(scratch, "digests"))
		return string(text)
	}
	for i, renewed := range proxies {
		if i > 0 {
			jobSecret(b, "atlas-proxy", "x509up", renewed)
		}
		b.Eventually(func() bool {
			if scratch == "" {
				scratch = b.ScratchWith(running)
			}
			return i == len(proxies)-1 || scratch != "" && strings.Contains(written(), digestOf(renewed))
		}, func() string {
			return fmt.Sprintf("proxy %d was not read: %q\n%s", i, written(), b.Kubectl("describe", "htcjob", "fresh"))
		})
	}
	job := b.Phase("fresh", v1alpha1.PhaseSucceeded)
	require.Equal(
		t,
		digestOf(proxies[0])+"\n"+digestOf(proxies[1])+"\n"+digestOf(proxies[2])+"\n",
		b.File(job, 0, "digests"),
	)
	require.Contains(t, b.File(job, 0, "token.digest"), digestOf(token))
	require.Contains(t, b.File(job, 0, "eos.digest"), digestOf(keytab))
	require.Regexp(t, `^/\S+/\.htcd/credentials/atlas /\S+/\.htcd/credentials/wlcg\n$`, b.File(job, 0, "paths"))
	modes := b.File(job, 0, "modes")
	require.Equal(t, 3, strings.Count(modes, "-rw-------"), modes)

	// Nothing of them is in what came back, in the ad, or left in the staging directory.
	var kept []string
	require.NoError(t, filepath.WalkDir(b.Kept(job), func(path string, d os.DirEntry, err error) error {
		kept = append(kept, filepath.Base(path))
		return err
	}))
	require.Subset(
		t,
		[]string{
			"1",
			"0",
			"digests",
			"eos.digest",
			"modes",
			"paths",
			"token.digest",
			running,
			"_condor_stdout",
			"_condor_stderr",
		},
		kept,
	)
	ads, err := b.Lab.Run(t.Context(), "condor_history", "-l", job.Status.JobID[0])
	require.NoError(t, err)
	for _, secret := range append(proxies, "\n"+token) {
		require.NotContains(t, ads, strings.Split(secret, "\n")[1])
	}
	staged, err := filepath.Glob(b.Lab.Path("htcd", "data", "staging", string(job.UID)+"-1", ".credential-*"))
	require.NoError(t, err)
	require.Empty(t, staged)
}

// A job that waits for a slot while the Secret changes starts with the new one.
func TestAnIdleJobStartsWithTheRenewedCredential(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	end := time.Now().Add(12 * time.Hour)
	later := end.Add(time.Hour)
	old, renewed := proxy(t, end), proxy(t, later)
	jobSecret(b, "atlas-proxy", "x509up", old)
	b.Create("idle", `sha256sum <"$X509_USER_PROXY"`, credentials("atlas atlas-proxy x509up X509Proxy"),
		func(job *v1alpha1.HTCJob) { job.Spec.Requirements = `Machine == "nowhere"` })
	job := b.Phase("idle", v1alpha1.PhaseIdle)
	jobSecret(b, "atlas-proxy", "x509up", renewed)
	b.Until("idle", "known to have the renewed proxy", func(job *v1alpha1.HTCJob) bool {
		fresh := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionCredentialsFresh)
		return fresh != nil && strings.Contains(fresh.Message, later.UTC().Format(time.RFC3339))
	})
	_, err := b.Lab.RunAs(t.Context(), "robot", "condor_qedit", job.Status.JobID[0], "Requirements", "true")
	require.NoError(t, err)
	require.Contains(t, b.Output(b.Phase("idle", v1alpha1.PhaseSucceeded), 0), digestOf(renewed))
}

func TestAJobWaitsForItsCredential(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Create("waits", `cat "$HTC_CREDENTIALS/note"`, credentials("note notes text File"))
	waits := func(reason string) {
		t.Helper()
		job := b.Until("waits", reason, func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == reason })
		require.Equal(t, reason, b.Condition(job, v1alpha1.ConditionInputsReady).Reason)
		require.Empty(t, job.Status.JobID)
	}
	waits("SecretNotFound")
	jobSecret(b, "notes", "text", "hello", "false")
	waits("SecretNotMarked")
	jobSecret(b, "notes", "another", "hello")
	waits("SecretKeyNotFound")
	jobSecret(b, "notes", "text", "hello")
	require.Equal(t, "hello", b.Output(b.Phase("waits", v1alpha1.PhaseSucceeded), 0))

	jobSecret(b, "ended", "x509up", proxy(t, time.Now().Add(-time.Minute)))
	b.Create("ended", "exit 0", credentials("atlas ended x509up X509Proxy"))
	b.Until(
		"ended",
		"CredentialEnded",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == "CredentialEnded" },
	)

	jobSecret(b, "kinit-secret", "password", "hello")
	b.Create("account", "exit 0", credentials("mine kinit-secret password File"))
	refused := b.Phase("account", v1alpha1.PhaseFailed)
	require.Equal(t, "Refused", refused.Status.Reason)
	require.Contains(t, b.Condition(refused, v1alpha1.ConditionSubmitted).Message, "holds an account of the pool")

	for name, change := range map[string]func(*v1alpha1.HTCJob){
		"at most one credential":    credentials("a a a X509Proxy", "b b b X509Proxy"),
		"must be letters":           credentials("../a a a File"),
		"Duplicate value":           credentials("a a a File", "a b b File"),
		`Unsupported value: "Kind"`: credentials("a a a Kind"),
	} {
		_, err := b.Jobs.Create(t.Context(), trial.Manifest("bad", "exit 0", change), metav1.CreateOptions{})
		require.ErrorContains(t, err, name)
	}
}

// What HTCondor brings back of a job whose wrapper was killed has no credential.
func TestNoCredentialIsBroughtBackWhenTheWrapperIsKilled(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	jobSecret(b, "notes", "text", "hello")
	running := "running-" + b.Namespace
	b.Create("killed", "echo here >"+running+"; sleep 1000", credentials("note notes text File"))
	var scratch string
	b.Eventually(
		func() bool { scratch = b.ScratchWith(running); return scratch != "" },
		func() string { return b.Kubectl("describe", "htcjob", "killed") },
	)
	_, err := b.Lab.RunAs(
		t.Context(),
		"root",
		"sh",
		"-c",
		`for p in /proc/[0-9]*; do [ "$(readlink "$p/cwd")" != "$1" ] || ! tr '\0' ' ' <"$p/cmdline" | grep -q job.sh || kill -9 "${p#/proc/}"; done`,
		"sh",
		filepath.Dir(filepath.Dir(scratch)),
	)
	require.NoError(t, err)
	job := b.Fetched("killed")
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	entries, err := os.ReadDir(filepath.Join(b.Kept(job), "0"))
	require.NoError(t, err)
	for _, entry := range entries {
		require.Contains(t, []string{"_condor_stdout", "_condor_stderr"}, entry.Name())
	}
}

// A credential that is about to end is told in time, and so is its renewal.
func TestTheEndOfACredentialIsToldBeforeItComes(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	jobSecret(b, "wlcg", "token", jwt(time.Now().Add(290*time.Second)))
	renewed := jwt(time.Now().Add(time.Hour))
	b.Create(
		"ending",
		"until sha256sum <\"$BEARER_TOKEN_FILE\" | grep "+digestOf(renewed)+"; do sleep 0.5; done",
		credentials("wlcg wlcg token BearerToken"),
	)
	fresh := func(reason string) func(*v1alpha1.HTCJob) bool {
		return func(job *v1alpha1.HTCJob) bool {
			c := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionCredentialsFresh)
			return c != nil && c.Reason == reason
		}
	}
	job := b.Until("ending", "CredentialEnding", fresh("CredentialEnding"))
	require.Contains(t, b.Condition(job, v1alpha1.ConditionCredentialsFresh).Message, "renew the Secret wlcg")
	b.Event("ending", "wlcg ends at")
	jobSecret(b, "wlcg", "token", renewed)
	b.Phase("ending", v1alpha1.PhaseSucceeded)
	b.Until("ending", "without CredentialsFresh", func(job *v1alpha1.HTCJob) bool {
		return meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionCredentialsFresh) == nil
	})
}
