//go:build !releases

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/trial"
)

func TestPodPassesTheRestrictedStandard(t *testing.T) {
	t.Parallel()
	namespace := trial.Namespace(t)
	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	_, err = client.CoreV1().ServiceAccounts(namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "htcd"}}, metav1.CreateOptions{})
	require.NoError(t, err)

	text, err := os.ReadFile("../../deploy/base/manager/deployment.yaml")
	require.NoError(t, err)
	var deployment appsv1.Deployment
	require.NoError(t, yaml.UnmarshalStrict(text, &deployment))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "htcd", Labels: deployment.Spec.Template.Labels},
		Spec:       deployment.Spec.Template.Spec,
	}
	ask := func() error {
		_, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod.DeepCopy(),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
		return err
	}
	require.NoError(t, ask())

	pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
	require.ErrorContains(t, ask(), `violates PodSecurity "restricted:latest"`, "the standard was enforced")
}

// A site's overlay has its own namespace and adds a setting, which changes the ConfigMap's name.
func TestTheApiserverReadsTheLimitsWhereThePodDoes(t *testing.T) {
	t.Parallel()
	running, err := lab.Find()
	require.NoError(t, err)
	overlay, err := filepath.Abs("testdata/overlay")
	require.NoError(t, err)
	manifests, err := running.Run(t.Context(), "kubectl", "kustomize", overlay)
	require.NoError(t, err)
	var settings corev1.ConfigMap
	var deployment appsv1.Deployment
	var bindings []admissionv1.ValidatingAdmissionPolicyBinding
	for _, manifest := range strings.Split(manifests, "\n---\n") {
		switch {
		case strings.Contains(manifest, "HTCD_MAX_QUEUE: "):
			require.NoError(t, yaml.Unmarshal([]byte(manifest), &settings))
		case strings.Contains(manifest, "kind: Deployment\n"):
			require.NoError(t, yaml.Unmarshal([]byte(manifest), &deployment))
		case strings.Contains(manifest, "kind: ValidatingAdmissionPolicyBinding\n"):
			var binding admissionv1.ValidatingAdmissionPolicyBinding
			require.NoError(t, yaml.Unmarshal([]byte(manifest), &binding))
			if binding.Spec.ParamRef != nil {
				bindings = append(bindings, binding)
			}
		}
	}
	require.Equal(t, "3", settings.Data["HTCD_MAX_QUEUE"])
	require.NotEqual(t, "htcd-settings", settings.Name)
	require.Equal(t, settings.Name, deployment.Spec.Template.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name)
	require.Equal(t, "other", deployment.Namespace)
	require.Len(t, bindings, 2)
	for _, binding := range bindings {
		require.Equal(t, settings.Name, binding.Spec.ParamRef.Name)
		require.Equal(t, "other", binding.Spec.ParamRef.Namespace)
	}
}
