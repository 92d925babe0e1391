package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/inputs"
	"htc.cern.ch/htcd/internal/inputs/uploads"
	"htc.cern.ch/htcd/internal/output"
)

// byUpload is the index of the HTCJobs and HTCWorkflows that name an upload.
const byUpload = "upload"

// newUploads makes the store of uploads, which asks the informers who names one. It has to be made before these run.
func (d *daemon) newUploads(l *loop) (*uploads.Store, error) {
	index := func(namesOf func(object any) (namespace string, names []string)) cache.Indexers {
		return cache.Indexers{byUpload: func(object any) (keys []string, err error) {
			namespace, names := namesOf(object)
			for _, name := range names {
				keys = append(keys, namespace+"/"+name)
			}
			return keys, nil
		}}
	}
	err := errors.Join(l.informer.AddIndexers(index(func(object any) (string, []string) {
		job := object.(*v1alpha1.HTCJob)
		return job.Namespace, inputs.UploadsOf(job.Spec.Inputs)
	})), l.workflowInformer.AddIndexers(index(func(object any) (string, []string) {
		w := object.(*v1alpha1.HTCWorkflow)
		return w.Namespace, uploadsOf(w.Spec)
	})))
	return &uploads.Store{
		Root: d.o.uploadDir(), Shares: l.shares, Only: d.o.Namespace, Now: time.Now,
		Quota: output.Room{Bytes: d.o.UploadQuota.Value(), Files: int64(d.o.UploadFiles)},
		Users: func(namespace, name string) (users []string, err error) {
			if !l.informer.HasSynced() || !l.workflowInformer.HasSynced() {
				return nil, apierrors.NewServiceUnavailable(
					"htcd has just been started, and does not know yet who needs which upload: try again",
				)
			}
			for _, informer := range []cache.SharedIndexInformer{l.informer, l.workflowInformer} {
				objects, err := informer.GetIndexer().ByIndex(byUpload, namespace+"/"+name)
				if err != nil {
					return nil, err
				}
				for _, object := range objects {
					switch o := object.(type) {
					case *v1alpha1.HTCJob:
						users = append(users, v1alpha1.Kind+" "+o.Name)
					case *v1alpha1.HTCWorkflow:
						users = append(users, v1alpha1.WorkflowKind+" "+o.Name)
					}
				}
			}
			return users, nil
		},
	}, err
}

// uploadsOf names the uploads that the steps of a workflow name.
func uploadsOf(spec v1alpha1.HTCWorkflowSpec) (all []string) {
	for _, step := range spec.Steps {
		all = append(all, inputs.UploadsOf(step.Job.Inputs)...)
	}
	if spec.Finally != nil {
		all = append(all, inputs.UploadsOf(spec.Finally.Job.Inputs)...)
	}
	return all
}

func (o *Options) uploadDir() string { return filepath.Join(o.Data, "uploads") }

// sweepEvery is how often uploads are looked for that nobody needs.
const sweepEvery = time.Minute

// sweepUploads drops uploads that nobody needs, until ctx ends.
func (d *daemon) sweepUploads(ctx context.Context, l *loop) error {
	if !cache.WaitForCacheSync(ctx.Done(), l.informer.HasSynced, l.workflowInformer.HasSynced) {
		return nil
	}
	wait.UntilWithContext(ctx, func(context.Context) {
		if err := l.uploads.Sweep(); err != nil {
			d.log.Warn().Err(err).Msg("uploads that nobody needs cannot be removed")
		}
	}, sweepEvery)
	return nil
}
