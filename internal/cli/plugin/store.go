package plugin

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"htc.cern.ch/htcd/internal/cli/setting"
)

// store reaches the objects of a kind in a namespace.
type store interface {
	get(ctx context.Context, name string) (*object, error)
	list(ctx context.Context, options metav1.ListOptions) (some []*object, more string, err error)
	watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	create(ctx context.Context, text []byte, options metav1.CreateOptions) (*object, error)
	patch(ctx context.Context, name string, how types.PatchType, data []byte, o metav1.PatchOptions) (*object, error)
	remove(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// typed is a store over the client of a type.
type typed[T, L runtime.Object] struct {
	client interface {
		Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
		List(ctx context.Context, options metav1.ListOptions) (L, error)
		Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
		Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
		Patch(ctx context.Context, name string, how types.PatchType, data []byte, options metav1.PatchOptions,
			subresources ...string) (T, error)
		Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
	}
	empty T
}

func (s typed[T, L]) get(ctx context.Context, name string) (*object, error) {
	return orError(s.client.Get(ctx, name, metav1.GetOptions{}))
}

func (s typed[T, L]) list(ctx context.Context, options metav1.ListOptions) (some []*object, more string, err error) {
	list, err := s.client.List(ctx, options)
	if err != nil {
		return nil, "", err
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		some = append(some, objectOf(item))
		return nil
	})
	if about, isList := any(list).(metav1.ListInterface); isList {
		more = about.GetContinue()
	}
	return some, more, err
}

func (s typed[T, L]) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return s.client.Watch(ctx, options)
}

func (s typed[T, L]) create(ctx context.Context, text []byte, options metav1.CreateOptions) (*object, error) {
	made := s.empty.DeepCopyObject().(T)
	if err := yaml.UnmarshalStrict(text, made); err != nil {
		return nil, err
	}
	return orError(s.client.Create(ctx, made, options))
}

func (s typed[T, L]) patch(ctx context.Context, name string, how types.PatchType, data []byte,
	options metav1.PatchOptions) (*object, error) {
	return orError(s.client.Patch(ctx, name, how, data, options))
}

func (s typed[T, L]) remove(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return s.client.Delete(ctx, name, options)
}

func orError[T runtime.Object](of T, err error) (*object, error) {
	if err != nil {
		return nil, err
	}
	return objectOf(of), nil
}

// of returns the objects of a kind.
func (c *cluster) of(k *kind) store {
	if k == workflowKind {
		return c.workflows
	}
	return c.jobs
}

// find reads the object that an argument names. A name without a kind is looked up as both.
func (c *cluster) find(ctx context.Context, argument string) (*object, error) {
	ref, err := named(argument, kinds...)
	if err != nil {
		return nil, err
	}
	return c.read(ctx, ref)
}

func (c *cluster) read(ctx context.Context, ref reference) (*object, error) {
	if ref.kind != nil {
		return c.of(ref.kind).get(ctx, ref.name)
	}
	job, err := c.jobs.get(ctx, ref.name)
	if err != nil && !absent(err) {
		return nil, err
	}
	workflow, missing := c.workflows.get(ctx, ref.name)
	switch {
	case missing != nil && !absent(missing):
		return nil, missing
	case job != nil && workflow != nil:
		return nil, setting.Usage{Err: fmt.Errorf("%q is the name of an HTCJob and of an HTCWorkflow: write %s or %s",
			ref.name, jobKind.short(ref.name), workflowKind.short(ref.name))}
	case job != nil:
		return job, nil
	case workflow != nil:
		return workflow, nil
	case apierrors.IsNotFound(err) && apierrors.IsNotFound(missing):
		return nil, fmt.Errorf("%q not found: namespace %s has no HTCJob and no HTCWorkflow of this name",
			ref.name, c.namespace)
	}
	return nil, errors.Join(err, missing)
}

// resolve finds the kind of what an argument names, for commands that ask only htcd about it. For who may read neither
// kind it is an HTCJob.
func (c *cluster) resolve(ctx context.Context, ref reference) (reference, error) {
	if ref.kind != nil {
		return ref, nil
	}
	o, err := c.read(ctx, ref)
	switch {
	case err == nil:
		ref.kind = o.kind
	case apierrors.IsForbidden(err):
		ref.kind = jobKind
	default:
		return ref, err
	}
	return ref, nil
}

// absent reports whether an object is not there, or none that the user may see.
func absent(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) }
