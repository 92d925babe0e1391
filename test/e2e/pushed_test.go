//go:build !releases

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	served "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// pushedTo adds outputs, each a path and the artifact to which it goes.
func pushedTo(outputs ...string) func(*v1alpha1.HTCJob) {
	return func(job *v1alpha1.HTCJob) {
		for i := 0; i < len(outputs); i += 2 {
			job.Spec.Outputs = append(job.Spec.Outputs, v1alpha1.Output{Path: outputs[i], Artifact: outputs[i+1]})
		}
	}
}

// digest asks a registry what a reference names; empty: nothing.
func digest(b *trial.Bench, reference string) string {
	b.T.Helper()
	ref, err := name.ParseReference(reference, name.Insecure)
	require.NoError(b.T, err)
	found, err := remote.Head(ref, remote.WithContext(b.T.Context()))
	if err != nil {
		return ""
	}
	return found.Digest.String()
}

func isPushed(job *v1alpha1.HTCJob) bool {
	return meta.IsStatusConditionTrue(job.Status.Conditions, v1alpha1.ConditionOutputsPushed)
}

func TestOutputsArePushedAsArtifactsAndServeAsInputs(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	at := b.Registry() + "/" + b.Namespace
	b.Script(
		"train",
		"mkdir -p plots/x; echo \"weights $1\" > model.pt; : > plots/empty; echo p > plots/x/p.png; echo small > small\n",
		trial.Queue(2),
		outputs("small"),
		pushedTo(
			"model.pt",
			at+"/{name}:{attempt}-{proc}",
			"plots",
			at+"/{namespace}/plots:v{proc}",
			"*.pt",
			at+"/pattern:{name}.{proc}",
		),
	)
	b.Script("use", "cat model set/plots/x/p.png; wc -c < set/plots/empty\n", artifacts(
		v1alpha1.Input{
			Name:     "model",
			Artifact: at + "/train:1-1",
		},
		v1alpha1.Input{Name: "set", Artifact: at + "/" + b.Namespace + "/plots:v0"},
	))
	job := b.Until("train", "pushed", isPushed)
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
	require.Equal(t, "6 artifacts are pushed", b.Condition(job, v1alpha1.ConditionOutputsPushed).Message)
	require.Len(t, job.Status.Outputs, 6)
	for i, o := range job.Status.Outputs {
		proc := i / 3
		require.EqualValues(t, proc, o.Proc)
		require.Equal(t, []string{"model.pt", "plots", "*.pt"}[i%3], o.Path)
		require.Equal(
			t,
			[]string{fmt.Sprintf("%s/train:1-%d", at, proc), fmt.Sprintf("%s/%s/plots:v%d", at, b.Namespace, proc), fmt.Sprintf("%s/pattern:train.%d", at, proc)}[i%3],
			o.Artifact,
		)
		require.EqualValues(t, []int64{10, 2, 10}[i%3], *o.Size)
		require.Equal(t, digest(b, o.Artifact), o.Digest)
	}
	require.Equal(t, job.Status.Outputs[0].Digest, job.Status.Outputs[2].Digest, "equal files make an equal artifact")
	require.Equal(t, "weights 0\n", b.File(job, 0, "model.pt"), "it is kept, too")
	listed, err := b.Lab.Run(t.Context(), "htcd", "get-output", "train", "--list", "--proc=1", "-n", b.Namespace)
	require.NoError(t, err)
	require.Contains(
		t,
		listed,
		fmt.Sprintf("1                10  model.pt %s/train:1-1 %s\n", at, job.Status.Outputs[3].Digest),
	)
	used := b.Fetched("use")
	require.Equal(t, "weights 1\np\n0\n", b.Output(used, 0))
}

