package secrets

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
)

// Finalizer is kept on a namespace's own Secret while there are HTCJobs that were sent with it: otherwise deleting the
// Secret or the namespace would take away the credentials needed to remove their jobs.
const Finalizer = "htc.cern.ch/in-use"

// Own is a Secret of a namespace's own.
type Own struct {
	Namespace, Name string
	UID             types.UID
	Usual           bool // HTCJobs that name none are sent with it
	Held            bool // htcd's finalizer is on it
	Deleting        bool
}

// Sends reports whether HTCJobs of its namespace that name this Secret, or none, are sent with it.
func (s Own) Sends(named string) bool {
	return named == s.Name || named == "" && s.Usual
}

// apiserverTime is how long the apiserver may take to answer, as others may be waiting for it.
const apiserverTime = 10 * time.Second

// Own lists the Secrets of a namespace that HTCJobs there are sent with, except the common one. It reads what is
// watched, plus our own writes that the watch has not returned yet.
func (w *Watcher) Own(namespace string) []Own {
	var own []Own
	for name, written := range w.written {
		object, found, err := written.GetByKey(namespace + "/" + name)
		if err != nil || !found || w.common != nil && namespace == w.o.Namespace && name == w.o.Name {
			continue
		}
		secret := object.(*corev1.Secret)
		own = append(own, Own{
			Namespace: namespace, Name: name, UID: secret.UID, Usual: name == w.o.Name,
			Held: slices.Contains(secret.Finalizers, Finalizer), Deleting: secret.DeletionTimestamp != nil,
		})
	}
	slices.SortFunc(own, func(a, b Own) int { return cmp.Compare(a.Name, b.Name) })
	return own
}

// Unseen asks the apiserver whether a namespace has a Secret of the usual name, for when the watch shows none: it may
// show an HTCJob before the Secret that was created before it.
func (w *Watcher) Unseen(ctx context.Context, namespace string) (bool, error) {
	own := w.own[w.o.Name]
	if own == nil || w.o.Watched != "" && w.o.Watched != namespace || w.common != nil && namespace == w.o.Namespace {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, apiserverTime)
	defer cancel()
	list, err := w.client.CoreV1().Secrets(namespace).List(ctx, ofName(w.o.Name)) // the watch needs no right to get
	if err != nil {
		return false, fmt.Errorf("look for secret %s/%s: %w", namespace, w.o.Name, err)
	}
	return len(list.Items) > 0, nil
}

// Hold adds the finalizer to a Secret.
func (w *Watcher) Hold(ctx context.Context, secret Own) error {
	return w.setFinalizer(ctx, secret, "finalizers")
}

// LetGo removes it.
func (w *Watcher) LetGo(ctx context.Context, secret Own) error {
	return w.setFinalizer(ctx, secret, "$deleteFromPrimitiveList/finalizers")
}

// setFinalizer sends a change to the list rather than the list itself, so it cannot drop another's finalizer. The UID
// protects a younger Secret of the same name.
func (w *Watcher) setFinalizer(ctx context.Context, secret Own, list string) error {
	ctx, cancel := context.WithTimeout(ctx, apiserverTime)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": secret.UID, list: []string{Finalizer}}})
	if err != nil {
		return err
	}
	patched, err := w.client.CoreV1().Secrets(
		secret.Namespace,
	).Patch(
		ctx,
		secret.Name,
		types.StrategicMergePatchType,
		patch,
		metav1.PatchOptions{},
	)
	if err != nil {
		return fmt.Errorf("finalizer of secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	w.written[secret.Name].Mutation(patched)
	return nil
}
