package ports

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// Label and Name are what the Pods of this program are found by, and its Services.
const (
	Label     = "app.kubernetes.io/name"
	Name      = "htcd-ports"
	managedBy = "app.kubernetes.io/managed-by"
)

// service leads to the ports at which this program listens for those of an owner. Nothing blocks the owner's deletion:
// that would need the right to change its finalizers, where the apiserver is strict.
func service(o *owner, here []int32) *corev1.Service {
	by := metav1.NewControllerRef(o, v1alpha1.GroupVersion.WithKind(o.kind))
	by.BlockOwnerDeletion = nil
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name:            o.Name,
			Labels:          map[string]string{managedBy: Name},
			OwnerReferences: []metav1.OwnerReference{*by},
		},
		Spec: corev1.ServiceSpec{Selector: map[string]string{Label: Name}},
	}
	for i, p := range o.ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
			Name: fmt.Sprintf("port-%d", p.Port), Port: p.Port, Protocol: corev1.ProtocolTCP,
			TargetPort: intstr.FromInt32(here[i]),
		})
	}
	return s
}