func TestArtifactsThatCannotBePushedAreRefused(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	at := b.Registry() + "/" + b.Namespace
	try := func(change ...func(*v1alpha1.HTCJob)) error {
		_, err := b.Jobs.Create(t.Context(), trial.Manifest("refused", "true\n", change...), metav1.CreateOptions{})
		return err
	}
	two := func(job *v1alpha1.HTCJob) { job.Spec.Script.Queue = new(int32(2)) }
	both := func(job *v1alpha1.HTCJob) {
		job.Spec.Outputs = []v1alpha1.Output{{Path: "a", URL: "https://a/b", Artifact: at + "/m:v1"}}
	}
	require.ErrorContains(t, try(both), "an output goes to a url or to an artifact, not to both")
	require.ErrorContains(t, try(two, pushedTo("a", at+"/m:v1")), "needs {proc}")
	require.ErrorContains(t, try(pushedTo("a", at+"/m:v1", "b", at+"/m:v1")), "two outputs have the same artifact")
	for _, artifact := range []string{at + "/m", "m:v1", at + "/m@sha256:" + strings.Repeat("0", 64), at + "/m:{uid}", "{name}.example.org/m:v1", "https://" + at + "/m:v1", at + "/M:v1"} {
		require.ErrorContains(t, try(pushedTo("a", artifact)), "the artifact must name a registry and a tag", artifact)
	}
	for name, c := range map[string]struct{ artifact, words string }{
		"elsewhere": {"registry.example.org/m:v1", "spec.outputs: a: the registry registry.example.org is not one that the administrator of htcd allows (--allow-registries)"},
		"long":      {at + "/m:" + strings.Repeat("{namespace}", 20), "expected an artifact such as"},
	} {
		b.Script(name, "touch a\n", pushedTo("a", c.artifact))
		job := b.Ended(name)
		require.Equal(t, "Refused", job.Status.Reason)
		require.Contains(t, b.Condition(job, v1alpha1.ConditionFailed).Message, c.words)
	}
}

func TestAnArtifactIsPushedWithTheUsersCredentials(t *testing.T) {
	t.Parallel()
	b := trial.New(t)
	to := b.Registry() + "/private/" + b.Namespace + "/model:v1"
	secret := func(password string) {
		account := base64.StdEncoding.EncodeToString([]byte(parts.RegistryUser + ":" + password))
		b.Kubectl("delete", "secret", "writer", "--ignore-not-found")
		b.Kubectl(
			"create",
			"secret",
			"generic",
			"writer",
			fmt.Sprintf(`--from-literal=.dockerconfigjson={"auths":{%q:{"auth":%q}}}`, b.Registry(), account),
		)
		b.Kubectl("label", "secret", "writer", "htc.cern.ch/jobs=true")
	}
	secret("wrong")
	b.Script("nobody", "echo x > model\n", pushedTo("model", to))
	b.Script("writer", "echo weights > model\n", pushedTo("model", to), func(job *v1alpha1.HTCJob) {
		job.Spec.Credentials = []v1alpha1.Credential{
			{
				Name:         "registry",
				SecretKeyRef: v1alpha1.KeyRef{Name: "writer", Key: ".dockerconfigjson"},
				As:           v1alpha1.Registry,
			},
		}
	})
	for _, name := range []string{"nobody", "writer"} {
		job := b.Until(name, "denied", func(job *v1alpha1.HTCJob) bool {
			said := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionOutputsPushed)
			return said != nil && said.Reason == "ArtifactForbidden"
		})
		require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
		require.Contains(
			t,
			b.Condition(job, v1alpha1.ConditionOutputsPushed).Message,
			"does not let htcd push it: it needs credentials",
		)
		b.Event(name, to)
	}
	secret(parts.RegistryPassword)
	job := b.Until("writer", "pushed", isPushed)
	require.Equal(t, digest(b, b.Registry()+"/"+b.Namespace+"/model:v1"), job.Status.Outputs[0].Digest)
	require.NotContains(
		t,
		b.Kubectl("get", "htcjob,events", "-o", "yaml"),
		base64.StdEncoding.EncodeToString([]byte(parts.RegistryUser+":wrong")),
	)
}

// faulty is a registry of the test's own that can be away.
type faulty struct {
	*httptest.Server
	status  atomic.Int32  // that it answers; 0: as it should
	pushes  atomic.Int32  // of manifests
	waiting chan struct{} // receives when somebody wants to push a manifest; nil: they are not held up
	going   chan struct{} // lets them
}

func newFaulty(t *testing.T) *faulty {
	f := &faulty{}
	real := served.New(served.Logger(log.New(io.Discard, "", 0)))
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status := f.status.Load(); status != 0 {
			w.WriteHeader(int(status))
			return
		}
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/manifests/") {
			if f.waiting != nil {
				f.waiting <- struct{}{}
				<-f.going
			}
			f.pushes.Add(1)
		}
		real.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// killWhileItPushes lets the registry answer again, and kills an htcd, which is started with a flag, while it pushes to
