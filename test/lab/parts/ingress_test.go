package parts

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNginxDoesWhatAnIngressSays(t *testing.T) {
	services := []corev1.Service{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "htcd", Name: "htcd"},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.7", Ports: []corev1.ServicePort{{Name: "cloudevents", Port: 80}}},
	}}
	ingress := func(kind networkingv1.PathType, port networkingv1.ServiceBackendPort) []networkingv1.Ingress {
		return []networkingv1.Ingress{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "htcd", Name: "htcd"},
			Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "h.example.org",
				IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
					Path: "/x", PathType: &kind, Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "htcd", Port: port}},
				}}}}}}},
		}}
	}
	exact, err := nginxConfig("10.88.0.1", ingress(networkingv1.PathTypeExact, networkingv1.ServiceBackendPort{Name: "cloudevents"}), services)
	require.NoError(t, err)
	require.Contains(t, exact, "server_name h.example.org;\n    location = /x { proxy_pass http://10.96.0.7:80;")
	prefix, err := nginxConfig("10.88.0.1", ingress(networkingv1.PathTypePrefix, networkingv1.ServiceBackendPort{Number: 80}), services)
	require.NoError(t, err)
	require.Contains(t, prefix, "location /x { proxy_pass http://10.96.0.7:80;")

	_, err = nginxConfig("10.88.0.1", ingress(networkingv1.PathTypeExact, networkingv1.ServiceBackendPort{Name: "other"}), services)
	require.ErrorContains(t, err, "ingress htcd/htcd: service htcd has no port")
	_, err = nginxConfig("10.88.0.1", ingress(networkingv1.PathTypeExact, networkingv1.ServiceBackendPort{}), nil)
	require.ErrorContains(t, err, "no service htcd")
}
