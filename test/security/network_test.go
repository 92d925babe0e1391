package security

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/test/trial"
)

// No network plugin runs in the lab: the test checks that the policy selects htcd's pod and names each of its ports
// correctly, since a wrong name admits nobody.
func TestTheNetworkPolicyMeansThePodAndItsPorts(t *testing.T) {
	b := trial.New(t)
	client, err := kubernetes.NewForConfig(trial.Config(t))
	require.NoError(t, err)
	for dir, ports := range map[string][]string{
		"../../deploy/base":          {"cloudevents", "health"},
		"../e2e/testdata/components": {"cloudevents", "health", "output"},
	} {
		here, err := filepath.Abs(dir)
		require.NoError(t, err)
		var policy networkingv1.NetworkPolicy
		var deployment appsv1.Deployment
		for manifest := range strings.SplitSeq(b.Kubectl("kustomize", here), "\n---\n") {
			switch {
			case strings.Contains(manifest, "kind: NetworkPolicy\n"):
				require.NoError(t, yaml.UnmarshalStrict([]byte(manifest), &policy))
			case strings.Contains(manifest, "kind: Deployment\n"):
				require.NoError(t, yaml.UnmarshalStrict([]byte(manifest), &deployment))
			}
		}
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		require.NoError(t, err)
		require.True(t, selector.Matches(labels.Set(deployment.Spec.Template.Labels)))
		var listens, letIn []string
		for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
			listens = append(listens, port.Name)
		}
		for _, rule := range policy.Spec.Ingress {
			for _, port := range rule.Ports {
				letIn = append(letIn, port.Port.StrVal)
			}
		}
		require.ElementsMatch(t, ports, listens, dir)
		require.ElementsMatch(t, ports, letIn, dir)
		policy.Namespace = b.Namespace
		_, err = client.NetworkingV1().NetworkPolicies(b.Namespace).Create(t.Context(), &policy,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
		require.NoError(t, err)
	}
}