// it.
func (f *faulty) killWhileItPushes(t *testing.T, htcd lab.Part, flag string) {
	t.Helper()
	f.waiting, f.going = make(chan struct{}), make(chan struct{})
	f.status.Store(0)
	require.NoError(t, htcd.Restart(t.Context(), flag))
	<-f.waiting
	require.NoError(t, htcd.Kill(t.Context()))
	require.NoError(t, htcd.Restart(t.Context(), flag))
	go func() {
		f.going <- struct{}{}
		for range f.waiting {
			f.going <- struct{}{}
		}
	}()
	t.Cleanup(func() { close(f.waiting) })
}

func TestAPushSurvivesWhateverIsAway(t *testing.T) {
	b := trial.New(t)
	away := newFaulty(t)
	htcd := b.Lab.Part("htcd")
	listed := "--allow-registries=http://" + b.Registry() + "," + away.URL
	require.NoError(t, htcd.Restart(t.Context(), listed))
	t.Cleanup(func() { require.NoError(t, htcd.Restart(context.WithoutCancel(t.Context()))) })
	host := strings.TrimPrefix(away.URL, "http://")
	away.status.Store(http.StatusServiceUnavailable)
	b.Script(
		"waits",
		"echo x > a; mkdir d; echo 1 > 'd/an odd name'\n",
		pushedTo("a", host+"/m:{name}", "d", host+"/d:{name}"),
	)
	job := b.Until("waits", "waiting for the registry", func(job *v1alpha1.HTCJob) bool {
		said := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionOutputsPushed)
		return said != nil && said.Reason == "RegistryUnreachable"
	})
	require.Equal(t, v1alpha1.PhaseSucceeded, job.Status.Phase)
	require.Contains(
		t,
		b.Condition(job, v1alpha1.ConditionOutputsPushed).Message,
		"a of job "+job.Status.JobID[0]+" to "+host+"/m:waits: the registry "+host+" answers with status 503",
	)

	// Others go on meanwhile.
	b.Script("others", "echo x > a\n", pushedTo("a", b.Registry()+"/"+b.Namespace+"/m:{name}"))
	b.Until("others", "pushed", isPushed)

	away.killWhileItPushes(t, htcd, listed)
	job = b.Until("waits", "pushed", func(job *v1alpha1.HTCJob) bool {
		return meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionOutputsPushed).Reason == "NotPushed"
	})
	require.Contains(
		t,
		b.Condition(job, v1alpha1.ConditionOutputsPushed).Message,
		"1 artifact is pushed, 1 cannot be pushed; d of job "+job.Status.JobID[0]+" to "+host+`/d:waits: its file "d/an odd name"`,
	)
	require.Len(t, job.Status.Outputs, 1)
	require.Equal(t, digest(b, host+"/m:waits"), job.Status.Outputs[0].Digest)
}

func TestADeletedHTCJobPushesNothingMore(t *testing.T) {
	b := trial.New(t)
	away := newFaulty(t)
	htcd := b.Lab.Part("htcd")
	require.NoError(t, htcd.Restart(t.Context(), "--allow-registries="+away.URL))
	t.Cleanup(func() { require.NoError(t, htcd.Restart(context.WithoutCancel(t.Context()))) })
	host := strings.TrimPrefix(away.URL, "http://")
	away.waiting, away.going = make(chan struct{}), make(chan struct{})
	b.Script("gone", "echo $1 > a\n", trial.Queue(5), pushedTo("a", host+"/m:{proc}"))
	<-away.waiting // an HTCJob pushes one artifact at a time
	b.Kubectl("delete", "htcjob", "gone", "--timeout="+trial.Patience.String())
	away.going <- struct{}{}
	b.Script("next", "echo next > a\n", pushedTo("a", host+"/m:{name}"))
	go func() {
		for range away.waiting {
			away.going <- struct{}{}
		}
	}()
	t.Cleanup(func() { close(away.waiting) })
	b.Until("next", "pushed", isPushed)
	require.EqualValues(t, 2, away.pushes.Load(), "one that was under way, and the one of the next HTCJob")
}
