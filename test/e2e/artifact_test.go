//go:build !releases

package e2e

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

func artifacts(inputs ...v1alpha1.Input) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) { job.Spec.Inputs = inputs }
}

func TestJobsGetArtifacts(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	at := b.Registry() + "/" + b.Namespace
	large := make([]byte, 20<<20)
	for i := range large {
		large[i] = byte(rand.Uint32())
	}
	b.Push(at+"/model:v1", map[string][]byte{"model.pt": large})
	digest := b.Push(at+"/set:v1", map[string][]byte{"a.txt": []byte("first\n"), "deep/er/b.txt": []byte("second\n")})
	b.Script(
		"reads",
		"sha256sum <model | cut -c1-64; cat set/a.txt set/deep/er/b.txt exact/a.txt; ls -A\n",
		trial.Queue(2),
		artifacts(
			v1alpha1.Input{Name: "model", Artifact: at + "/model:v1"},
			v1alpha1.Input{Name: "set", Artifact: at + "/set:v1"},
			v1alpha1.Input{
				Name:     "exact",
				Artifact: at + "/set@" + digest,
			},
			v1alpha1.Input{Name: "none", Artifact: at + "/set:v9", Optional: true},
		),
	)
	job := b.Fetched("reads")
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase, b.Kubectl("describe", "htcjob", "reads"))
	sum, _, err := v1.SHA256(bytes.NewReader(large))
	require.NoError(t, err)
	for proc := range 2 {
		lines := strings.Split(b.Output(job, proc), "\n")
		require.Equal(t, []string{sum.Hex, "first", "second", "first"}, lines[:4])
		require.NotContains(t, lines, "none")
	}
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", job.Status.InputsDigest)
	require.Equal(t, "True", string(b.Condition(job, v1alpha1.ConditionInputsReady).Status))
}

func TestAnArtifactIsWaitedForAndThenStays(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	at := b.Registry() + "/" + b.Namespace
	b.Script("waits", "cat model; sleep 5\n", artifacts(v1alpha1.Input{Name: "model", Artifact: at + "/later:v1"}))
	job := b.Until(
		"waits",
		"waiting for its artifact",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == "ArtifactNotFound" },
	)
	require.Equal(t, v1alpha1.PhasePending, job.Status.Phase)
	require.Contains(
		t,
		b.Condition(job, v1alpha1.ConditionInputsReady).Message,
		"model: the artifact "+at+"/later:v1: the registry",
	)
	require.Empty(t, queued(b, job))

	b.Push(at+"/later:v1", map[string][]byte{"x": []byte("as it was")})
	b.Until("waits", "sent", func(job *v1alpha1.HTCJob) bool { return len(job.Status.JobID) == 1 })
	b.Push(at+"/later:v1", map[string][]byte{"x": []byte("as it is now")})
	job = b.Fetched("waits")
	require.Equal(t, "as it was", b.Output(job, 0))
}

func TestAnArtifactIsFetchedWithTheUsersCredentials(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	b.Push(b.Registry()+"/"+b.Namespace+"/model:v1", map[string][]byte{"x": []byte("weights\n")})
	account := base64.StdEncoding.EncodeToString([]byte(parts.RegistryUser + ":" + parts.RegistryPassword))
	config := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, b.Registry(), account)
	b.Kubectl(
		"create",
		"secret",
		"generic",
		"reader",
		"--type=kubernetes.io/dockerconfigjson",
		"--from-literal=.dockerconfigjson="+config,
	)
	of := func(credentials ...v1alpha1.Credential) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) {
			job.Spec.Inputs = []v1alpha1.Input{
				{Name: "model", Artifact: b.Registry() + "/private/" + b.Namespace + "/model:v1"},
			}
			job.Spec.Credentials = credentials
		}
	}
	b.Script("nobody", "true\n", of())
	job := b.Until(
		"nobody",
		"waiting",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == "ArtifactForbidden" },
	)
	require.Empty(t, queued(b, job))

	b.Script("reader", "cat model; env | grep -c HTC_CREDENTIALS; ls -A\n", of(v1alpha1.Credential{
		Name:         "registry",
		SecretKeyRef: v1alpha1.KeyRef{Name: "reader", Key: ".dockerconfigjson"},
		As:           v1alpha1.Registry,
	}))
	b.Until("reader", "waiting", func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == "SecretNotMarked" })
	b.Kubectl("label", "secret", "reader", "htc.cern.ch/jobs=true")
	job = b.Fetched("reader")
	require.Equal(t, "weights\n0\n", b.Output(job, 0)[:10], "the job does not get the credentials")
	require.NotContains(t, b.Kubectl("get", "htcjob,events", "-o", "yaml"), account)
}

func TestArtifactsThatCannotBeHadAreRefusedOrWaitedFor(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	for name, c := range map[string]struct{ artifact, reason, words string }{
		"elsewhere": {"registry.example.org/group/model:v3", "Refused", "spec.inputs: model: the registry registry.example.org is not one that the administrator of htcd allows (--allow-registries)"},
		"image":     {b.Registry() + "/centos:latest", "ArtifactUnsuitable", "belongs into script.image"},
	} {
		b.Script(name, "true\n", artifacts(v1alpha1.Input{Name: "model", Artifact: c.artifact}))
		job := b.Until(name, c.reason, func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == c.reason })
		require.Contains(t, b.Kubectl("describe", "htcjob", name), c.words)
		require.Empty(t, queued(b, job))
	}
	for refusal, artifact := range map[string]string{
		"needs a tag or a digest": b.Registry() + "/model", "must name a registry": "model:v3", "must name a registry, such": "https://" + b.Registry() + "/model:v3",
	} {
		_, err := b.Jobs.Create(
			t.Context(),
			trial.Manifest("refused", "true\n", artifacts(v1alpha1.Input{Name: "model", Artifact: artifact})),
			metav1.CreateOptions{},
		)
		require.ErrorContains(t, err, refusal)
	}
}
