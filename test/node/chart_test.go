//go:build node

package node

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/test/lab"
)

// deployDir is deploy/ of the clone.
func deployDir(t *testing.T) string {
	t.Helper()
	clone, err := lab.CloneAround(".")
	require.NoError(t, err)
	return filepath.Join(clone, "deploy")
}

// noImage is the image of deploy/base as values of the chart.
var noImage = []string{"--set", "image.repository=htcd,image.digest=sha256:" + strings.Repeat("0", 64)}

// rendered returns the chart's objects.
func (b bench) rendered(args ...string) map[string]*unstructured.Unstructured {
	b.T.Helper()
	text, err := b.Lab.Run(
		b.T.Context(),
		"helm",
		append([]string{"template", "htcd", filepath.Join(deployDir(b.T), "helm", "htcd")}, args...)...)
	require.NoError(b.T, err)
	return objects(b.T, text)
}

// hashed is a name to which kustomize has added the hash of what it holds.
var hashed = regexp.MustCompile(`(htcd-(?:settings|config))-[a-z0-9]{10}\b`)

// objects reads manifests by kind and name, without what only one of helm and kustomize adds: the hashes of ConfigMaps,
// their checksum in the pod's annotations, helm's policy to keep, a namespace of what has none, and the Namespace
// itself.
func objects(t *testing.T, text string) map[string]*unstructured.Unstructured {
	t.Helper()
	all := map[string]*unstructured.Unstructured{}
	for _, part := range regexp.MustCompile(`(?m)^---$`).Split(hashed.ReplaceAllString(text, "$1"), -1) {
		var o unstructured.Unstructured
		require.NoError(t, yaml.Unmarshal([]byte(part), &o.Object))
		if o.Object == nil || o.GetKind() == "Namespace" {
			continue
		}
		unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "helm.sh/resource-policy")
		unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "annotations", "checksum/config")
		if strings.Contains(o.GetKind(), "AdmissionPolicy") {
			o.SetNamespace("")
		}
		require.NotContains(t, all, o.GetKind()+" "+o.GetName(), "it is there once")
		all[o.GetKind()+" "+o.GetName()] = &o
	}
	return all
}

func TestTheChartMakesWhatKustomizeMakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dir, namespace string
		values         []string
	}{
		{"base", "htcd", nil},
		{"overlays/generic", "htcd", []string{"--set", "kerberos.enabled=false"}},
		{"../test/e2e/testdata/components", "other", []string{"--set", "backup.enabled=true,creator.enabled=true,finalizer.enabled=true,secrets.ofJobs=true,kueue.enabled=true,output.enabled=true,logsPod.enabled=true,secrets.ofNamespaces={kinit-secret}"}},
	} {
		t.Run(filepath.Base(c.dir), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			text, err := b.Lab.Run(t.Context(), "kubectl", "kustomize", filepath.Join(deployDir(t), c.dir))
			require.NoError(t, err)
			want, is := objects(t, text), b.rendered(append(append(c.values, noImage...), "-n", c.namespace)...)
			for name, o := range want {
				require.Contains(t, is, name)
				require.Equal(t, o.Object, is[name].Object, name)
			}
			require.Len(t, is, len(want))
		})
	}
}

// values are those of a site that sets much.
const values = `image: {repository: registry.example.org/htcd, tag: v1}
tls: {secretName: own}
ingress: {className: nginx, tls: [{hosts: [htcd.example.org], secretName: front}]}
persistence: {existingClaim: pvc-cephfs-cms}
pools: [{name: fast, spec: {schedds: [a.example.org]}}]
networkPolicy: {metricsFrom: [{podSelector: {}}], egress: [{ports: [{port: 53, protocol: UDP}]}]}
monitoring: {serviceMonitor: {enabled: true, labels: {release: prometheus}}, prometheusRule: {enabled: true}, dashboard: {enabled: true}}
settings: {HTCD_SCHEDD: other.example.org, HTCD_COLLECTOR: ""}
secrets: {ofNamespaces: [condor-token]}
backup: {enabled: true}
podSecurityContext: {runAsUser: 20000}
nodeSelector: {disk: fast}
`

