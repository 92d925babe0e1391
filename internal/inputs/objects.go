package inputs

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs/jobsecrets"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

const (
	// maxSecret is more than a Secret can have.
	maxSecret = 2 << 20
	// maxHeld bounds the ConfigMaps and the values of Secrets of one HTCJob, which are in memory together until they
	// are staged.
	maxHeld = 16 << 20
)

// ConfigMaps reads ConfigMaps. Errors are the apiserver's.
type ConfigMaps interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
}

// Secrets reads Secrets that are marked for jobs; see package jobsecrets.
type Secrets interface {
	Read(ctx context.Context, namespace, name, key string, most int) ([]byte, error)
	Version(ctx context.Context, namespace, name string) (string, error)
}

// APIConfigMaps asks the apiserver.
type APIConfigMaps struct{ Client typedcorev1.ConfigMapsGetter }

// ConfigMap returns a ConfigMap.
func (m APIConfigMaps) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return m.Client.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
}

// reading reads keys of the objects of one namespace, each ConfigMap once.
type reading struct {
	ctx        context.Context
	maps       ConfigMaps
	secrets    Secrets
	namespace  string
	configMaps map[string]*corev1.ConfigMap
	texts      map[v1alpha1.KeyRef][]byte // many procs may get one
	held       int
}

// hold refuses more than maxHeld.
func (r *reading) hold(bytes int) error {
	if r.held += bytes; r.held > maxHeld {
		return condor.Refusal(
			"spec.inputs: the ConfigMaps and Secrets have more than %d MiB together: let the jobs fetch large files by a URL or from a shared file system",
			maxHeld>>20,
		)
	}
	return nil
}

func (r *reading) configMap(ref v1alpha1.KeyRef) (*file, error) {
	m, read := r.configMaps[ref.Name]
	if !read {
		var err error
		m, err = r.maps.ConfigMap(r.ctx, r.namespace, ref.Name)
		switch {
		case apierrors.IsNotFound(err):
			return nil, waiting(ReasonConfigMapNotFound, "there is no configmap %s in this namespace", ref.Name)
		case apierrors.IsForbidden(err):
			return nil, waiting(
				ReasonConfigMapForbidden,
				"htcd may not read configmaps: its administrator has to apply deploy/base/rbac of its version",
			)
		case err != nil:
			return nil, fmt.Errorf("read the configmap %s: %w", ref.Name, err)
		}
		if err := r.hold(m.Size()); err != nil {
			return nil, err
		}
		if r.configMaps == nil {
			r.configMaps = map[string]*corev1.ConfigMap{}
		}
		r.configMaps[ref.Name] = m
	}
	if m.Labels[jobsecrets.Label] == "false" {
		return nil, waiting(
			ReasonConfigMapForbidden,
			"the configmap %s has the label %s=false, by which its owner keeps it from jobs",
			ref.Name,
			jobsecrets.Label,
		)
	}
	if text, is := m.Data[ref.Key]; is {
		if r.texts == nil {
			r.texts = map[v1alpha1.KeyRef][]byte{}
		}
		if r.texts[ref] == nil {
			r.texts[ref] = []byte(text)
		}
		return &file{mode: 0o644, content: r.texts[ref]}, nil
	}
	if content, is := m.BinaryData[ref.Key]; is {
		return &file{mode: 0o644, content: content}, nil
	}
	return nil, waiting(ReasonConfigMapKeyNotFound, "the configmap %s has no key %s", ref.Name, ref.Key)
}

func (r *reading) secret(ref v1alpha1.KeyRef) (*file, error) {
	content, err := r.secrets.Read(r.ctx, r.namespace, ref.Name, ref.Key, maxSecret)
	if e, is := errors.AsType[*jobsecrets.Unusable](err); is {
		return nil, &Waiting{Reason: e.Reason, Message: e.Message}
	}
	if err != nil {
		return nil, err
	}
	if err := r.hold(len(content)); err != nil {
		return nil, err
	}
	version, err := r.secrets.Version(r.ctx, r.namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	return &file{mode: 0o600, content: content, version: version}, nil
}
