package e2e

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

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
