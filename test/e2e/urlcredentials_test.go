package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// shown makes a certificate of the lab's authority, with its key, and returns its number as the store logs it.
func shown(b *trial.Bench, end time.Time) (credential, serial string) {
	b.T.Helper()
	world, err := parts.Open(b.Lab)
	require.NoError(b.T, err)
	decode := func(file string) []byte {
		text, err := os.ReadFile(file)
		require.NoError(b.T, err)
		block, _ := pem.Decode(text)
		return block.Bytes
	}
	authority, err := x509.ParseCertificate(decode(parts.ReceiverCA(world)))
	require.NoError(b.T, err)
	signer, err := x509.ParsePKCS8PrivateKey(decode(strings.TrimSuffix(parts.ReceiverCA(world), "crt") + "key"))
	require.NoError(b.T, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(b.T, err)
	number, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(b.T, err)
	number.Add(number, big.NewInt(1<<62)) // no leading zeros
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: number,
		Subject:      pkix.Name{CommonName: "alice"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     end,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, authority, &key.PublicKey, signer)
	require.NoError(b.T, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(b.T, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), fmt.Sprintf("%X", number)
}

// demanding makes the test's directories in the store where it wants to see a proxy or a token.
func demanding(b *trial.Bench) (urls, dirs map[string]string) {
	serve(b)
	world, err := parts.Open(b.Lab)
	require.NoError(b.T, err)
	urls, dirs = map[string]string{}, map[string]string{}
	for _, kind := range []string{"proxies", "tokens"} {
		dir := b.Lab.Path("store", "files", kind, b.Namespace)
		_, err := b.Lab.RunAs(b.T.Context(), "root", "install", "-d", "-o", "www-data", dir)
		require.NoError(b.T, err)
		b.T.Cleanup(func() { require.NoError(b.T, os.RemoveAll(dir)) })
		urls[kind], dirs[kind] = fmt.Sprintf("://127.0.0.1:%d/%s/%s/", world.Ports.Store, kind, b.Namespace), dir
	}
	return urls, dirs
}

func toURL(path, url string) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) {
		job.Spec.Outputs = append(job.Spec.Outputs, v1alpha1.Output{Path: path, URL: url})
	}
}

// requests lists what the store has logged of a path: "GET 200 SERIAL".
func requests(b *trial.Bench, path string) (all []string) {
	text, err := os.ReadFile(b.Lab.Path("store", "access.log"))
	require.NoError(b.T, err)
	for line := range strings.Lines(string(text)) {
		if w := strings.Fields(line); len(w) == 4 && strings.HasSuffix(w[1], path) {
			all = append(all, w[0]+" "+w[2]+" "+w[3])
		}
	}
	return all
}

// mounts tries from inside to take the place of what runs after the script: with a mount namespace of its own, in which
// it is root.
const mounts = `
printf '#!/bin/sh\necho "{}"\n' >evil; chmod 755 evil
unshare -Urm sh -c 'umount -l "$0"; cd "$0"; umount -l .; umount -l /; cp /bin/busybox .
for f in .htcd .htcd-plugin-davs .htcd-plugin-https .htcd-urls .htcd-creds .credential-atlas job.sh; do cp evil "$f"; mount --bind evil "$f"; done
mount --bind evil /bin/sh; mount -t tmpfs none ..; exec ./busybox sleep 1000' "$PWD" </dev/null >/dev/null 2>&1 &
`