func TestTheChartFollowsItsValues(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(values), 0o600))
	all := b.rendered("-n", "htcd", "-f", file, "--api-versions", "htc.cern.ch/v1alpha1/HTCPool")
	at := func(name string, fields ...string) any {
		require.Contains(t, all, name)
		value, found, err := unstructured.NestedFieldNoCopy(all[name].Object, fields...)
		require.NoError(t, err)
		require.True(t, found, "%s %v", name, fields)
		return value
	}
	require.Equal(t, "https://htcd.example.org/cloudevents", at("ConfigMap htcd-settings", "data", "HTCD_CALLBACK_URL"))
	require.Equal(t, "other.example.org", at("ConfigMap htcd-settings", "data", "HTCD_SCHEDD"), "settings come first")
	require.Equal(t, "", at("ConfigMap htcd-settings", "data", "HTCD_COLLECTOR"), "also those that are empty")
	rules := at("ClusterRole htcd-namespace-secrets", "rules").([]any)
	require.Equal(t, []any{"condor-token", "kinit-secret"}, rules[0].(map[string]any)["resourceNames"], "htcd asks for both")
	user := []string{"spec", "template", "spec", "securityContext", "runAsUser"}
	require.EqualValues(t, 20000, at("Deployment htcd", user...))
	require.EqualValues(
		t,
		20000,
		at("CronJob htcd-backup", append([]string{"spec", "jobTemplate"}, user...)...),
		"who owns the ledger",
	)
	require.Equal(t, "nginx", at("Ingress htcd", "spec", "ingressClassName"))
	require.Equal(t, "a.example.org", at("HTCPool fast", "spec", "schedds").([]any)[0])
	require.NotContains(t, all, "PersistentVolumeClaim htcd")
	pod, err := json.Marshal(at("Deployment htcd", "spec", "template", "spec"))
	require.NoError(t, err)
	for _, part := range []string{`"claimName":"pvc-cephfs-cms"`, `"image":"registry.example.org/htcd:v1"`, `"nodeSelector":{"disk":"fast"}`,
		`{"name":"HTCD_TLS_CERT","value":"/etc/htcd-tls/tls.crt"}`, `{"mountPath":"/etc/htcd-tls","name":"tls","readOnly":true}`, `"secretName":"own"`} {
		require.Contains(t, string(pod), part)
	}
	require.Equal(t, []any{"Ingress", "Egress"}, at("NetworkPolicy htcd", "spec", "policyTypes"))

	monitoring := func(name string) (text []byte) {
		text, err := os.ReadFile(filepath.Join(deployDir(t), "monitoring", name))
		require.NoError(t, err)
		return text
	}
	var alerts map[string]any
	require.NoError(t, yaml.Unmarshal(monitoring("alerts.yaml"), &alerts))
	require.Equal(t, alerts, at("PrometheusRule htcd", "spec"))
	require.Equal(t, string(monitoring("dashboard.json")), at("ConfigMap htcd-dashboard", "data", "htcd.json"))
	require.Equal(t, "prometheus", at("ServiceMonitor htcd", "metadata", "labels", "release"))
	require.Equal(
		t,
		at("Service htcd-metrics", "metadata", "labels"),
		at("ServiceMonitor htcd", "spec", "selector", "matchLabels"),
	)
}

func TestTheRoleFollowsTheNameOfTheAccountsSecret(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, set := range []string{"secrets.account=robot", "settings.HTCD_KINIT_SECRET=robot"} {
		all := b.rendered(append(noImage, "-n", "htcd", "--set", set)...)
		data, _, err := unstructured.NestedStringMap(all["ConfigMap htcd-settings"].Object, "data")
		require.NoError(t, err)
		require.Equal(t, "robot", data["HTCD_KINIT_SECRET"], set)
		rules, _, err := unstructured.NestedSlice(all["Role htcd"].Object, "rules")
		require.NoError(t, err)
		require.Equal(t, []any{"robot"}, rules[0].(map[string]any)["resourceNames"], set)
	}
}

func TestTheChartRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for set, says := range map[string]string{
		"replicas=1":                                   "name htcd's image at your site",
		"image.repository=a,nonsense=1":                "additional properties 'nonsense' not allowed",
		"image.repository=a,settings.LOG_LEVEL=a":      "invalid propertyName 'LOG_LEVEL'",
		"image.repository=a,settings.HTCD_MAX_QUEUE=1": "got number, want string",
		"image.repository=a,image.digest=sha256:1":     "does not match pattern",
		"image.repository=a,persistence.size=big":      "does not match pattern",
	} {
		_, err := b.Lab.Run(
			t.Context(),
			"helm",
			"template",
			"htcd",
			filepath.Join(deployDir(t), "helm", "htcd"),
			"--set",
			set,
		)
		require.ErrorContains(t, err, says, set)
	}
}

// What has nothing behind its colon in a file of values is nil in templates, which its default is not.
func TestTheChartTakesValuesWithoutContent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
podAnnotations:
podLabels:
settings:
extraEnv:
extraVolumes:
extraVolumeMounts:
secrets: {ofNamespaces: }
persistence: {annotations: }
`), 0o600))
	require.Equal(t, b.rendered(append(noImage, "-n", "htcd")...), b.rendered(append(noImage, "-n", "htcd", "-f", file)...))
}
