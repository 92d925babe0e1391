package ui

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// firstLook is how long the first page may wait for the first list.
const firstLook = 10 * time.Second

// watch keeps the store up to date until ctx ends. It returns when everything was listed, or after firstLook.
func watch(ctx context.Context, client *v1alpha1.Client, namespaces []string, s *store) error {
	var all []cache.SharedIndexInformer
	add := func(k kind, namespace string, make func(asked func(error)) cache.SharedIndexInformer) error {
		what := fmt.Sprintf("%ss", k)
		if namespace != "" {
			what += " of namespace " + namespace
		}
		informer := make(func(err error) { s.troubled(what, why(k, err)) })
		if err := informer.SetTransform(slim); err != nil {
			return err
		}
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { s.put(refOf(k, object), object) },
			UpdateFunc: func(_, object any) { s.put(refOf(k, object), object) },
			DeleteFunc: func(object any) {
				if last, missed := object.(cache.DeletedFinalStateUnknown); missed {
					object = last.Obj
				}
				s.put(refOf(k, object), nil)
			},
		})
		all = append(all, informer)
		return err
	}
	for _, namespace := range namespaces {
		if err := add(
			jobs,
			namespace,
			func(asked func(error)) cache.SharedIndexInformer { return client.NewInformer(namespace, 0, asked, nil) },
		); err != nil {
			return err
		}
		if err := add(workflows, namespace, func(asked func(error)) cache.SharedIndexInformer {
			return client.NewWorkflowInformer(namespace, 0, asked, nil)
		}); err != nil {
			return err
		}
	}
	if err := add(
		pools,
		"",
		func(asked func(error)) cache.SharedIndexInformer { return client.NewPoolInformer(0, asked) },
	); err != nil {
		return err
	}
	look, done := context.WithTimeout(ctx, firstLook)
	defer done()
	var listed sync.WaitGroup
	for _, informer := range all {
		go informer.RunWithContext(ctx)
		listed.Go(func() { cache.WaitForCacheSync(look.Done(), informer.HasSynced) })
	}
	listed.Wait()
	return ctx.Err()
}

// why says what keeps a kind from being watched. Most users may not read pools, and many clusters have none.
func why(k kind, err error) string {
	if err == nil || k == pools && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err)) {
		return ""
	}
	return words(err)
}

// noAnswer begins what is said while nobody answers.
const noAnswer = "the apiserver does not answer"

// words are those of the apiserver or of htcd, or say that there were none.
func words(err error) string {
	var status apierrors.APIStatus
	var asked *url.Error
	switch {
	case errors.As(err, &status), !errors.As(err, &asked):
		return err.Error()
	case asked.Timeout():
		return noAnswer + " in time"
	}
	return fmt.Sprintf("%s: %v", noAnswer, asked.Err)
}

// slim drops what no page shows.
func slim(object any) (any, error) {
	if o, is := object.(metav1.Object); is {
		o.SetManagedFields(nil)
	}
	return object, nil
}

func refOf(k kind, object any) ref {
	o, is := object.(metav1.Object)
	if !is {
		return ref{Kind: k}
	}
	return ref{k, o.GetNamespace(), o.GetName()}
}
