//go:build !releases

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/trial"
)

// deployed is the result of one directory of deploy/, in the test's own namespace.
type deployed struct {
	t     *testing.T
	lab   *lab.Lab
	text  string
	parts []string // the text, one per object
}

func deploy(t *testing.T, dir string) deployed {
	t.Helper()
	running, err := lab.Find()
	require.NoError(t, err)
	here, err := filepath.Abs(dir)
	require.NoError(t, err)
	over := t.TempDir()
	relative, err := filepath.Rel(over, here)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(over, "kustomization.yaml"),
		fmt.Appendf(nil, "namespace: %s\nresources: [%s]\n", trial.Namespace(t), relative), 0o600))
	d := deployed{t: t, lab: running}
	d.text, err = running.Run(t.Context(), "kubectl", "kustomize", over)
	require.NoError(t, err)
	d.parts = strings.Split(d.text, "\n---\n")
	return d
}

// object reads the object of a kind whose name has this prefix.
func (d deployed) object(kind, name string, into any) {
	d.t.Helper()
	for _, part := range d.parts {
		var meta metav1.PartialObjectMetadata
		require.NoError(d.t, yaml.Unmarshal([]byte(part), &meta))
		if meta.Kind == kind && strings.HasPrefix(meta.Name, name) {
			require.NoError(d.t, yaml.UnmarshalStrict([]byte(part), into))
			return
		}
	}
	require.FailNow(d.t, "nothing of it", "%s %s", kind, name)
}

// setting returns what HTCondor's own tools read from the condor_config.
func (d deployed) setting(name string) string {
	d.t.Helper()
	var config corev1.ConfigMap
	d.object("ConfigMap", "htcd-config-", &config)
	dir, err := os.MkdirTemp(d.lab.Path("run"), "deployed-")
	require.NoError(d.t, err)
	d.t.Cleanup(func() { require.NoError(d.t, os.RemoveAll(dir)) })
	file := filepath.Join(dir, "condor_config")
	require.NoError(d.t, os.WriteFile(file, []byte(config.Data["condor_config"]), 0o600))
	value, err := d.lab.RunAs(d.t.Context(), "root", "env", "CONDOR_CONFIG="+file, "condor_config_val", name)
	require.NoError(d.t, err)
	return strings.TrimSpace(value)
}

func TestTheApiserverTakesEveryOverlay(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("../../deploy/overlays/*")
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	for _, dir := range append(dirs, "../../deploy/base", "testdata/components", "testdata/share") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			d := deploy(t, dir)
			out, err := d.lab.RunInput(
				t.Context(),
				d.text,
				"kubectl",
				"apply",
				"--server-side",
				"--force-conflicts",
				"--dry-run=server",
				"-f",
				"-",
			)
			require.NoError(t, err)
			require.Equal(t, len(d.parts), strings.Count(out, "(server dry run)"), "%s", out)
			var settings corev1.ConfigMap
			d.object("ConfigMap", "htcd-settings-", &settings)
			require.NotEmpty(t, settings.Data["HTCD_CALLBACK_URL"])
			require.NotEmpty(t, d.setting("COLLECTOR_HOST"), "HTCondor reads the condor_config")
		})
	}
}

func TestBaseNamesNothingOfASiteAndGuardsWhatMustNotBePruned(t *testing.T) {
	t.Parallel()
	d := deploy(t, "../../deploy/base")
	var claim corev1.PersistentVolumeClaim
	d.object("PersistentVolumeClaim", "htcd", &claim)
	require.Nil(t, claim.Spec.StorageClassName, "the cluster's default")
	require.NotContains(t, d.text, "\nkind: StorageClass\n")
	var deployment appsv1.Deployment
	d.object("Deployment", "htcd", &deployment)
	require.Equal(
		t,
		"htcd@sha256:"+strings.Repeat("0", 64),
		deployment.Spec.Template.Spec.Containers[0].Image,
		"an image that nobody can have made",
	)

	guarded := 0
	for _, part := range d.parts {
		var meta metav1.PartialObjectMetadata
		require.NoError(t, yaml.Unmarshal([]byte(part), &meta))
		switch meta.Kind {
		case "CustomResourceDefinition", "PersistentVolumeClaim", "Namespace":
			guarded++
			require.Equal(t, "Prune=false,Delete=false", meta.Annotations["argocd.argoproj.io/sync-options"], meta.Name)
			require.Equal(t, "disabled", meta.Annotations["kustomize.toolkit.fluxcd.io/prune"], meta.Name)
		}
	}
	require.Equal(t, 5, guarded)
}

