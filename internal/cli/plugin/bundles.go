package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// brought is what an object names, and is made with it.
type brought struct {
	files   []input            // of --input, for a ConfigMap
	large   []largeInput       // of --input, to be uploaded
	bundled []corev1.ConfigMap // of files that the manifest has as inputs already
	uploads []toUpload         // the same
}

// applyWith makes the object what the manifest says, with files as further inputs, and with ConfigMaps and uploads that
// it names already.
//
// Uploads come first, once a dry run has shown that nothing else is wrong: they take long, and are dropped if nothing
// names them. The object comes before the ConfigMaps: they then belong to it from the beginning, and wherever this is
// interrupted nothing remains that nobody owns. One without its ConfigMaps waits, and applying it again completes it.
// What would refuse a ConfigMap is found beforehand, by a dry run.
func (c *cluster) applyWith(
	ctx context.Context,
	m manifest,
	with brought,
	before *object,
	told io.Writer,
) (*object, error) {
	bundled := with.bundled
	if before != nil && before.DeletionTimestamp != nil {
		return nil, fmt.Errorf(
			"the %s %s is being deleted: wait for that (kubectl wait -n %s --for=delete %s), and submit it again",
			before.name,
			before.Name,
			c.namespace,
			before.fullName(before.Name),
		)
	}
	if len(with.files) > 0 {
		one, more, err := bundle(m, with.files)
		if err != nil {
			return nil, err
		}
		bundled, m = append(bundled, *one), more
	}
	if len(with.large) > 0 {
		var err error
		if m.text, err = addInputs(m.text, uploaded(with.large)); err != nil {
			return nil, err
		}
	}
	needs := "a submit file with files of this machine"
	if len(with.files) > 0 {
		needs = "--input"
	}
	for i := range bundled {
		_, err := c.configMaps.Create(
			ctx,
			&bundled[i],
			metav1.CreateOptions{FieldManager: manager, DryRun: []string{metav1.DryRunAll}},
		)
		switch {
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf(
				"%s needs the right to create and get ConfigMaps in namespace %s, for example by the ClusterRole htcjob-input-files: %w",
				needs,
				c.namespace,
				err,
			)
		case err != nil && !apierrors.IsAlreadyExists(err):
			return nil, fmt.Errorf("the ConfigMap of the files: %w", err)
		}
	}
	if err := c.uploadAll(ctx, m, with, told); err != nil {
		return nil, err
	}
	o, err := c.apply(ctx, m)
	if err != nil || c.dryRun != nil {
		return o, err
	}
	for i := range bundled {
		if err := c.createBundle(ctx, &bundled[i], o); err != nil {
			return nil, fmt.Errorf(
				"the %s %s exists and waits for the ConfigMap %s, which could not be made; submit it again: %w",
				o.name,
				o.Name,
				bundled[i].Name,
				err,
			)
		}
	}
	if before != nil {
		c.dropBundles(ctx, before, o)
	}
	return o, nil
}

// uploadAll uploads what an object names.
func (c *cluster) uploadAll(ctx context.Context, m manifest, with brought, told io.Writer) error {
	all := with.uploads
	for _, f := range with.large {
		all = append(all, f.toUpload)
	}
	if len(all) == 0 || c.dryRun != nil {
		return nil
	}
	c.dryRun = []string{metav1.DryRunAll}
	_, err := c.apply(ctx, m)
	if c.dryRun = nil; err != nil {
		return err
	}
	for range 2 { // the second time, so that none of those that were there before is dropped right now
		for _, f := range all {
			if err := c.upload(ctx, f, told); err != nil {
				return err
			}
		}
	}
	return nil
}

// uploaded are files as inputs.
func uploaded(large []largeInput) (all []v1alpha1.Input) {
	for _, f := range large {
		all = append(all, v1alpha1.Input{Name: f.name, Upload: f.upload, Unpack: f.unpack})
	}
	return all
}

// ownerGone is how long Kubernetes may take to delete a ConfigMap whose owner was deleted.
const ownerGone = time.Minute

// createBundle creates a ConfigMap that belongs to an object, unless it exists. One of an object that was deleted is
// about to be deleted, too.
func (c *cluster) createBundle(ctx context.Context, bundled *corev1.ConfigMap, of *object) error {
	bundled = bundled.DeepCopy()
	bundled.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: of.name, Name: of.Name, UID: of.UID,
	}}
	return wait.PollUntilContextTimeout(ctx, time.Second/2, ownerGone, true, func(ctx context.Context) (bool, error) {
		_, err := c.configMaps.Create(ctx, bundled, metav1.CreateOptions{FieldManager: manager})
		if !apierrors.IsAlreadyExists(err) {
			return true, err
		}
		there, err := c.configMaps.Get(ctx, bundled.Name, metav1.GetOptions{})
		if err != nil {
			return false, ignoreNotFound(err)
		}
		this, earlier := ownedBy(there, of)
		switch {
		case this && maps.Equal(there.Data, bundled.Data) &&
			equality.Semantic.DeepEqual(there.BinaryData, bundled.BinaryData):
			return true, nil
		case earlier && !this:
			return false, nil
		}
		return false, fmt.Errorf("there is a ConfigMap of this name that is not from htcd submit: rename or delete it")
	})
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// dropBundles deletes the ConfigMaps of earlier submissions that the object no longer names. One that this user may not
// delete is deleted with the object.
func (c *cluster) dropBundles(ctx context.Context, before, after *object) {
	if before.UID != after.UID {
		return
	}
	named := bundlesOf(after)
	for _, name := range bundlesOf(before) {
		if slices.Contains(named, name) {
			continue
		}
		old, err := c.configMaps.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			continue
		}
		if this, _ := ownedBy(old, after); this {
			_ = c.configMaps.Delete(
				ctx,
				name,
				metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &old.UID}},
			)
		}
	}
}

// bundlesOf lists the ConfigMaps that an object names anywhere and whose names are those of bundles.
func bundlesOf(o *object) (names []string) {
	var spec any
	if o.job != nil {
		spec = o.job.Spec
	} else {
		spec = o.workflow.Spec
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil
	}
	for _, m := range configMapRE.FindAllSubmatch(text, -1) {
		if name := string(m[1]); strings.HasPrefix(name, bundlePrefix(o.Name)) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// configMapRE finds the names of ConfigMaps in a spec.
var configMapRE = regexp.MustCompile(`"configMapKeyRef":\{"name":"([a-z0-9.-]+)"`)