// The server of a URL sees the job's proxy: for the input the one that the Secret has when the job starts, although the
// job was sent with an older one, and for the output the one it has when the job ends.
func TestTheServerOfAURLSeesTheProxyOfTheMoment(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	urls, dirs := demanding(b)
	end := time.Now().Add(12 * time.Hour)
	sent, _ := shown(b, end)
	starting, startingSerial := shown(b, end.Add(time.Hour))
	ending, endingSerial := shown(b, end.Add(2*time.Hour))
	require.NoError(t, os.WriteFile(filepath.Join(dirs["proxies"], "in"), []byte("for those who may\n"), 0o644))
	in, out := "davs"+urls["proxies"]+"in", "davs"+urls["proxies"]+"out-{proc}"

	b.Create("without", "exit 0", fromURLs("in", in))
	jobSecret(b, "atlas-proxy", "x509up", sent)
	b.Create(
		"with",
		mounts+"cat in; cp in out; for f in .htcd-plugin-*; do rm -f $f; mv $f evil; echo evil >$f; ln -sf $HTC_CREDENTIALS/atlas .htcd-urls; done; until sha256sum <\"$X509_USER_PROXY\" | grep "+digestOf(
			ending,
		)+"; do sleep 0.5; done",
		credentials("atlas atlas-proxy x509up X509Proxy"),
		fromURLs("in", in),
		toURL("out", out),
		func(job *v1alpha1.HTCJob) { job.Spec.Requirements = `Machine == "nowhere"` },
	)
	job := b.Phase("with", v1alpha1.PhaseIdle)
	jobSecret(b, "atlas-proxy", "x509up", starting)
	b.Until("with", "known to have the renewed proxy", func(job *v1alpha1.HTCJob) bool {
		fresh := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionCredentialsFresh)
		return fresh != nil && strings.Contains(fresh.Message, end.Add(time.Hour).UTC().Format(time.RFC3339))
	})
	_, err := b.Lab.RunAs(t.Context(), "robot", "condor_qedit", job.Status.JobID[0], "Requirements", "true")
	require.NoError(t, err)
	b.Eventually(func() bool { return slices.Contains(requests(b, b.Namespace+"/in"), "GET 200 "+startingSerial) },
		func() string {
			return fmt.Sprint(requests(b, b.Namespace+"/in")) + b.Kubectl("describe", "htcjob", "with")
		})
	jobSecret(b, "atlas-proxy", "x509up", ending)

	job = b.Fetched("with")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
	require.Equal(t, []string{"PUT 201 " + endingSerial}, requests(b, b.Namespace+"/out-0"))
	text, err := os.ReadFile(filepath.Join(dirs["proxies"], "out-0"))
	require.NoError(t, err)
	require.Equal(t, "for those who may\n", string(text))
	require.ElementsMatch(t, []string{"_condor_stdout", "_condor_stderr"}, b.Files(job, 0))
	ads, err := b.Lab.Run(t.Context(), "condor_history", "-l", job.Status.JobID[0])
	require.NoError(t, err)
	for _, secret := range []string{sent, starting, ending} {
		require.NotContains(t, ads, strings.Split(secret, "\n")[1])
	}
	require.NotContains(t, ads, "alice", "who it is of is nobody's business")

	held := b.Condition(
		b.Until("without", "held", func(job *v1alpha1.HTCJob) bool { return job.Status.Held == 1 }),
		v1alpha1.ConditionHeld,
	).Message
	require.Contains(t, held, in)
	require.Contains(t, held, "403")
	left(b, job)
}

// A token is shown only to servers of URLs that name it, without any help of a condor_credd.
func TestTheServerOfAURLSeesTheTokenThatTheURLNames(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	urls, dirs := demanding(b)
	require.NoError(t, os.WriteFile(filepath.Join(dirs["tokens"], "in"), []byte("for those who may\n"), 0o644))
	jobSecret(b, "wlcg", "token", parts.StoreToken)
	token := credentials("wlcg wlcg token BearerToken")
	b.Create(
		"named",
		"cat in; cp in out",
		token,
		fromURLs("in", "wlcg+https"+urls["tokens"]+"in"),
		toURL("out", "wlcg+https"+urls["tokens"]+"{name}"),
	)
	b.Create("unnamed", "exit 0", token, fromURLs("in", "https"+urls["tokens"]+"in"))
	b.Create("unknown", "exit 0", token, fromURLs("in", "another+https"+urls["tokens"]+"in"))
	b.Create("none", "touch out", toURL("out", "wlcg+https"+urls["tokens"]+"none"))

	job := b.Fetched("named")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
	text, err := os.ReadFile(filepath.Join(dirs["tokens"], "named"))
	require.NoError(t, err)
	require.Equal(t, "for those who may\n", string(text))
	ads, err := b.Lab.Run(t.Context(), "condor_history", "-l", job.Status.JobID[0])
	require.NoError(t, err)
	require.NotContains(t, ads, parts.StoreToken)

	held := b.Until("unnamed", "held", func(job *v1alpha1.HTCJob) bool { return job.Status.Held == 1 })
	require.Contains(t, b.Condition(held, v1alpha1.ConditionHeld).Message, "https"+urls["tokens"]+"in")
	for name, token := range map[string]string{"unknown": "another", "none": "wlcg"} {
		refused := b.Ended(name)
		require.Equal(t, "Refused", refused.Status.Reason)
		require.Contains(
			t,
			b.Condition(refused, v1alpha1.ConditionFailed).Message,
			token+" before the + is not the name",
		)
	}
}
