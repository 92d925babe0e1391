package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// operation is something that can be done to an object now.
type operation struct {
	ref
	Action  string
	Title   string // on its button
	Explain string // what it does, for who is about to do it
	Line    string // of kubectl, for the same
	UID     types.UID
	Version string // of the object that the page shows
	Grave   bool   // it destroys something
}

// operationsOf returns what can be done to an HTCJob or an HTCWorkflow.
func operationsOf(r ref, object metav1.Object, suspended, ended bool, failed int) []operation {
	make := func(action, title, explain, line string) operation {
		return operation{
			r,
			action,
			title,
			explain,
			fmt.Sprintf(line, r.Kind, r.Name, r.Namespace),
			object.GetUID(),
			object.GetResourceVersion(),
			action == "delete",
		}
	}
	var all []operation
	switch {
	case object.GetDeletionTimestamp() != nil:
		return nil
	case suspended:
		all = append(all, make("resume", "Resume", "What had not ended is sent to HTCondor again.",
			`kubectl patch %s %s -n %s --type=merge -p '{"spec":{"suspend":false}}'`))
	case !ended:
		all = append(
			all,
			make(
				"suspend",
				"Suspend",
				"Its jobs are removed from HTCondor, those that run included. What has ended stays.",
				`kubectl patch %s %s -n %s --type=merge -p '{"spec":{"suspend":true}}'`,
			),
		)
	default:
		if failed > 0 && r.Kind == jobs {
			all = append(
				all,
				make(
					"rerun-failed",
					"Rerun failed",
					fmt.Sprintf(
						"%s again, as the next attempt. The others stay as they are.",
						number(failed, "failed job"),
					),
					`kubectl annotate --overwrite %s %s -n %s htc.cern.ch/rerun=$(date +%%s) htc.cern.ch/rerun-procs=failed`,
				),
			)
		}
		rerun := `kubectl annotate --overwrite %s %s -n %s htc.cern.ch/rerun=$(date +%%s)`
		if r.Kind == jobs {
			rerun += " htc.cern.ch/rerun-procs-"
		}
		all = append(all, make("rerun", "Rerun", "It runs again, as the next attempt.", rerun))
	}
	return append(
		all,
		make(
			"delete",
			"Delete",
			"Its jobs are removed from HTCondor, and it is deleted with its output.",
			`kubectl delete %s %s -n %s`,
		),
	)
}

// patch is the merge patch of an action. A rerun is refused if the object has changed since it was shown: the choice
// may be wrong.
func patch(action, version string, now time.Time) ([]byte, error) {
	annotations := map[string]any{
		v1alpha1.RerunAnnotation:      now.UTC().Format(time.RFC3339Nano),
		v1alpha1.RerunProcsAnnotation: nil,
	}
	switch action {
	case "suspend", "resume":
		return json.Marshal(map[string]any{"spec": map[string]any{"suspend": action == "suspend"}})
	case "rerun-failed":
		annotations[v1alpha1.RerunProcsAnnotation] = "failed"
	case "rerun":
	default:
		return nil, fmt.Errorf("there is no action %q", action)
	}
	return json.Marshal(
		map[string]any{"metadata": map[string]any{"resourceVersion": version, "annotations": annotations}},
	)
}

// manager is who changes fields.
const manager = "htcd-ui"

func (s *Server) do(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<16)
	to := ref{kind(r.PostFormValue("kind")), r.PostFormValue("namespace"), r.PostFormValue("name")}
	err := s.act(
		r.Context(),
		to,
		r.PostFormValue("action"),
		types.UID(r.PostFormValue("uid")),
		r.PostFormValue("version"),
	)
	if err != nil {
		s.sorry(w, r, "It was not done", err)
		return
	}
	back := linkTo(to)
	if r.PostFormValue("action") == "delete" {
		back = map[kind]string{jobs: "/", workflows: "/workflows"}[to.Kind]
	}
	http.Redirect(w, r, s.guard.base+back, http.StatusSeeOther)
}

// act does to an object what was asked for when it was shown; another of the same name is not touched.
func (s *Server) act(ctx context.Context, to ref, action string, uid types.UID, version string) error {
	if to.Namespace == "" || to.Name == "" || uid == "" || to.Kind != jobs && to.Kind != workflows {
		return errors.New("the request names no object")
	}
	if action == "delete" {
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
		if to.Kind == jobs {
			return s.o.Client.HTCJobs(to.Namespace).Delete(ctx, to.Name, options)
		}
		return s.o.Client.Workflows(to.Namespace).Delete(ctx, to.Name, options)
	}
	change, err := patch(action, version, time.Now())
	if err != nil {
		return err
	}
	var now metav1.Object
	options := metav1.GetOptions{}
	if to.Kind == jobs {
		now, err = s.o.Client.HTCJobs(to.Namespace).Get(ctx, to.Name, options)
	} else {
		now, err = s.o.Client.Workflows(to.Namespace).Get(ctx, to.Name, options)
	}
	if err != nil {
		return err
	}
	if now.GetUID() != uid {
		return fmt.Errorf("%s %s was deleted, and there is another of this name", to.Kind, to.Name)
	}
	if to.Kind == jobs {
		_, err = s.o.Client.HTCJobs(
			to.Namespace,
		).Patch(
			ctx,
			to.Name,
			types.MergePatchType,
			change,
			metav1.PatchOptions{FieldManager: manager},
		)
	} else {
		_, err = s.o.Client.Workflows(to.Namespace).
			Patch(ctx, to.Name, types.MergePatchType, change, metav1.PatchOptions{FieldManager: manager})
	}
	if apierrors.IsConflict(err) {
		return fmt.Errorf("it has changed since it was shown; look at it again: %w", err)
	}
	return err
}

// sorry is a page with an error.
func (s *Server) sorry(w http.ResponseWriter, r *http.Request, title string, err error) {
	s.page(w, r, page{Title: title, main: sorry(title, words(err))}, "")
}
