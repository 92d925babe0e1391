package inputs

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/artifact"
	"htc.cern.ch/htcd/internal/inputs/jobsecrets"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// registryOf serves artifacts: files with their contents, by tag. It returns its host.
func registryOf(t *testing.T, artifacts map[string]map[string]string) string {
	const manifest = "application/vnd.oci.image.manifest.v1+json"
	sum := func(text string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))) }
	content := map[string]string{}
	for tag, files := range artifacts {
		var layers []string
		for name, text := range files {
			content["blobs/"+sum(text)] = text
			layers = append(
				layers,
				fmt.Sprintf(
					`{"mediaType":"x/y","digest":%q,"size":%d,"annotations":{"org.opencontainers.image.title":%q}}`,
					sum(text),
					len(text),
					name,
				),
			)
		}
		text := fmt.Sprintf(
			`{"schemaVersion":2,"config":{"mediaType":"x/y","digest":%q,"size":0},"layers":[%s]}`,
			sum(""),
			strings.Join(layers, ","),
		)
		content["manifests/"+tag], content["manifests/"+sum(text)] = text, text
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, is := content[strings.TrimPrefix(r.URL.Path, "/v2/models/")]
		if !is {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", manifest)
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func TestArtifactsAreInputs(t *testing.T) {
	w := newWorld(t)
	host := registryOf(t, map[string]map[string]string{
		"one": {
			"model.pt": "weights",
		}, "two": {"model.pt": "weights", "data/labels": "labels"}, "large": {"x": strings.Repeat("x", 600<<10)},
	})
	allowed, err := artifact.ParseRegistries([]string{"http://" + host})
	require.NoError(t, err)
	b := w.bringer()
	end := func() {}
	fetcher := artifact.NewFetcher(allowed)
	bring := func(job *v1alpha1.HTCJob, queue int) (*Ready, error) {
		end()
		ctx, cancel := context.WithCancel(t.Context())
		end = cancel
		b.Artifacts = fetcher.For("default/one", References(job.Spec))
		return b.Resolve(ctx, job, queue)
	}
	from := func(name, tag string, optional bool) v1alpha1.Input {
		return v1alpha1.Input{Name: name, Artifact: host + "/models:" + tag, Optional: optional}
	}
	job := needs(from("a", "one", false), from("b", "two", false), from("c", "none", true))
	require.NoError(t, Rules{Registries: allowed}.Check(job))
	ready, err := bring(job, 1)
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	digest, err := ready.Stage(dir)
	require.NoError(t, err)
	require.Equal(
		t,
		map[string]string{
			"shared/a":             "644 weights",
			"shared/b/model.pt":    "644 weights",
			"shared/b/data/labels": "644 labels",
		},
		staged(t, dir),
	)
	again, err := Staged(dir)
	require.NoError(t, err)
	require.Equal(t, digest, again)

	_, err = bring(needs(from("a", "none", false)), 1)
	var w1 *Waiting
	require.ErrorAs(t, err, &w1)
	require.Equal(t, artifact.ReasonNotFound, w1.Reason)
	require.Contains(t, w1.Message, "a: the artifact "+host+"/models:none: the registry")

	_, err = bring(needs(from("a", "large", false)), 1)
	require.NoError(t, err)
	_, err = bring(needs(from("a", "large", false)), 2)
	require.Equal(t, condor.Refused, condor.KindOf(err), "it is too large twice")

	job = needs(from("a", "one", false))
	job.Spec.Credentials = []v1alpha1.Credential{
		{Name: "reg", SecretKeyRef: *key("reg", ".dockerconfigjson"), As: v1alpha1.Registry},
	}
	_, err = bring(job, 1)
	require.ErrorAs(t, err, &w1)
	require.Equal(t, jobsecrets.ReasonNotFound, w1.Reason)
	w.secrets["reg/.dockerconfigjson"] = `{"auths":{}}`
	_, err = bring(job, 1)
	require.NoError(t, err)
	w.secrets["reg/.dockerconfigjson"] = "password"
	_, err = bring(job, 1)
	require.ErrorAs(t, err, &w1)
	require.Equal(t, artifact.ReasonForbidden, w1.Reason)
	require.NotContains(t, w1.Message, "password")
	require.Equal(
		t,
		condor.Refused,
		condor.KindOf(Rules{Registries: allowed, Accounts: []string{"reg"}}.Check(job)),
		"an account",
	)

	job = needs(from("a", "one", false))
	for name, rules := range map[string]Rules{"of no registry": {}, "of another": {Registries: artifact.Registries{}}} {
		require.Equal(t, condor.Refused, condor.KindOf(rules.Check(job)), name)
	}
}