func TestOnlyTheLedgersClaimIsOnAShare(t *testing.T) {
	t.Parallel()
	d := deploy(t, "testdata/share")
	volumes := map[string]string{"pvc-cephfs-cms": "htcd-share", "htcd-backup": ""}
	for name, volume := range volumes {
		var claim corev1.PersistentVolumeClaim
		d.object("PersistentVolumeClaim", name, &claim)
		require.Equal(t, volume, claim.Spec.VolumeName, name)
	}
	var backup batchv1.CronJob
	d.object("CronJob", "htcd-backup", &backup)
	require.Equal(
		t,
		"pvc-cephfs-cms",
		backup.Spec.JobTemplate.Spec.Template.Spec.Volumes[0].PersistentVolumeClaim.ClaimName,
		"the copies are of the ledger",
	)
}

// Kustomize clones the repository itself.
func TestASiteMayTakeATagOfTheRepository(t *testing.T) {
	t.Parallel()
	d := deploy(t, "../../deploy/base")
	repository, site := t.TempDir(), t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(repository, "deploy"), os.DirFS("../../deploy")))
	for _, args := range [][]string{
		{"init", "--quiet"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "a"}, {"tag", "v0.1.0"},
	} {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", repository}, args...)...).
			CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	var deployment appsv1.Deployment
	d.object("Deployment", "htcd", &deployment)
	require.NoError(t, os.WriteFile(
		filepath.Join(site, "kustomization.yaml"),
		fmt.Appendf(
			nil,
			"namespace: %s\nresources: [\"file://%s//deploy/base?ref=v0.1.0\"]\n",
			deployment.Namespace,
			repository,
		),
		0o600,
	))
	text, err := d.lab.Run(t.Context(), "kubectl", "kustomize", site)
	require.NoError(t, err)
	require.Equal(t, d.text, text)
}

func TestTheOverlayOfCERN(t *testing.T) {
	t.Parallel()
	d := deploy(t, "../../deploy/overlays/cern")
	var claim corev1.PersistentVolumeClaim
	d.object("PersistentVolumeClaim", "pvc-cephfs-cms", &claim)
	require.Equal(t, "csi-cephfs-cms", *claim.Spec.StorageClassName)
	var deployment appsv1.Deployment
	d.object("Deployment", "htcd", &deployment)
	require.Equal(t, claim.Name, deployment.Spec.Template.Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
	var settings, config corev1.ConfigMap
	d.object("ConfigMap", "htcd-settings-", &settings)
	require.Equal(t, "/cvmfs,/afs,/eos", settings.Data["HTCD_BINDS"])
	require.Empty(t, settings.Data["HTCD_SCHEDD"]+settings.Data["HTCD_COLLECTOR"], "those of base are not CERN's")
	d.object("ConfigMap", "htcd-config-", &config)
	require.Contains(t, config.Data["krb5.conf"], "default_realm = CERN.CH\n")

	require.Equal(t, "tweetybird03.cern.ch, tweetybird04.cern.ch", d.setting("COLLECTOR_HOST"))
	require.Equal(t, "bigbirdXX.cern.ch", d.setting("CREDD_HOST"), "a job's credential goes where the job goes")
	require.Equal(t, "KERBEROS", d.setting("SEC_CLIENT_AUTHENTICATION_METHODS"))
	require.NotContains(
		t,
		strings.Split(config.Data["condor_config"], "\n"),
		"SEC_CREDENTIAL_PRODUCER = /usr/bin/batch_krb5_credential",
		"without that program in the image nothing could be sent",
	)
}
