package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
)

// OwnSecret is a Secret of a namespace's own.
type OwnSecret struct {
	Namespace, Name string
	UID             types.UID
	Usual           bool // HTCJobs that name none are sent with it
	Held            bool // our finalizer is on it
	Deleting        bool
}

// sends reports whether HTCJobs of its namespace that name this Secret, or none, are sent with it.
func (s OwnSecret) sends(named string) bool {
	return named == s.Name || named == "" && s.Usual
}

// secretPatchTime is how long the apiserver may take to answer a patch: others may be waiting for it.
const secretPatchTime = 10 * time.Second

// Own reads what is watched, and our own writes that have not come back yet.
func (s *SecretCredentials) Own(namespace string) []OwnSecret {
	var own []OwnSecret
	for name, written := range s.written {
		object, found, err := written.GetByKey(namespace + "/" + name)
		if err != nil || !found || namespace == s.o.Namespace && name == s.o.Name {
			continue
		}
		secret := object.(*corev1.Secret)
		own = append(own, OwnSecret{
			Namespace: namespace, Name: name, UID: secret.UID, Usual: name == s.o.Name,
			Held: slices.Contains(secret.Finalizers, v1alpha1.InUseFinalizer), Deleting: secret.DeletionTimestamp != nil,
		})
	}
	slices.SortFunc(own, func(a, b OwnSecret) int { return cmp.Compare(a.Name, b.Name) })
	return own
}

func (s *SecretCredentials) Hold(ctx context.Context, secret OwnSecret) error {
	return s.setFinalizer(ctx, secret, "finalizers")
}

func (s *SecretCredentials) LetGo(ctx context.Context, secret OwnSecret) error {
	return s.setFinalizer(ctx, secret, "$deleteFromPrimitiveList/finalizers")
}

// setFinalizer says what is to be done to the list rather than what is in it, so it cannot lose another's finalizer. The UID
// keeps it from a younger Secret of the same name.
func (s *SecretCredentials) setFinalizer(ctx context.Context, secret OwnSecret, list string) error {
	ctx, cancel := context.WithTimeout(ctx, secretPatchTime)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": secret.UID, list: []string{v1alpha1.InUseFinalizer}}})
	if err != nil {
		return err
	}
	patched, err := s.client.CoreV1().Secrets(secret.Namespace).Patch(ctx, secret.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("finalizer of secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	s.written[secret.Name].Mutation(patched)
	return nil
}
